INSERT INTO principals (principal_id, kind, display_name, deployment_role, owner_principal_id, metadata, created_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)

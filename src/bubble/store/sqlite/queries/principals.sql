SELECT json_group_array(json_array(
    principal_id, kind, display_name, deployment_role, owner_principal_id, CAST(metadata AS TEXT), created_ms, disabled_ms
))
FROM (SELECT * FROM principals WHERE principal_id > ?1 ORDER BY principal_id LIMIT ?2)

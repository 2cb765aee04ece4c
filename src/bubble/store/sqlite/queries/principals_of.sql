SELECT json_group_array(json_array(
    principal_id, kind, display_name, deployment_role, owner_principal_id, CAST(metadata AS TEXT), created_ms, disabled_ms
))
FROM (
    SELECT * FROM principals
    WHERE owner_principal_id = ?1 AND principal_id > ?2
    ORDER BY principal_id LIMIT ?3
)

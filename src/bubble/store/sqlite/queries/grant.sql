SELECT json_group_array(json_array(thread_id, principal_id, role, granted_by, created_ms, kind, display_name))
FROM (
    SELECT
        grants.thread_id, grants.principal_id, grants.role, grants.granted_by, grants.created_ms,
        principals.kind, principals.display_name
    FROM grants
    LEFT JOIN principals USING (principal_id)
    WHERE grants.thread_key = ?1 AND grants.principal_id = ?2
)

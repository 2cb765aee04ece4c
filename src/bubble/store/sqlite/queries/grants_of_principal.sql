-- Grants of a principal by thread, after ?2, at most ?3 of them. The join leaves out deleted threads that are still being erased.
SELECT json_group_array(json_array(thread_id, principal_id, role, granted_by, created_ms, kind, display_name))
FROM (
    SELECT
        grants.thread_id, grants.principal_id, grants.role, grants.granted_by, grants.created_ms,
        principals.kind, principals.display_name
    FROM grants
    JOIN threads USING (thread_key)
    LEFT JOIN principals USING (principal_id)
    WHERE grants.principal_id = ?1 AND grants.thread_id > ?2
    ORDER BY grants.thread_id LIMIT ?3
)

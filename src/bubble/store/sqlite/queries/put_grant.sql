INSERT INTO grants (thread_key, principal_id, thread_id, role, appends, granted_by, created_ms)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7)
ON CONFLICT (thread_key, principal_id) DO UPDATE
SET role = excluded.role, appends = excluded.appends, granted_by = excluded.granted_by

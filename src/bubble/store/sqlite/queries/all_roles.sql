SELECT
    (SELECT json_group_object(principal_id, role) FROM grants WHERE grants.thread_key = threads.thread_key),
    coalesce((SELECT max(seq) FROM events WHERE events.thread_key = threads.thread_key), 0),
    threads.grant_version
FROM threads
WHERE threads.thread_id = ?1

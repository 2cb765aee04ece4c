-- A thread, the role of ?2 on it, and the beginning of its last event, which holds its time.
SELECT
    threads.title,
    threads.metadata,
    threads.join_policy,
    threads.created_ms,
    grants.role,
    events.seq,
    substr(events.text, 1, 96)
FROM threads
LEFT JOIN grants ON grants.thread_key = threads.thread_key AND grants.principal_id = ?2
LEFT JOIN events ON events.thread_key = threads.thread_key
    AND events.seq = (SELECT max(seq) FROM events WHERE thread_key = threads.thread_key)
WHERE threads.thread_id = ?1

SELECT coalesce((SELECT max(seq) FROM events WHERE events.thread_key = threads.thread_key), 0), threads.grant_version
FROM threads
WHERE threads.thread_id = ?1

-- A thread with the beginning of its last event, which holds its time.
SELECT
    threads.thread_key,
    threads.join_policy,
    threads.grant_version,
    activity.head,
    events.seq,
    substr(events.text, 1, 96)
FROM threads
JOIN activity ON activity.thread_key = threads.thread_key
LEFT JOIN events ON events.thread_key = threads.thread_key
    AND events.seq = (SELECT max(seq) FROM events WHERE thread_key = threads.thread_key)
WHERE threads.thread_id = ?1

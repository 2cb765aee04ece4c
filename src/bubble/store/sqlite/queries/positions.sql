SELECT json_group_array(json_array(
    threads.thread_id,
    coalesce((SELECT max(seq) FROM events WHERE events.thread_key = threads.thread_key), 0),
    threads.grant_version
))
FROM json_each(?1) AS asked
JOIN threads ON threads.thread_id = asked.value

-- Those of a thread's runs whose ids are in the JSON array ?2.
SELECT json_group_array(json_array(
    run_id, principal_id, kind, snapshot_seq, started_seq, started_ms, last_seq, last_ms, finished_seq, finished_ms, outcome
))
FROM runs
WHERE thread_key = ?1 AND run_id IN (SELECT value FROM json_each(?2))

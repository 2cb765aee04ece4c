-- A thread's open runs in the order of their first seq, after ?2; of principal ?3 where that is not NULL.
SELECT json_group_array(json_array(
    run_id, principal_id, kind, snapshot_seq, started_seq, started_ms, last_seq, last_ms, finished_seq, finished_ms, outcome
))
FROM (
    SELECT * FROM runs INDEXED BY open_runs
    WHERE thread_key = ?1
        AND started_seq > ?2
        AND finished_seq IS NULL
        AND (?3 IS NULL OR principal_id = ?3)
    ORDER BY started_seq LIMIT ?4
)

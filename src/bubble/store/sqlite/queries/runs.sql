-- A thread's runs in the order of their first seq, after ?2; of principal ?3 and in state ?5 where those are not NULL.
SELECT json_group_array(json_array(
    run_id, principal_id, kind, snapshot_seq, started_seq, started_ms, last_seq, last_ms, finished_seq, finished_ms, outcome
))
FROM (
    SELECT * FROM runs INDEXED BY runs_by_seq
    WHERE thread_key = ?1
        AND started_seq > ?2
        AND (?3 IS NULL OR principal_id = ?3)
        AND (?5 IS NULL OR iif(finished_seq IS NULL, 'open', 'finished') = ?5)
    ORDER BY started_seq LIMIT ?4
)

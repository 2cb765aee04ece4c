-- The ids of a principal's open runs on a thread, oldest first.
SELECT run_id
FROM runs INDEXED BY open_runs
WHERE thread_key = ?1 AND finished_seq IS NULL AND principal_id = ?2
ORDER BY started_seq

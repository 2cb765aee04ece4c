-- Open runs, up to ?3 of them, without an event since ?1 whose principal is connected to no node at ?2. The join leaves out threads that
-- are deleted.
SELECT json_group_array(json_array(thread_id, run_id))
FROM (
    SELECT threads.thread_id, runs.run_id
    FROM runs INDEXED BY open_runs
    JOIN threads USING (thread_key)
    WHERE runs.finished_seq IS NULL
        AND runs.last_ms < ?1
        AND NOT EXISTS (
            SELECT 1 FROM presence WHERE presence.principal_id = runs.principal_id AND presence.until_ms > ?2
        )
    LIMIT ?3
)

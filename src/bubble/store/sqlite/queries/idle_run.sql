-- When the open run ?2 of thread ?1 had its last event, if its principal is connected to no node at ?3.
SELECT last_ms FROM runs
WHERE thread_key = ?1
    AND run_id = ?2
    AND finished_seq IS NULL
    AND NOT EXISTS (
        SELECT 1 FROM presence WHERE presence.principal_id = runs.principal_id AND presence.until_ms > ?3
    )

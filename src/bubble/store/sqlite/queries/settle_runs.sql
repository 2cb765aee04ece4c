-- The newest event of each run that had events beyond the mark.
UPDATE runs SET last_seq = fresh.seq, last_ms = fresh.ms
FROM (
    SELECT
        thread_key,
        CAST(text AS TEXT) ->> '$.runId' AS run_id,
        max(seq) AS seq,
        CAST(round(unixepoch(CAST(text AS TEXT) ->> '$.createdAt', 'subsec') * 1000) AS INTEGER) AS ms
    FROM events NOT INDEXED
    WHERE event_id > ?1
    GROUP BY 1, 2
) AS fresh
WHERE runs.thread_key = fresh.thread_key AND runs.run_id = fresh.run_id

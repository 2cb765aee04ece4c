-- Where each thread stands that had events beyond the mark. With max(), the bare column comes from the same row. NOT INDEXED leaves
-- the event_id to search by.
UPDATE activity SET head = fresh.seq, last_ms = fresh.ms
FROM (
    SELECT
        thread_key,
        max(seq) AS seq,
        CAST(round(unixepoch(CAST(text AS TEXT) ->> '$.createdAt', 'subsec') * 1000) AS INTEGER) AS ms
    FROM events NOT INDEXED
    WHERE event_id > ?1
    GROUP BY thread_key
) AS fresh
WHERE activity.thread_key = fresh.thread_key

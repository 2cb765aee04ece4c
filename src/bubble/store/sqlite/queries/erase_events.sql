-- The first events of a thread, up to ?2 of them and about ?3 bytes, but at least one.
DELETE FROM events WHERE event_id IN (
    SELECT event_id
    FROM (
        SELECT event_id, length(text) AS size, sum(length(text)) OVER (ORDER BY seq) AS total
        FROM events
        WHERE thread_key = ?1
        ORDER BY seq LIMIT ?2
    )
    WHERE total - size < ?3
)

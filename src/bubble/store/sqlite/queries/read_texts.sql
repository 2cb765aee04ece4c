-- A run of events as one value. They are joined by the record separator, which no JSON text holds.
SELECT CAST(group_concat(text, char(30)) AS BLOB)
FROM (
    SELECT text FROM events
    WHERE thread_key = (SELECT thread_key FROM threads WHERE thread_id = ?1) AND seq >= ?2
    ORDER BY seq LIMIT ?3
)

-- As read_texts, but only the events up to ?4 whose text has the bytes ?5 in it.
SELECT CAST(group_concat(text, char(30)) AS BLOB)
FROM (
    SELECT text FROM events
    WHERE thread_key = (SELECT thread_key FROM threads WHERE thread_id = ?1)
        AND seq BETWEEN ?2 AND ?4
        AND instr(text, ?5)
    ORDER BY seq LIMIT ?3
)

SELECT CAST(group_concat(text, char(30)) AS BLOB), max(seq)
FROM (SELECT text, seq FROM events WHERE thread_key = ?1 AND seq > ?2 ORDER BY seq LIMIT ?3)

SELECT coalesce(cursors.seq, 0)
FROM threads
LEFT JOIN cursors ON cursors.thread_key = threads.thread_key AND cursors.principal_id = ?2
WHERE threads.thread_id = ?1

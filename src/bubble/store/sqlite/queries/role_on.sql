SELECT grants.role, threads.join_policy
FROM threads
LEFT JOIN grants ON grants.thread_key = threads.thread_key AND grants.principal_id = ?2
WHERE threads.thread_id = ?1

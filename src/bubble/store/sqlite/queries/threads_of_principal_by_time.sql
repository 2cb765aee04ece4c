-- A principal's threads, latest activity first, after (?1, ?2), where it has many: along the index on time until there are enough.
SELECT json_group_array(json_array(
    thread_id, title, CAST(metadata AS TEXT), join_policy, created_ms, head, last_ms, role
))
FROM (
    SELECT
        threads.thread_id, threads.title, threads.metadata, threads.join_policy, threads.created_ms,
        activity.head, activity.last_ms, grants.role
    FROM activity
    CROSS JOIN grants ON grants.thread_key = activity.thread_key AND grants.principal_id = ?5
    CROSS JOIN threads ON threads.thread_key = activity.thread_key
    WHERE activity.last_ms <= ?1
        AND (activity.last_ms < ?1 OR activity.thread_id > ?2)
        AND instr(threads.folded, ?3) > 0
    ORDER BY activity.last_ms DESC, activity.thread_id
    LIMIT ?4
)

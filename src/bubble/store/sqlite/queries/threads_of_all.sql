-- All threads with the role of ?5, latest activity first, after (?1, ?2). CROSS JOIN: in the order of the index on time.
SELECT json_group_array(json_array(
    thread_id, title, CAST(metadata AS TEXT), join_policy, created_ms, head, last_ms, role
))
FROM (
    SELECT
        threads.thread_id, threads.title, threads.metadata, threads.join_policy, threads.created_ms,
        activity.head, activity.last_ms, grants.role
    FROM activity
    CROSS JOIN threads ON threads.thread_key = activity.thread_key
    LEFT JOIN grants ON grants.thread_key = activity.thread_key AND grants.principal_id = ?5
    WHERE activity.last_ms <= ?1
        AND (activity.last_ms < ?1 OR activity.thread_id > ?2)
        AND instr(threads.folded, ?3) > 0
    ORDER BY activity.last_ms DESC, activity.thread_id
    LIMIT ?4
)

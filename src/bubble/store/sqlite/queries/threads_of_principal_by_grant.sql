-- A principal's threads, latest activity first, after (?1, ?2), where it has few: all of them, sorted.
SELECT json_group_array(json_array(
    thread_id, title, CAST(metadata AS TEXT), join_policy, created_ms, head, last_ms, role
))
FROM (
    SELECT
        threads.thread_id, threads.title, threads.metadata, threads.join_policy, threads.created_ms,
        activity.head, activity.last_ms, grants.role
    FROM grants
    CROSS JOIN activity ON activity.thread_key = grants.thread_key
    CROSS JOIN threads ON threads.thread_key = grants.thread_key
    WHERE grants.principal_id = ?5
        AND activity.last_ms <= ?1
        AND (activity.last_ms < ?1 OR activity.thread_id > ?2)
        AND instr(threads.folded, ?3) > 0
    ORDER BY activity.last_ms DESC, activity.thread_id
    LIMIT ?4
)

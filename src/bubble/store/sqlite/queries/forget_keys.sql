DELETE FROM idempotency_keys WHERE (thread_key, caller, key) IN (
    SELECT thread_key, caller, key FROM idempotency_keys
    WHERE created_ms < ?1
    ORDER BY created_ms LIMIT ?2
)

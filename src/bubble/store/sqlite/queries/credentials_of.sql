-- Newest first; of those made in the same millisecond, the one added last.
SELECT json_group_array(json_array(
    credential_id, kind, hex(secret_hash), principal_id, created_ms, expires_ms, parent_id, name,
    json(capabilities), json(threads), last_used_ms, revoked_ms, spent_ms
))
FROM (
    SELECT * FROM credentials
    WHERE principal_id = ?1 AND kind = ?2
    ORDER BY created_ms DESC, rowid DESC
)

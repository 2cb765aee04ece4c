SELECT json_group_array(json_array(
    credential_id, kind, hex(secret_hash), principal_id, created_ms, expires_ms, parent_id, name,
    json(capabilities), json(threads), last_used_ms, revoked_ms, spent_ms
))
FROM credentials
WHERE secret_hash = ?1

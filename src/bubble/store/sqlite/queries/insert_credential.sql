INSERT INTO credentials (
    credential_id, kind, secret_hash, principal_id, created_ms, expires_ms, parent_id, name,
    capabilities, threads, last_used_ms, revoked_ms, spent_ms
)
VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)

DELETE FROM credentials
WHERE kind IN (SELECT value FROM json_each(?1))
    AND (spent_ms IS NOT NULL OR revoked_ms IS NOT NULL OR expires_ms <= ?2)
    AND NOT EXISTS (SELECT 1 FROM credentials AS child WHERE child.parent_id = credentials.credential_id)

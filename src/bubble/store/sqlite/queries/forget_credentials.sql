-- What `bubble.store.credentials.is_forgettable` allows, where nothing was made from it.
DELETE FROM credentials
WHERE kind IN ('ticket', 'login')
    AND (spent_ms IS NOT NULL OR revoked_ms IS NOT NULL OR expires_ms <= ?1)
    AND NOT EXISTS (SELECT 1 FROM credentials AS child WHERE child.parent_id = credentials.credential_id)

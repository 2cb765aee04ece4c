-- The credential and everything made from it, however far down.
WITH RECURSIVE family (credential_id) AS (
    VALUES (?1)
    UNION
    SELECT child.credential_id FROM family JOIN credentials AS child ON child.parent_id = family.credential_id
)
UPDATE credentials SET revoked_ms = ?2 WHERE credential_id IN family AND revoked_ms IS NULL

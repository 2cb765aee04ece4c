-- Whose the credential is, and whose everything that was made from it.
WITH RECURSIVE family (credential_id) AS (
    VALUES (?1)
    UNION
    SELECT child.credential_id FROM family JOIN credentials AS child ON child.parent_id = family.credential_id
)
SELECT DISTINCT principal_id FROM credentials WHERE credential_id IN family

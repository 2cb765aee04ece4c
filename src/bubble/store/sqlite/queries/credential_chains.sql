-- Each credential asked for and what it was made from, nearest first, each with whether its principal is disabled.
WITH RECURSIVE chain (asked, depth, credential_id) AS (
    SELECT value, 0, value FROM json_each(?1)
    UNION
    SELECT chain.asked, chain.depth + 1, child.parent_id
    FROM chain
    JOIN credentials AS child USING (credential_id)
    WHERE child.parent_id IS NOT NULL
)
SELECT json_group_array(json_array(asked, json(iif(disabled_ms IS NULL, 'false', 'true')), json(credential)))
FROM (
    SELECT
        chain.asked,
        principals.disabled_ms,
        json_array(
    one.credential_id, one.kind, hex(one.secret_hash), one.principal_id, one.created_ms, one.expires_ms, one.parent_id, one.name,
    json(one.capabilities), json(one.threads), one.last_used_ms, one.revoked_ms, one.spent_ms
) AS credential
    FROM chain
    JOIN credentials AS one USING (credential_id)
    JOIN principals ON principals.principal_id = one.principal_id
    ORDER BY chain.asked, chain.depth
)

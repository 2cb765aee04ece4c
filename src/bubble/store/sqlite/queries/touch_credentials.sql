UPDATE credentials SET last_used_ms = max(used.value, coalesce(last_used_ms, 0))
FROM json_each(?1) AS used
WHERE credentials.credential_id = used.key

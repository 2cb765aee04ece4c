INSERT INTO cursors (thread_key, principal_id, seq)
VALUES (?1, ?2, ?3)
ON CONFLICT (thread_key, principal_id) DO UPDATE SET seq = max(seq, excluded.seq)
RETURNING seq

SELECT count(*) FROM (SELECT 1 FROM grants WHERE principal_id = ?1 LIMIT ?2)

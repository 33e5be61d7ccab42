-- A hub of an older version did not note its time. The newest time in its rows stands for it, so that the first start
-- notices rows from the future. Event ids are in the order of the hub's time.
INSERT INTO hub_time (one, last_now)
    SELECT 1, MAX(at) FROM (
        SELECT (SELECT accepted_at FROM events ORDER BY id DESC LIMIT 1) AS at
        UNION ALL SELECT MAX(seen_at) FROM conversations
        UNION ALL SELECT MAX(at) FROM injections
        UNION ALL SELECT MAX(created_at) FROM inbox
        UNION ALL SELECT MAX(created_at) FROM deliveries
        UNION ALL SELECT MAX(created_at) FROM reminders
    ) WHERE NOT EXISTS (SELECT 1 FROM hub_time) HAVING MAX(at) IS NOT NULL;

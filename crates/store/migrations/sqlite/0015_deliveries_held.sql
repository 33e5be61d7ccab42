-- What holds a waiting delivery back, as a code. It was told from the text of its reason.
ALTER TABLE deliveries ADD COLUMN held_by TEXT;
UPDATE deliveries SET held_by = 'quiet_hours', reason = NULL WHERE state = 'waiting' AND reason = 'quiet hours';

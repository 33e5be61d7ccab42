-- A message of its own text that an agent sends on one channel, held by quiet hours. It is a delivery that is sent alone; its text
-- may be longer than the inbox item's, and is read only when it is sent.
ALTER TABLE deliveries ADD COLUMN is_direct BIGINT NOT NULL DEFAULT 0;
CREATE TABLE direct_messages (
    delivery_id     BLOB   NOT NULL PRIMARY KEY,
    user_id         TEXT   NOT NULL,
    origin          TEXT   NOT NULL,
    subject         TEXT,
    message         TEXT   NOT NULL,
    needs_allowance BIGINT NOT NULL      -- 1: the target is another person's, allowed by the operator's list
) WITHOUT ROWID;
CREATE INDEX direct_messages_by_user ON direct_messages (user_id);
-- Retention deletes deliveries; the text goes with its delivery.
CREATE TRIGGER direct_messages_go_with_deliveries AFTER DELETE ON deliveries WHEN OLD.is_direct <> 0
BEGIN
    DELETE FROM direct_messages WHERE delivery_id = OLD.id;
END;

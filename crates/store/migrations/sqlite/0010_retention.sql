-- Unread inbox items, conversations and mailboxes that nobody used for long are found by their age or in order, and what
-- still waits in them by an index too.
CREATE INDEX inbox_unread_by_age ON inbox (created_at) WHERE read_at IS NULL;
-- A conversation that an event created was never seen.
CREATE INDEX conversations_by_last_use ON conversations (MAX(created_at, seen_at), id, user_id);
CREATE INDEX mailboxes_of_people ON mailboxes (owner, agent) WHERE conversation_id = '';
CREATE INDEX reminders_waiting ON reminders (user_id, conversation_id) WHERE ended_at IS NULL;
CREATE INDEX deliveries_open ON deliveries (notification_id) WHERE state IN ('waiting', 'claimed', 'started');

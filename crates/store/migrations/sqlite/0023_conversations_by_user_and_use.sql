-- A person's conversations are listed by their last use. The index is written when a conversation is created and when it
-- is seen, at most once a minute; publishing to an existing conversation does not write it.
CREATE INDEX conversations_by_user_and_use ON conversations (user_id, MAX(created_at, seen_at), id);

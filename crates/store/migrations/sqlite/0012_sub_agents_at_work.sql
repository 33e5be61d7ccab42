-- The sub-agents of a conversation that are at work, so that a call which does not say who makes it reads one row.
ALTER TABLE conversations ADD COLUMN workers TEXT NOT NULL DEFAULT '[]'; -- a JSON array of [agent, until in milliseconds]

-- The mailboxes in which something waits: a stream that connects is told of sub-agents' mail.
CREATE INDEX mailboxes_with_mail ON mailboxes (owner, conversation_id, agent) WHERE pending <> x'';

-- The mailboxes' log keeps what changed in them, one record a commit; what was whole in it moves to its place.
INSERT INTO mailboxes (owner, conversation_id, agent, state, pending, due_at)
    SELECT owner, conversation_id, agent, state, pending, due_at FROM mailbox_log
    WHERE sequence IN (SELECT MAX(sequence) FROM mailbox_log GROUP BY owner, conversation_id, agent)
    ON CONFLICT (owner, conversation_id, agent) DO UPDATE SET state = excluded.state, pending = excluded.pending,
    due_at = excluded.due_at;
DROP VIEW newest_mailboxes;
DROP TABLE mailbox_log;

-- Mailboxes that changed lately. Their newest states follow from here, and those of all others are in their place.
CREATE TABLE mailbox_log (
    sequence INTEGER NOT NULL PRIMARY KEY,
    changes  BLOB    NOT NULL            -- of each mailbox that a commit touched: the whole, or how it differs
);

-- A conversation's id means something only together with its owner: two people may use the same one.

CREATE TABLE owned_conversations (
    id          TEXT   NOT NULL,
    user_id     TEXT   NOT NULL,
    registered  BIGINT NOT NULL,         -- made by a caller who speaks for everyone: to such, the id alone means this one
    title       TEXT,
    boundary    TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    seen_at     BIGINT NOT NULL,         -- the last point, stream or PUT: within a day of it the conversation is open
    PRIMARY KEY (id, user_id)
) WITHOUT ROWID;
INSERT INTO owned_conversations (id, user_id, registered, title, boundary, created_at, seen_at)
    SELECT id, user_id, 1, title, boundary, created_at, seen_at FROM conversations;

CREATE TABLE owned_mailboxes (
    owner           TEXT   NOT NULL,
    conversation_id TEXT   NOT NULL,     -- '' and no agent: the mailbox of the person
    agent           TEXT   NOT NULL,
    state           BLOB   NOT NULL,
    due_at          BIGINT NOT NULL,     -- when it has something to do by itself
    PRIMARY KEY (owner, conversation_id, agent)
);
INSERT INTO owned_mailboxes (owner, conversation_id, agent, state, due_at)
    SELECT agent, '', '', state, due_at FROM mailboxes WHERE conversation_id = ''
    UNION ALL SELECT c.user_id, m.conversation_id, m.agent, m.state, m.due_at
    FROM mailboxes m JOIN conversations c ON c.id = m.conversation_id;

CREATE TABLE owned_notifications (
    id              BLOB   NOT NULL PRIMARY KEY,
    owner           TEXT   NOT NULL,
    conversation_id TEXT   NOT NULL,
    agent           TEXT   NOT NULL,
    subscriber_id   TEXT   NOT NULL,
    priority        TEXT   NOT NULL,
    inject_at       TEXT   NOT NULL,
    state           TEXT   NOT NULL,     -- pending, injected, replaced, expired, folded
    reason          TEXT,
    content         TEXT,                -- as it was shown
    call_id         TEXT,                -- the injection it was shown in
    created_at      BIGINT NOT NULL,
    ended_at        BIGINT,
    waiting         BLOB   NOT NULL
) WITHOUT ROWID;
INSERT INTO owned_notifications (id, owner, conversation_id, agent, subscriber_id, priority, inject_at, state, reason,
    content, call_id, created_at, ended_at, waiting)
    SELECT n.id, COALESCE(c.user_id, n.agent), n.conversation_id, CASE WHEN c.id IS NULL THEN '' ELSE n.agent END,
    n.subscriber_id, n.priority, n.inject_at, n.state, n.reason, n.content, n.call_id, n.created_at, n.ended_at, n.waiting
    FROM notifications n LEFT JOIN conversations c ON c.id = n.conversation_id;

CREATE TABLE owned_injections (
    owner                TEXT   NOT NULL,
    conversation_id      TEXT   NOT NULL,
    agent                TEXT   NOT NULL,
    call_id              TEXT   NOT NULL,
    point                TEXT   NOT NULL,
    at                   BIGINT NOT NULL,
    sequence             BIGINT NOT NULL, -- the order within the conversation
    unseen               BIGINT NOT NULL DEFAULT 0,
    answer               TEXT   NOT NULL,
    taken                BLOB   NOT NULL,
    system_messages_json TEXT   NOT NULL DEFAULT '[]',
    PRIMARY KEY (owner, conversation_id, agent, call_id)
) WITHOUT ROWID;
INSERT INTO owned_injections (owner, conversation_id, agent, call_id, point, at, sequence, unseen, answer, taken,
    system_messages_json)
    SELECT c.user_id, i.conversation_id, i.agent, i.call_id, i.point, i.at, i.sequence, i.unseen, i.answer, i.taken,
    i.system_messages_json FROM injections i JOIN conversations c ON c.id = i.conversation_id;

DROP TABLE conversations;
DROP TABLE mailboxes;
DROP TABLE notifications;
DROP TABLE injections;
ALTER TABLE owned_conversations RENAME TO conversations;
ALTER TABLE owned_mailboxes RENAME TO mailboxes;
ALTER TABLE owned_notifications RENAME TO notifications;
ALTER TABLE owned_injections RENAME TO injections;

CREATE INDEX conversations_by_user ON conversations (user_id, seen_at);
CREATE INDEX mailboxes_by_due ON mailboxes (due_at);
CREATE INDEX notifications_pending ON notifications (owner, conversation_id, agent) WHERE state = 'pending';
CREATE INDEX injections_in_order ON injections (owner, conversation_id, sequence);
CREATE INDEX injections_by_age ON injections (at);
CREATE INDEX injections_empty ON injections (at) WHERE system_messages_json = '[]';

-- A conversation's id means something only together with its owner: two people may use the same one. And what is written
-- in every commit is written at the end of its table, so that a commit changes a few pages and not one for every row.

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

-- With row numbers from here on: a row of more than a kilobyte stays on its page.
CREATE TABLE numbered_events (
    id              BLOB   NOT NULL PRIMARY KEY,
    type            TEXT   NOT NULL,
    source          TEXT   NOT NULL,
    severity        TEXT   NOT NULL,
    timestamp       BIGINT NOT NULL,
    payload         TEXT   NOT NULL,
    dedupe_key      TEXT,
    conversation_id TEXT,
    agent           TEXT   NOT NULL,
    user_id         TEXT,
    correlation_id  TEXT,
    cause           TEXT   NOT NULL,
    owner           TEXT   NOT NULL,     -- the person whose conversation it reached; erasing them erases it
    accepted_at     BIGINT NOT NULL,
    filtered        BIGINT NOT NULL,
    verdicts        TEXT   NOT NULL      -- one JSON array, written with the event and never changed
);
INSERT INTO numbered_events SELECT id, type, source, severity, timestamp, payload, dedupe_key, conversation_id, agent,
    user_id, correlation_id, cause, owner, accepted_at, filtered, verdicts FROM events ORDER BY id;

CREATE TABLE owned_mailboxes (
    owner           TEXT   NOT NULL,
    conversation_id TEXT   NOT NULL,     -- '' and no agent: the mailbox of the person
    agent           TEXT   NOT NULL,
    state           BLOB   NOT NULL,     -- one versioned blob of at most 64 KiB
    pending         BLOB   NOT NULL,     -- the ids of the notifications that wait in it, 16 bytes each
    due_at          BIGINT NOT NULL,     -- when it has something to do by itself
    PRIMARY KEY (owner, conversation_id, agent)
);
INSERT INTO owned_mailboxes (owner, conversation_id, agent, state, pending, due_at)
    SELECT COALESCE(c.user_id, m.agent), m.conversation_id, CASE WHEN c.id IS NULL THEN '' ELSE m.agent END, m.state,
    COALESCE((SELECT UNHEX(GROUP_CONCAT(HEX(n.id), '')) FROM notifications n WHERE n.conversation_id = m.conversation_id
    AND n.agent = m.agent AND n.state = 'pending'), x''), m.due_at
    FROM mailboxes m LEFT JOIN conversations c ON c.id = m.conversation_id
    WHERE c.id IS NOT NULL OR m.conversation_id = '';

-- Mailboxes that changed lately, in the order they changed. The newest state of a mailbox is here, or else in its place.
CREATE TABLE mailbox_log (
    sequence        INTEGER NOT NULL PRIMARY KEY,
    owner           TEXT    NOT NULL,
    conversation_id TEXT    NOT NULL,
    agent           TEXT    NOT NULL,
    state           BLOB    NOT NULL,
    pending         BLOB    NOT NULL,
    due_at          BIGINT  NOT NULL
);

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
    waiting         BLOB   NOT NULL      -- what its mailbox needs, while it waits
);
INSERT INTO owned_notifications (id, owner, conversation_id, agent, subscriber_id, priority, inject_at, state, reason,
    content, call_id, created_at, ended_at, waiting)
    SELECT n.id, COALESCE(c.user_id, n.agent), n.conversation_id, CASE WHEN c.id IS NULL THEN '' ELSE n.agent END,
    n.subscriber_id, n.priority, n.inject_at, n.state, n.reason, n.content, n.call_id, n.created_at, n.ended_at, n.waiting
    FROM notifications n LEFT JOIN conversations c ON c.id = n.conversation_id ORDER BY n.id;

CREATE TABLE owned_injections (
    sequence             INTEGER NOT NULL PRIMARY KEY, -- the order within the conversation
    owner                TEXT   NOT NULL,
    conversation_id      TEXT   NOT NULL,
    agent                TEXT   NOT NULL,
    call_id              TEXT   NOT NULL,
    point                TEXT   NOT NULL,
    at                   BIGINT NOT NULL,
    unseen               BIGINT NOT NULL DEFAULT 0,
    answer               TEXT   NOT NULL,
    taken                BLOB   NOT NULL,
    system_messages_json TEXT   NOT NULL DEFAULT '[]'
);
INSERT INTO owned_injections (sequence, owner, conversation_id, agent, call_id, point, at, unseen, answer, taken,
    system_messages_json)
    SELECT i.sequence, c.user_id, i.conversation_id, i.agent, i.call_id, i.point, i.at, i.unseen, i.answer, i.taken,
    i.system_messages_json FROM injections i JOIN conversations c ON c.id = i.conversation_id;

DROP TABLE conversations;
DROP TABLE events;
DROP TABLE mailboxes;
DROP TABLE notifications;
DROP TABLE injections;
ALTER TABLE owned_conversations RENAME TO conversations;
ALTER TABLE numbered_events RENAME TO events;
ALTER TABLE owned_mailboxes RENAME TO mailboxes;
ALTER TABLE owned_notifications RENAME TO notifications;
ALTER TABLE owned_injections RENAME TO injections;

CREATE INDEX conversations_by_user ON conversations (user_id, seen_at);
CREATE INDEX mailboxes_by_due ON mailboxes (due_at);
CREATE INDEX notifications_pending ON notifications (id) WHERE state = 'pending';
-- The first is also the order of each conversation's messages: an index ends in the row's number, which is the sequence.
CREATE INDEX injections_in_order ON injections (owner, conversation_id);
CREATE UNIQUE INDEX injections_by_call ON injections (owner, conversation_id, agent, call_id);
CREATE INDEX injections_by_age ON injections (at);
CREATE INDEX injections_empty ON injections (at) WHERE system_messages_json = '[]';

-- For whoever looks at the file: every mailbox as it is.
CREATE VIEW newest_mailboxes AS
    SELECT owner, conversation_id, agent, state, pending, due_at, MAX(sequence) AS sequence FROM (
        SELECT owner, conversation_id, agent, state, pending, due_at, sequence FROM mailbox_log
        UNION ALL SELECT owner, conversation_id, agent, state, pending, due_at, 0 FROM mailboxes
    ) GROUP BY owner, conversation_id, agent;

-- The tables of the hub. TEXT, BIGINT and BLOB only, so that the same queries run on other databases.
-- Times are milliseconds since 1970 (UTC). Ids of ours are 16 bytes and time-ordered: their indexes grow at one end.

-- One agent's running context, owned by one person for ever.
CREATE TABLE conversations (
    id          TEXT   NOT NULL PRIMARY KEY,
    user_id     TEXT   NOT NULL,
    title       TEXT,
    boundary    TEXT   NOT NULL,
    created_at  BIGINT NOT NULL,
    seen_at     BIGINT NOT NULL          -- the last point, stream or PUT: within a day of it the conversation is open
) WITHOUT ROWID;
CREATE INDEX conversations_by_user ON conversations (user_id, seen_at);

-- What happened. The verdicts are one JSON array, written with the event and never changed.
CREATE TABLE events (
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
    verdicts        TEXT   NOT NULL
) WITHOUT ROWID;

-- Names that senders brought themselves, and what they meant by them.
CREATE TABLE brought_ids (
    token_owner TEXT   NOT NULL,
    id          TEXT   NOT NULL,
    event_id    BLOB   NOT NULL,
    content     BLOB   NOT NULL,         -- a hash of the canonical JSON as it came
    at          BIGINT NOT NULL,
    PRIMARY KEY (token_owner, id)
) WITHOUT ROWID;
CREATE INDEX brought_ids_by_age ON brought_ids (at);

-- Calls that must happen once however often they are sent, and what they were answered; kept for a day.
CREATE TABLE idempotency_keys (
    token_id TEXT   NOT NULL,
    route    TEXT   NOT NULL,
    name     TEXT   NOT NULL,            -- the caller's Idempotency-Key
    content  BLOB   NOT NULL,            -- a hash of what was sent
    answer   TEXT   NOT NULL,
    at       BIGINT NOT NULL,
    PRIMARY KEY (token_id, route, name)
) WITHOUT ROWID;
CREATE INDEX idempotency_keys_by_age ON idempotency_keys (at);

-- Events whose place a newer one took before they were told.
CREATE TABLE superseded (
    event_id      BLOB   NOT NULL,
    subscriber_id TEXT   NOT NULL,
    newer_id      BLOB   NOT NULL,
    at            BIGINT NOT NULL,
    PRIMARY KEY (event_id, subscriber_id)
) WITHOUT ROWID;

-- The state machine of one agent: one versioned blob of at most 64 KiB, written once per commit. It has row numbers,
-- because SQLite keeps a large blob on one page only where a row has one, and because its timers then are small.
CREATE TABLE mailboxes (
    conversation_id TEXT   NOT NULL,
    agent           TEXT   NOT NULL,
    state           BLOB   NOT NULL,
    due_at          BIGINT NOT NULL,     -- when it has something to do by itself
    PRIMARY KEY (conversation_id, agent)
);
CREATE INDEX mailboxes_by_due ON mailboxes (due_at);

-- Messages ready for their audience. While one waits, `waiting` holds what its mailbox needs.
CREATE TABLE notifications (
    id              BLOB   NOT NULL PRIMARY KEY,
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
CREATE INDEX notifications_pending ON notifications (conversation_id, agent) WHERE state = 'pending';

-- What an agent was given at a point: the node its system messages hang on. The same call gets the same answer.
CREATE TABLE injections (
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
    PRIMARY KEY (conversation_id, agent, call_id)
) WITHOUT ROWID;
CREATE INDEX injections_in_order ON injections (conversation_id, sequence);
CREATE INDEX injections_by_age ON injections (at);
CREATE INDEX injections_empty ON injections (at) WHERE system_messages_json = '[]';

-- What a person prefers.
CREATE TABLE user_settings (
    user_id                   TEXT   NOT NULL PRIMARY KEY,
    disabled_subscribers_json TEXT   NOT NULL DEFAULT '[]',
    settings_json             TEXT   NOT NULL DEFAULT '{}',
    updated_at                BIGINT NOT NULL
) WITHOUT ROWID;

-- Who may do what. The secret itself is never here.
CREATE TABLE tokens (
    id              TEXT   NOT NULL PRIMARY KEY,
    secret_hash     BLOB   NOT NULL,
    scope           TEXT   NOT NULL,
    name            TEXT,
    user_id         TEXT,
    origin          TEXT,
    conversation_id TEXT,
    created_at      BIGINT NOT NULL,
    expires_at      BIGINT,
    revoked_at      BIGINT
) WITHOUT ROWID;
CREATE UNIQUE INDEX tokens_by_secret ON tokens (secret_hash);

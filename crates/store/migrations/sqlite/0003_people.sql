-- What people are told, what they did about it, and how it leaves the hub.

-- What a person was told. Names are time-ordered, so that the hour before now is one end of the key.
CREATE TABLE inbox (
    user_id          TEXT   NOT NULL,
    id               BLOB   NOT NULL,
    shelf            TEXT   NOT NULL,     -- message, toast, note: each with an hourly allowance of its own
    type             TEXT   NOT NULL,     -- reminder, info, success, warning, error
    origin           TEXT   NOT NULL,     -- the authenticated name of who tells
    conversation_id  TEXT,
    title            TEXT,
    message          TEXT   NOT NULL,
    toast_json       TEXT,                -- duration, position, buttons, and whether it may appear
    correlation_id   TEXT,
    created_at       BIGINT NOT NULL,
    read_at          BIGINT,              -- set for whatever was dismissed, too
    dismissed_at     BIGINT,
    acted_json       TEXT   NOT NULL DEFAULT '[]',
    created_sequence BIGINT NOT NULL,     -- positions in the person's stream
    changed_sequence BIGINT NOT NULL,
    PRIMARY KEY (user_id, id)
) WITHOUT ROWID;
CREATE INDEX inbox_by_change ON inbox (user_id, changed_sequence);
CREATE INDEX inbox_unread ON inbox (user_id) WHERE read_at IS NULL;
CREATE INDEX inbox_read ON inbox (read_at) WHERE read_at IS NOT NULL;

-- How far each inbox is. Positions are never used again, not even after somebody was erased: they begin with the time.
CREATE TABLE inbox_positions (
    user_id  TEXT   NOT NULL PRIMARY KEY,
    position BIGINT NOT NULL
) WITHOUT ROWID;

-- Ways of notifications out of the hub.
CREATE TABLE deliveries (
    id              BLOB   NOT NULL PRIMARY KEY,
    notification_id BLOB,                 -- NULL: the code that confirms the address
    user_id         TEXT   NOT NULL,
    channel         TEXT   NOT NULL,
    target          TEXT   NOT NULL,
    state           TEXT   NOT NULL,      -- waiting, claimed, started, sent, failed, unknown, skipped, cancelled
    reason          TEXT,
    attempts        BIGINT NOT NULL,
    not_before      BIGINT NOT NULL,
    lease_until     BIGINT,
    fence           BIGINT NOT NULL,      -- counts the claims: an older number is too late
    letter_id       BLOB,                 -- several for one person go as one letter, the same on every attempt
    created_at      BIGINT NOT NULL,
    ended_at        BIGINT
) WITHOUT ROWID;
CREATE INDEX deliveries_waiting ON deliveries (not_before, id) WHERE state = 'waiting';
CREATE INDEX deliveries_leased ON deliveries (lease_until) WHERE state IN ('claimed', 'started');
CREATE INDEX deliveries_by_user ON deliveries (user_id, id);
CREATE INDEX deliveries_ended ON deliveries (ended_at) WHERE ended_at IS NOT NULL;

-- What is to be told later: what was asked for, and news for which the hour had no room.
CREATE TABLE reminders (
    id              BLOB   NOT NULL PRIMARY KEY,
    user_id         TEXT   NOT NULL,
    origin          TEXT   NOT NULL,
    conversation_id TEXT,
    message         TEXT   NOT NULL,
    type            TEXT   NOT NULL,
    asked           BIGINT NOT NULL,
    at              BIGINT NOT NULL,
    due_at          BIGINT NOT NULL,
    correlation_id  TEXT,
    created_at      BIGINT NOT NULL,
    ended_at        BIGINT,
    notification_id BLOB
) WITHOUT ROWID;
CREATE INDEX reminders_due ON reminders (due_at, id) WHERE ended_at IS NULL;
CREATE INDEX reminders_by_user ON reminders (user_id, id);
CREATE INDEX reminders_ended ON reminders (ended_at) WHERE ended_at IS NOT NULL;

-- The code that was mailed to an address, hashed; one a person.
CREATE TABLE confirmations (
    user_id    TEXT   NOT NULL PRIMARY KEY,
    address    TEXT   NOT NULL,
    code       BLOB   NOT NULL,
    expires_at BIGINT NOT NULL,
    tries      BIGINT NOT NULL
) WITHOUT ROWID;

-- Secrets of the hub itself, such as the one that signs the links in its mails.
CREATE TABLE secrets (
    name  TEXT NOT NULL PRIMARY KEY,
    value BLOB NOT NULL
) WITHOUT ROWID;

-- Chats: where people write back to the hub.

-- Whose chat it is. A person has one chat per channel, and a chat belongs to one person.
CREATE TABLE chat_pairings (
    channel   TEXT   NOT NULL,
    target    TEXT   NOT NULL,            -- the chat, as in the person's settings
    user_id   TEXT   NOT NULL,
    sender    TEXT   NOT NULL,            -- the only sender who may act in this chat
    paired_at BIGINT NOT NULL,
    PRIMARY KEY (channel, target)
) WITHOUT ROWID;
CREATE UNIQUE INDEX chat_pairings_by_user ON chat_pairings (user_id, channel);

-- Codes that pair a chat, hashed; one per person and channel.
CREATE TABLE pairing_codes (
    code       BLOB   NOT NULL PRIMARY KEY,
    channel    TEXT   NOT NULL,
    user_id    TEXT   NOT NULL,
    expires_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE UNIQUE INDEX pairing_codes_by_user ON pairing_codes (user_id, channel);
CREATE INDEX pairing_codes_by_age ON pairing_codes (expires_at);

-- Chats that belong to no person: when they were answered last, and how many wrong codes they sent.
CREATE TABLE chat_strangers (
    channel     TEXT   NOT NULL,
    target      TEXT   NOT NULL,
    seen_at     BIGINT NOT NULL,
    answered_at BIGINT,
    wrong_codes BIGINT NOT NULL,
    wrong_since BIGINT NOT NULL,          -- when the hour began in which they are counted
    PRIMARY KEY (channel, target)
) WITHOUT ROWID;
CREATE INDEX chat_strangers_by_age ON chat_strangers (seen_at);

-- What providers sent. A row is written before the provider is told to forget the update, and handled once.
CREATE TABLE chat_updates (
    channel     TEXT   NOT NULL,
    id          BIGINT NOT NULL,
    body        TEXT,                     -- as it came; NULL once it is handled
    received_at BIGINT NOT NULL,
    handled_at  BIGINT,
    outcome     TEXT,                     -- what became of it, such as message, pressed, wrong_code
    PRIMARY KEY (channel, id)
) WITHOUT ROWID;
CREATE INDEX chat_updates_waiting ON chat_updates (channel, id) WHERE handled_at IS NULL;
CREATE INDEX chat_updates_handled ON chat_updates (handled_at) WHERE handled_at IS NOT NULL;

-- Messages of paired chats, in both directions: the conversation that an answer to one belongs to.
CREATE TABLE chat_messages (
    channel         TEXT   NOT NULL,
    target          TEXT   NOT NULL,
    message_id      BIGINT NOT NULL,
    user_id         TEXT   NOT NULL,
    conversation_id TEXT,
    origin          TEXT,                 -- NULL: the person wrote it, or it has several origins
    notification_id BLOB,                 -- the notification whose buttons it shows
    at              BIGINT NOT NULL,
    edit_at         BIGINT,               -- when it is to be edited, because the notification was settled
    edit_attempts   BIGINT NOT NULL,
    PRIMARY KEY (channel, target, message_id)
) WITHOUT ROWID;
CREATE INDEX chat_messages_by_user ON chat_messages (user_id);
CREATE INDEX chat_messages_with_buttons ON chat_messages (notification_id) WHERE notification_id IS NOT NULL;
CREATE INDEX chat_messages_to_edit ON chat_messages (channel, edit_at) WHERE edit_at IS NOT NULL;
CREATE INDEX chat_messages_by_age ON chat_messages (at);

-- Buttons under messages, by the hash of their token. Each works once.
CREATE TABLE chat_buttons (
    token           BLOB   NOT NULL PRIMARY KEY,
    channel         TEXT   NOT NULL,
    target          TEXT   NOT NULL,
    user_id         TEXT   NOT NULL,
    notification_id BLOB,                 -- it presses this button of a notification …
    action_index    BIGINT,
    kept_id         BLOB,                 -- … or sends a kept message to this conversation
    conversation_id TEXT,
    expires_at      BIGINT NOT NULL,
    used_at         BIGINT
) WITHOUT ROWID;
CREATE INDEX chat_buttons_by_user ON chat_buttons (user_id);
CREATE INDEX chat_buttons_by_age ON chat_buttons (expires_at);

-- A person's messages that wait for the person to say which conversation they are for.
CREATE TABLE kept_messages (
    id         BLOB   NOT NULL PRIMARY KEY,
    user_id    TEXT   NOT NULL,
    channel    TEXT   NOT NULL,
    target     TEXT   NOT NULL,
    message_id BIGINT NOT NULL,
    endpoint   TEXT   NOT NULL,
    sender     TEXT   NOT NULL,
    thread     TEXT   NOT NULL,
    text       TEXT   NOT NULL,
    created_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX kept_messages_by_user ON kept_messages (user_id);
CREATE INDEX kept_messages_by_age ON kept_messages (created_at);

-- Tasks that only one process may run at a time.
CREATE TABLE leases (
    name   TEXT   NOT NULL PRIMARY KEY,
    holder TEXT   NOT NULL,
    until  BIGINT NOT NULL,
    fence  BIGINT NOT NULL                -- incremented when the holder changes
) WITHOUT ROWID;

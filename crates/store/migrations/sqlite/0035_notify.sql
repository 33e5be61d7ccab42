-- Requests of the notify tool: each is attempted once, and its answer is remembered for a day.
CREATE TABLE notify_requests (
    key             BLOB   NOT NULL PRIMARY KEY, -- hash of request, origin, intent, channel, target and texts
    request_id      BLOB   NOT NULL,
    origin          TEXT   NOT NULL,
    intent          TEXT   NOT NULL,
    channel         TEXT   NOT NULL,
    user_id         TEXT,                        -- the recipient, if the target is a person's
    on_behalf_of    TEXT,                        -- the person the agent works for
    limit_key       BLOB,                        -- hash of a target that is nobody's: its hourly limit counts these
    state           TEXT   NOT NULL,             -- claimed, started, released, ended
    fence           BIGINT NOT NULL,             -- incremented by every claim; an older one is ignored
    lease_until     BIGINT,
    answer_json     TEXT,                        -- the answer, once it has ended
    notification_id BLOB,                        -- the item in the recipient's inbox
    created_at      BIGINT NOT NULL,
    ended_at        BIGINT
) WITHOUT ROWID;
CREATE INDEX notify_requests_by_user ON notify_requests (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX notify_requests_on_behalf_of ON notify_requests (on_behalf_of) WHERE on_behalf_of IS NOT NULL;
CREATE INDEX notify_requests_by_limit ON notify_requests (limit_key, created_at) WHERE limit_key IS NOT NULL;
CREATE INDEX notify_requests_leased ON notify_requests (lease_until) WHERE state IN ('claimed', 'started');
CREATE INDEX notify_requests_ended ON notify_requests (ended_at) WHERE ended_at IS NOT NULL;

-- Every decision on a notify request, without texts and addresses. Ids are time-ordered.
CREATE TABLE ledger (
    id              BLOB   NOT NULL PRIMARY KEY,
    origin          TEXT   NOT NULL,
    user_id         TEXT,                        -- the recipient, else the person the agent works for
    channel         TEXT   NOT NULL,
    intent          TEXT   NOT NULL,
    decision        TEXT   NOT NULL,             -- delivered, deferred, refused, failed, unknown
    class           TEXT,                        -- the class of the error
    reason          TEXT,
    notification_id BLOB,
    request_id      BLOB
) WITHOUT ROWID;
CREATE INDEX ledger_by_origin ON ledger (origin, id);
CREATE INDEX ledger_by_user ON ledger (user_id, id) WHERE user_id IS NOT NULL;

-- How many decisions of each kind an origin had on a day (UTC, days since 1970). They name no person.
CREATE TABLE ledger_days (
    origin   TEXT   NOT NULL,
    day      BIGINT NOT NULL,
    decision TEXT   NOT NULL,
    count    BIGINT NOT NULL,
    PRIMARY KEY (origin, day, decision)
) WITHOUT ROWID;
CREATE INDEX ledger_days_by_age ON ledger_days (day);

-- Messages that people sent by a channel: what a reply may answer.
CREATE TABLE inbound_messages (
    channel         TEXT   NOT NULL,
    thread          TEXT   NOT NULL,             -- its source_thread_identity
    user_id         TEXT   NOT NULL,
    conversation_id TEXT   NOT NULL,
    context_json    TEXT   NOT NULL,             -- its request_context
    at              BIGINT NOT NULL,
    PRIMARY KEY (channel, thread)
) WITHOUT ROWID;
CREATE INDEX inbound_messages_by_user ON inbound_messages (user_id);
CREATE INDEX inbound_messages_by_age ON inbound_messages (at);

-- The newest of these messages that each agent has read.
CREATE TABLE reply_contexts (
    user_id         TEXT   NOT NULL,
    conversation_id TEXT   NOT NULL,
    agent           TEXT   NOT NULL,
    context_json    TEXT   NOT NULL,
    at              BIGINT NOT NULL,
    PRIMARY KEY (user_id, conversation_id, agent)
) WITHOUT ROWID;
CREATE INDEX reply_contexts_by_age ON reply_contexts (at);

-- How many replies and reactions a message has had.
CREATE TABLE answer_counts (
    key     BLOB   NOT NULL PRIMARY KEY,
    user_id TEXT,
    used    BIGINT NOT NULL,
    at      BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX answer_counts_by_user ON answer_counts (user_id) WHERE user_id IS NOT NULL;
CREATE INDEX answer_counts_by_age ON answer_counts (at);

-- Whose target an address is. Derived from user_settings, and written with it.
CREATE TABLE person_targets (
    channel TEXT NOT NULL,
    target  TEXT NOT NULL,                       -- trimmed, in lower case
    user_id TEXT NOT NULL,
    PRIMARY KEY (channel, target, user_id)
) WITHOUT ROWID;
CREATE INDEX person_targets_by_user ON person_targets (user_id);
-- Settings that were not changed since channels have names still have the two fields of earlier versions.
WITH settings AS (
    SELECT user_id, CASE WHEN json_valid(settings_json) THEN settings_json ELSE '{}' END AS stored FROM user_settings
), targets AS (
    SELECT user_id, channel.key AS channel, json_extract(stored, channel.fullkey || '.target') AS target
    FROM settings, json_each(stored, '$.channels') AS channel
    UNION ALL SELECT user_id, 'email', json_extract(stored, '$.email.address') FROM settings
    UNION ALL SELECT user_id, 'telegram', json_extract(stored, '$.telegram.chat_id') FROM settings
)
INSERT OR IGNORE INTO person_targets (channel, target, user_id)
    SELECT channel, LOWER(TRIM(target)), user_id FROM targets WHERE target IS NOT NULL AND target <> '';

-- Erasing a person works in steps of a bounded number of rows, each found by an index.

-- The people whose erasure is under way. A start goes on with it.
CREATE TABLE erasures (
    user_id TEXT NOT NULL PRIMARY KEY
) WITHOUT ROWID;

CREATE INDEX events_by_owner ON events (owner);
CREATE INDEX notifications_by_owner ON notifications (owner);
CREATE INDEX brought_ids_by_event ON brought_ids (event_id);
CREATE INDEX tokens_by_user ON tokens (user_id) WHERE user_id IS NOT NULL;

-- The people that a remembered answer is about, one row each. `at` is that of the answer: a key that was used again after a
-- day has another one.
CREATE TABLE idempotency_subjects (
    user_id  TEXT   NOT NULL,
    token_id TEXT   NOT NULL,
    route    TEXT   NOT NULL,
    name     TEXT   NOT NULL,
    at       BIGINT NOT NULL,
    PRIMARY KEY (user_id, token_id, route, name)
) WITHOUT ROWID;
CREATE INDEX idempotency_subjects_by_age ON idempotency_subjects (at);
INSERT INTO idempotency_subjects (user_id, token_id, route, name, at)
    SELECT DISTINCT person.value, token_id, route, name, at FROM idempotency_keys,
        -- A damaged row names nobody, and must not stop the upgrade.
        json_each(CASE WHEN json_valid(people) THEN people ELSE '[]' END) AS person
    WHERE person.value IS NOT NULL;
ALTER TABLE idempotency_keys DROP COLUMN people;

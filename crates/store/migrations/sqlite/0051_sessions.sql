-- Codes of sign-in links, hashed. A code is deleted when it is used.
CREATE TABLE sign_in_codes (
    code       BLOB   NOT NULL PRIMARY KEY,
    scope      TEXT   NOT NULL,          -- user, admin
    user_id    TEXT   NOT NULL,
    expires_at BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX sign_in_codes_by_user ON sign_in_codes (user_id);
CREATE INDEX sign_in_codes_by_end ON sign_in_codes (expires_at);

-- The browsers in which people are signed in. The secret itself is never here.
CREATE TABLE sessions (
    id          TEXT   NOT NULL PRIMARY KEY,
    secret_hash BLOB   NOT NULL,
    scope       TEXT   NOT NULL,
    user_id     TEXT   NOT NULL,
    name        TEXT,
    created_at  BIGINT NOT NULL,
    expires_at  BIGINT NOT NULL,
    used_at     BIGINT NOT NULL,         -- noted at most once an hour
    ends_at     BIGINT NOT NULL          -- when it expires, or earlier because it is not used
) WITHOUT ROWID;
CREATE UNIQUE INDEX sessions_by_secret ON sessions (secret_hash);
CREATE INDEX sessions_by_user ON sessions (user_id, scope, used_at);
CREATE INDEX sessions_of_operators ON sessions (created_at) WHERE scope = 'admin';
CREATE INDEX sessions_by_end ON sessions (ends_at);

-- The people who were erased, as SHA-256 hashes of their ids: a repeated request to erase one of them is answered as the
-- first one, and one for an id that was never used is refused. Kept for some days.
CREATE TABLE erased_users (
    digest BLOB   NOT NULL PRIMARY KEY,
    at     BIGINT NOT NULL
) WITHOUT ROWID;
CREATE INDEX erased_users_by_age ON erased_users (at);

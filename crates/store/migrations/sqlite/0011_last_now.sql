-- The hub's time, noted every few seconds: a start compares it with the wall clock, which may have been set back.
CREATE TABLE hub_time (
    one      BIGINT NOT NULL PRIMARY KEY, -- always 1
    last_now BIGINT NOT NULL
);

-- Deliveries are claimed channel by channel: a backlog of one channel must cost the others nothing.
DROP INDEX deliveries_waiting;
CREATE INDEX deliveries_waiting ON deliveries (not_before) WHERE state = 'waiting';
CREATE INDEX deliveries_waiting_by_channel ON deliveries (channel, not_before, id, user_id) WHERE state = 'waiting';
CREATE INDEX deliveries_waiting_by_user_and_channel ON deliveries (user_id, channel, id) WHERE state = 'waiting';

-- The code that was sent to a target, hashed; one per person and channel. So far only addresses had codes.
ALTER TABLE confirmations RENAME TO confirmations_of_addresses;
CREATE TABLE confirmations (
    user_id    TEXT   NOT NULL,
    channel    TEXT   NOT NULL,
    target     TEXT   NOT NULL,
    code       BLOB   NOT NULL,
    expires_at BIGINT NOT NULL,
    tries      BIGINT NOT NULL,
    PRIMARY KEY (user_id, channel)
) WITHOUT ROWID;
INSERT INTO confirmations (user_id, channel, target, code, expires_at, tries)
    SELECT user_id, 'email', address, code, expires_at, tries FROM confirmations_of_addresses;
DROP TABLE confirmations_of_addresses;

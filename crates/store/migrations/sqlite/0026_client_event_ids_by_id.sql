-- An operator finds an event by the id of its sender without knowing the sender. The index has a hash of that id, not the
-- id: SQLite leaves copies of index keys in half-filled pages, where erasing a person would not find them.
ALTER TABLE events ADD COLUMN client_id_hash BLOB;
CREATE INDEX events_by_client_id_hash ON events (client_id_hash, id) WHERE client_id_hash IS NOT NULL;

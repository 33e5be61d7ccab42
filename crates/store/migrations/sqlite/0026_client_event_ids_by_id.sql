-- An operator finds an event by the id of its sender without knowing the sender; the newest first.
CREATE INDEX brought_ids_by_id ON brought_ids (id, at);

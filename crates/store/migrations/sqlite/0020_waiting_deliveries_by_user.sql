-- What waits for one person is read in pages: other quiet hours plan it anew, and a letter carries it together.
CREATE INDEX deliveries_waiting_by_user ON deliveries (user_id, id) WHERE state = 'waiting';

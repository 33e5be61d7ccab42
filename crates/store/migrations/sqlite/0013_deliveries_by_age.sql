-- Deliveries are claimed by age, in turn between people: the index also tells whose each is.
DROP INDEX deliveries_waiting;
CREATE INDEX deliveries_waiting ON deliveries (not_before, id, user_id) WHERE state = 'waiting';

-- A letter that is tried again is loaded as a whole.
CREATE INDEX deliveries_by_letter ON deliveries (letter_id) WHERE letter_id IS NOT NULL;

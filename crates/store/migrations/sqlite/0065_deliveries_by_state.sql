-- Finds the dead letters of everyone. Without it, a list of one state read all deliveries. The two states of an attempt are left
-- out: few deliveries are in them, and each passes through both.
CREATE INDEX deliveries_by_state ON deliveries (state, id) WHERE state NOT IN ('claimed', 'started');

-- What was sent so far of a message that goes out in parts, in the channel's own form; NULL = nothing.
ALTER TABLE deliveries ADD COLUMN progress TEXT;

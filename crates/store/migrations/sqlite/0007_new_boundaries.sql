-- Boundaries came from the generator of ids and could be guessed from ids. Every conversation gets a new one, from SQLite's
-- own generator, which the operating system seeds; its next injection says that the boundary has changed.
ALTER TABLE conversations ADD COLUMN boundary_changed BIGINT NOT NULL DEFAULT 0; -- 1: no injection has said so yet
UPDATE conversations SET boundary = LOWER(HEX(RANDOMBLOB(8))), boundary_changed = 1;

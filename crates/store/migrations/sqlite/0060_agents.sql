-- The working directory of a harness's session, by which commands in that folder find it.
ALTER TABLE conversations ADD COLUMN folder TEXT;

-- Each sub-agent has its own boundary: derived from this secret, or the one that it was given since. The secret comes from
-- SQLite's own generator, which the operating system seeds; new conversations get it from the hub.
ALTER TABLE conversations ADD COLUMN agent_secret BLOB NOT NULL DEFAULT x'';
ALTER TABLE conversations ADD COLUMN agent_boundaries TEXT NOT NULL DEFAULT '[]'; -- a JSON array of [agent, boundary]
UPDATE conversations SET agent_secret = RANDOMBLOB(16);

-- Whoever speaks for everyone is answered about people, and what it was answered is erased with them.
ALTER TABLE idempotency_keys ADD COLUMN people TEXT NOT NULL DEFAULT '[]'; -- a JSON array of those the answer is about

-- Beside the authenticated origin of what a person was told stands the source that its events name.
ALTER TABLE inbox ADD COLUMN source TEXT;
ALTER TABLE reminders ADD COLUMN source TEXT;

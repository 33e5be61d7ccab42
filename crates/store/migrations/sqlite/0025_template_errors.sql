-- Why the template of a notification failed, so that it was shown in the built-in form; NULL if it did not.
ALTER TABLE notifications ADD COLUMN template_error TEXT;
ALTER TABLE inbox ADD COLUMN template_error TEXT;
ALTER TABLE reminders ADD COLUMN template_error TEXT;

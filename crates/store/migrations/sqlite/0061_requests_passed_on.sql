-- Whether a started request was passed on to a Messenger elsewhere, and nobody has taken it over.
ALTER TABLE notify_requests ADD COLUMN is_passed_on BIGINT NOT NULL DEFAULT 0;

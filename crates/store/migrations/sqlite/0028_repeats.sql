-- How many repeats of a notification's events were counted, as a number. Before, it stood as words at the end of the message,
-- where a text from outside could forge it; messages of older rows keep these words as text.
ALTER TABLE inbox ADD COLUMN repeats BIGINT NOT NULL DEFAULT 0;
ALTER TABLE reminders ADD COLUMN repeats BIGINT NOT NULL DEFAULT 0;

-- Erasing a person walks through events and notifications in bounded steps. Indexes by owner made publishing write more
-- than twice as much: each entry is on another page.
DROP INDEX events_by_owner;
DROP INDEX notifications_by_owner;

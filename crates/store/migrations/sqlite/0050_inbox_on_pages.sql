-- A page that connects shows the toasts that are still due. One that stays until it is dismissed can be old, so it is found
-- by an index of its own.
ALTER TABLE inbox ADD COLUMN persistent BIGINT NOT NULL DEFAULT 0; -- 1: a toast that is shown until it is dismissed
UPDATE inbox SET persistent = 1 WHERE toast_json IS NOT NULL AND read_at IS NULL
    -- A damaged row must not stop the upgrade.
    AND CASE WHEN json_valid(toast_json)
        THEN json_extract(toast_json, '$.duration') = 0 AND json_extract(toast_json, '$.shown') = 1 ELSE 0 END;
CREATE INDEX inbox_persistent ON inbox (user_id, id) WHERE persistent = 1 AND read_at IS NULL;

-- The deliveries of the items of one page are read together. This index replaces the one of open deliveries.
DROP INDEX deliveries_open;
CREATE INDEX deliveries_by_notification ON deliveries (notification_id) WHERE notification_id IS NOT NULL;

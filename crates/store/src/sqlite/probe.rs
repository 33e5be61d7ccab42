//! Checks whether the main tables accept rows.
//!
//! A table with damaged pages fails every command that writes to it, while a commit to another table succeeds.

use rusqlite::Connection;

use super::transaction;

/// One row per main table. Its id is larger than every real one, so that the row goes to the page of new rows.
const ROWS: [&str; 10] = [
    "INSERT INTO conversations (id, user_id, registered, boundary, created_at, seen_at) VALUES ('', '', 0, '', 0, 0)",
    "INSERT INTO events (id, type, source, severity, timestamp, payload, agent, cause, owner, accepted_at, filtered, \
     verdicts) VALUES (x'ffffffffffffffffffffffffffffffff', '', '', '', 0, '', '', '', '', 0, 0, '')",
    "INSERT INTO brought_ids (token_owner, id, event_id, content, at) VALUES ('', '', x'', x'', 0)",
    "INSERT INTO notifications (id, owner, conversation_id, agent, subscriber_id, priority, inject_at, state, \
     created_at, waiting) VALUES (x'ffffffffffffffffffffffffffffffff', '', '', '', '', '', '', 'pending', 0, x'')",
    "INSERT INTO injections (owner, conversation_id, agent, call_id, point, at, answer, taken) \
     VALUES ('', '', '', '', '', 0, '', x'')",
    "INSERT INTO mailboxes (owner, conversation_id, agent, state, pending, due_at) VALUES ('', '', '', x'', x'', 0)",
    "INSERT INTO mailbox_log (changes) VALUES (x'')",
    "INSERT INTO inbox (user_id, id, shelf, type, origin, message, created_at, created_sequence, changed_sequence) \
     VALUES ('', x'', '', '', '', '', 0, 0, 0)",
    "INSERT INTO deliveries (id, user_id, channel, target, state, attempts, not_before, fence, created_at) \
     VALUES (x'ffffffffffffffffffffffffffffffff', '', '', '', 'waiting', 0, 0, 0, 0)",
    "INSERT INTO reminders (id, user_id, origin, message, type, asked, at, due_at, created_at) \
     VALUES (x'ffffffffffffffffffffffffffffffff', '', '', '', '', 0, 0, 0, 0)",
];

/// Inserts a row into each main table and rolls all of them back.
pub(super) fn tables(connection: &Connection) -> rusqlite::Result<()> {
    transaction::roll_back(connection, |connection| {
        ROWS.iter().try_for_each(|row| connection.prepare_cached(row)?.execute([]).map(drop))
    })
}

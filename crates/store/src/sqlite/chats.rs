//! The statements that delete and correct rows of chats: erasing, retention, times ahead of the clock.

use bellwire_core::Time;

use crate::writer::PruneCutoffs;

/// Erases a person. Each statement finds its rows by an index.
pub(super) const ERASED: [&str; 5] = [
    "DELETE FROM chat_pairings WHERE (channel, target) IN \
     (SELECT channel, target FROM chat_pairings WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM pairing_codes WHERE code IN (SELECT code FROM pairing_codes WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM chat_messages WHERE (channel, target, message_id) IN \
     (SELECT channel, target, message_id FROM chat_messages WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM chat_buttons WHERE token IN (SELECT token FROM chat_buttons WHERE user_id = ?1 LIMIT ?2)",
    "DELETE FROM kept_messages WHERE id IN (SELECT id FROM kept_messages WHERE user_id = ?1 LIMIT ?2)",
];

/// The updates of times that are ahead of `now`.
pub(super) const FROM_THE_FUTURE: [&str; 5] = [
    "UPDATE pairing_codes SET expires_at = ?1 + 600000 WHERE expires_at > ?1 + 600000",
    "UPDATE chat_strangers SET seen_at = MIN(seen_at, ?1), answered_at = MIN(answered_at, ?1), \
     wrong_since = MIN(wrong_since, ?1) WHERE seen_at > ?1",
    "UPDATE chat_messages SET at = MIN(at, ?1), edit_at = MIN(edit_at, ?1) WHERE at > ?1 OR edit_at > ?1",
    "UPDATE chat_updates SET handled_at = ?1 WHERE handled_at > ?1",
    "UPDATE kept_messages SET created_at = ?1 WHERE created_at > ?1",
];

/// Retention, each with the time before which rows are old.
pub(super) fn pruned(before: &PruneCutoffs) -> [(&'static str, Time); 6] {
    let day = before.idempotency_keys;
    [
        (
            "DELETE FROM chat_messages WHERE (channel, target, message_id) IN \
             (SELECT channel, target, message_id FROM chat_messages WHERE at < ?1 LIMIT ?2)",
            before.inbox,
        ),
        (
            "DELETE FROM chat_updates WHERE (channel, id) IN \
             (SELECT channel, id FROM chat_updates WHERE handled_at < ?1 LIMIT ?2)",
            before.answers,
        ),
        (
            "DELETE FROM chat_strangers WHERE (channel, target) IN \
             (SELECT channel, target FROM chat_strangers WHERE seen_at < ?1 LIMIT ?2)",
            day,
        ),
        (
            "DELETE FROM pairing_codes WHERE code IN (SELECT code FROM pairing_codes WHERE expires_at < ?1 LIMIT ?2)",
            day,
        ),
        (
            "DELETE FROM chat_buttons WHERE token IN (SELECT token FROM chat_buttons WHERE expires_at < ?1 LIMIT ?2)",
            day,
        ),
        ("DELETE FROM kept_messages WHERE id IN (SELECT id FROM kept_messages WHERE created_at < ?1 LIMIT ?2)", day),
    ]
}

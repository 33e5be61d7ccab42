//! Writes the rows of `notify`.

use bellwire_core::Time;
use bellwire_core::notify::{Intent, normalized_target};
use bellwire_core::person::PersonSettings;
use rusqlite::{Connection, params};

use super::insert::json;
use crate::notify::{LedgerEntry, NotifyChanges, day_of, targets_of};

pub(super) fn write(connection: &Connection, changes: &NotifyChanges) -> rusqlite::Result<()> {
    if changes.is_empty() {
        return Ok(());
    }
    requests(connection, changes)?;
    ledger(connection, changes)?;
    inbound(connection, changes)?;
    answer_counts(connection, changes)
}

/// Replaces the targets of a person, together with their settings.
pub(super) fn targets(connection: &Connection, user_id: &str, settings: &PersonSettings) -> rusqlite::Result<()> {
    connection.prepare_cached("DELETE FROM person_targets WHERE user_id = ?1")?.execute([user_id])?;
    let mut insert = connection
        .prepare_cached("INSERT OR IGNORE INTO person_targets (channel, target, user_id) VALUES (?, ?, ?)")?;
    for (channel, target) in targets_of(settings) {
        insert.execute(params![channel, normalized_target(target), user_id])?;
    }
    Ok(())
}

fn requests(connection: &Connection, changes: &NotifyChanges) -> rusqlite::Result<()> {
    // A key that was forgotten or released may be claimed again, for another recipient's settings.
    let mut insert = connection.prepare_cached(
        "INSERT OR REPLACE INTO notify_requests (key, request_id, origin, intent, channel, user_id, on_behalf_of, limit_key, \
         state, fence, lease_until, answer_json, notification_id, created_at, ended_at, is_passed_on, call_key, \
         context_json) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    for row in changes.requests.values() {
        insert.execute(params![
            row.key,
            row.request_id.as_bytes(),
            row.origin,
            row.intent.as_str(),
            row.channel.as_str(),
            row.user_id,
            row.on_behalf_of,
            row.limit_key,
            row.state.as_str(),
            row.fence,
            row.lease_until.map(Time::as_millis),
            row.answer.as_ref().map(json),
            row.notification_id.as_ref().map(|id| id.0.as_bytes()),
            row.created_at.as_millis(),
            row.ended_at.map(Time::as_millis),
            row.is_passed_on,
            row.chosen.as_ref().map(|chosen| chosen.call_key),
            row.chosen.as_ref().map(|chosen| chosen.context.to_json().to_string()),
        ])?;
    }
    Ok(())
}

fn ledger(connection: &Connection, changes: &NotifyChanges) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT INTO ledger (id, origin, user_id, channel, intent, decision, class, reason, notification_id, request_id) \
         VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?;
    let mut count = connection.prepare_cached(
        "INSERT INTO ledger_days (origin, day, decision, count) VALUES (?, ?, ?, 1) \
         ON CONFLICT (origin, day, decision) DO UPDATE SET count = count + 1",
    )?;
    for row in &changes.ledger {
        let LedgerEntry { id, at, decided } = &row.entry;
        count.execute(params![decided.origin, day_of(*at), decided.decision.as_str()])?;
        if !row.is_listed {
            continue;
        }
        insert.execute(params![
            id.as_bytes(),
            decided.origin,
            decided.user_id,
            decided.channel,
            decided.intent.map_or("", Intent::as_str),
            decided.decision.as_str(),
            decided.class.map(|class| class.as_str()),
            decided.reason,
            decided.notification_id.as_ref().map(|id| id.as_bytes()),
            decided.request_id.as_ref().map(|id| id.as_bytes()),
        ])?;
    }
    Ok(())
}

fn inbound(connection: &Connection, changes: &NotifyChanges) -> rusqlite::Result<()> {
    let mut insert = connection.prepare_cached(
        "INSERT OR REPLACE INTO inbound_messages (channel, thread, user_id, conversation_id, context_json, at) \
         VALUES (?, ?, ?, ?, ?, ?)",
    )?;
    for ((channel, thread), row) in &changes.inbound {
        let at = row.at.as_millis();
        insert.execute(params![channel, thread, row.user_id, row.conversation_id, row.context, at])?;
    }
    let mut newest = connection.prepare_cached(
        "INSERT OR REPLACE INTO reply_contexts (user_id, conversation_id, agent, context_json, at) VALUES (?, ?, ?, ?, ?)",
    )?;
    for ((owner, conversation, agent), row) in &changes.reply_contexts {
        newest.execute(params![owner, conversation, agent, row.context, row.at.as_millis()])?;
    }
    Ok(())
}

fn answer_counts(connection: &Connection, changes: &NotifyChanges) -> rusqlite::Result<()> {
    let mut insert = connection
        .prepare_cached("INSERT OR REPLACE INTO answer_counts (key, user_id, used, at) VALUES (?, ?, ?, ?)")?;
    for (key, row) in &changes.answer_counts {
        insert.execute(params![key, row.user_id, row.used, row.at.as_millis()])?;
    }
    Ok(())
}

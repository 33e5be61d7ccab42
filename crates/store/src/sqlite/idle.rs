//! Deletes conversations and mailboxes that were not used for long. One with pending notifications, timers, reminders
//! or deliveries is kept, however old it is.

use std::collections::{BTreeMap, HashSet};

use bellwire_core::Time;
use rusqlite::types::Value;
use rusqlite::{Row, params};

use super::prune::first_id_at;
use super::{SqliteWriter, failed, row_count, transaction};
use crate::error::StoreError;
use crate::rows::{ConversationKey, MailboxKey};
use crate::writer::Pruned;

/// The rows after which the next search continues, so that kept rows do not hide later ones. The values are raw SQLite
/// values, so that the search can continue after a damaged row.
pub(super) struct IdleCursor {
    /// Last use, id and owner of a conversation.
    conversation: [Value; 3],
    /// A conversation with more mailboxes than one step reads, and the last one that was read.
    large: Option<(ConversationKey, String)>,
    /// Person and origin of a mailbox.
    mailbox: [Value; 2],
}

impl Default for IdleCursor {
    fn default() -> Self {
        let text = || Value::Text(String::new());
        Self { conversation: [Value::Integer(i64::MIN), text(), text()], large: None, mailbox: [text(), text()] }
    }
}

/// Some mailboxes of a conversation, in the order of their agents.
struct MailboxPage {
    /// Each with whether nothing waits in it.
    mailboxes: Vec<(MailboxKey, bool)>,
    /// Whether there are more behind them.
    more: bool,
    /// Whether the name of a mailbox is damaged: its conversation is kept.
    has_damaged: bool,
}

const CONVERSATIONS: &str = "SELECT MAX(created_at, seen_at), id, user_id FROM conversations \
     WHERE (MAX(created_at, seen_at), id, user_id) > (?1, ?2, ?3) AND MAX(created_at, seen_at) < ?4 \
     ORDER BY MAX(created_at, seen_at), id, user_id LIMIT ?5";
/// The mailboxes of a conversation, and whether each has pending notifications or a timer, or is damaged.
const MAILBOXES: &str = "SELECT agent, LENGTH(pending) > 0 OR due_at <> 9223372036854775807 OR LENGTH(state) = 0 \
     FROM mailboxes WHERE owner = ?1 AND conversation_id = ?2 AND agent > ?3 ORDER BY agent LIMIT ?4";
const OF_PEOPLE: &str = "SELECT owner, agent, LENGTH(pending) > 0 OR due_at <> 9223372036854775807 OR LENGTH(state) = 0 \
                         FROM mailboxes WHERE conversation_id = '' AND (owner, agent) > (?1, ?2) ORDER BY owner, agent LIMIT ?3";
const HAS_REMINDER: &str =
    "SELECT EXISTS (SELECT 1 FROM reminders WHERE user_id = ?1 AND conversation_id = ?2 AND ended_at IS NULL)";
const HAS_ANY_REMINDER: &str = "SELECT EXISTS (SELECT 1 FROM reminders WHERE user_id = ?1 AND ended_at IS NULL)";
const HAS_DELIVERY: &str = "SELECT EXISTS (SELECT 1 FROM deliveries WHERE user_id = ?1 AND state = 'waiting')";
/// The people with claimed or started deliveries. They are few, and read once per step.
const BEING_SENT: &str =
    "SELECT DISTINCT user_id FROM deliveries INDEXED BY deliveries_leased WHERE state IN ('claimed', 'started')";
/// Whether a person used a conversation since ?2 or got a notification since then. The notification is searched by the
/// first id of that time.
const WAS_ACTIVE: &str = "SELECT EXISTS (SELECT 1 FROM conversations WHERE user_id = ?1 AND seen_at >= ?2) \
                          OR EXISTS (SELECT 1 FROM inbox WHERE user_id = ?1 AND id >= ?3)";
const DELETE_CONVERSATION: &str = "DELETE FROM conversations WHERE id = ?2 AND user_id = ?1";
const DELETE_MAILBOXES: &str = "DELETE FROM mailboxes WHERE owner = ?1 AND conversation_id = ?2";
const DELETE_MAILBOX: &str = "DELETE FROM mailboxes WHERE owner = ?1 AND conversation_id = ?2 AND agent = ?3";

/// The maximum number of rows read to check whether anything waits for a conversation or a person.
const CHECK_READS: usize = 3;

impl SqliteWriter {
    /// Reads about `limit` conversations and mailboxes last used before this time, and deletes the idle ones.
    pub(super) fn delete_idle(&mut self, before: Time, limit: usize) -> Result<Pruned, StoreError> {
        // During an erasure, a mailbox may be in its row while its records are still in the log.
        if !self.erasures.is_empty() {
            return Ok(Pruned::default());
        }
        let mut next = IdleCursor::default();
        let mut pruned = Pruned::default();
        let being_sent = self.being_sent().map_err(failed)?;
        pruned.read += being_sent.len();
        self.find_conversations(before, limit, &being_sent, &mut next, &mut pruned).map_err(failed)?;
        self.find_mailboxes(before, limit, &being_sent, &mut next, &mut pruned).map_err(failed)?;
        if !pruned.conversations.is_empty() || !pruned.mailboxes.is_empty() {
            pruned.rows = self.delete(&pruned)?;
        }
        self.idle = next;
        Ok(pruned)
    }

    fn find_conversations(
        &self,
        before: Time,
        limit: usize,
        being_sent: &HashSet<String>,
        next: &mut IdleCursor,
        found: &mut Pruned,
    ) -> rusqlite::Result<()> {
        let [at, id, user_id] = &self.idle.conversation;
        let mut query = self.connection.prepare_cached(CONVERSATIONS)?;
        let mut rows = query.query(params![at, id, user_id, before.as_millis(), row_count(limit)])?;
        let (mut looked, mut last) = (0, self.idle.conversation.clone());
        while let Some(row) = rows.next()? {
            let this = [row.get(0)?, row.get(1)?, row.get(2)?];
            looked += 1;
            if let [_, Value::Text(id), Value::Text(user_id)] = &this {
                let key = ConversationKey::new(user_id, id);
                found.read += CHECK_READS;
                if !self.is_waited_for(&key, being_sent)? {
                    looked += self.find_mailboxes_of(key, limit, next, found)?;
                }
            }
            // The next step continues within a large conversation, or after this one.
            if next.large.is_none() {
                last = this;
            }
            if looked >= limit || next.large.is_some() {
                next.conversation = last;
                break;
            }
        }
        found.read += looked;
        Ok(())
    }

    /// Finds a conversation all of whose mailboxes are idle. Of a conversation with more than `limit` mailboxes it finds the
    /// idle ones of sub-agents, a part in each step; when few are left, the conversation goes with them. How many it
    /// looked at.
    fn find_mailboxes_of(
        &self,
        key: ConversationKey,
        limit: usize,
        next: &mut IdleCursor,
        found: &mut Pruned,
    ) -> rusqlite::Result<usize> {
        let after = self.idle.large.as_ref().filter(|(large, _)| *large == key).map(|(_, agent)| agent.as_str());
        let page = self.mailbox_page(&key, after.unwrap_or_default(), limit)?;
        let looked = page.mailboxes.len();
        if after.is_none() && !page.more {
            let is_idle = !page.has_damaged && page.mailboxes.iter().all(|(_, is_idle)| *is_idle);
            found.conversations.extend(is_idle.then_some(key));
            return Ok(looked);
        }
        let last = page.mailboxes.last().and_then(|(mailbox, _)| mailbox.agent()).map(|agent| agent.to_string());
        next.large = last.filter(|_| page.more).map(|agent| (key, agent));
        let idle = page.mailboxes.into_iter().filter(|(mailbox, is_idle)| *is_idle && mailbox.is_sub_agents());
        found.mailboxes.extend(idle.map(|(mailbox, _)| mailbox));
        Ok(looked)
    }

    /// The mailboxes of a conversation behind an agent, at most `limit`: the log says what waits in each, or else its row.
    fn mailbox_page(&self, key: &ConversationKey, after: &str, limit: usize) -> rusqlite::Result<MailboxPage> {
        let logged = self.log.in_conversation(key, after).take(limit + 2);
        let mut mailboxes: BTreeMap<MailboxKey, bool> =
            logged.map(|mailbox| (mailbox.clone(), self.log.is_idle(mailbox))).collect();
        let mut query = self.connection.prepare_cached(MAILBOXES)?;
        let mut rows = query.query(params![key.owner, key.id, after, row_count(limit + 1)])?;
        let mut has_damaged = false;
        while let Some(row) = rows.next()? {
            match row.get_ref(0)?.as_str() {
                Ok(agent) => {
                    let mailbox = MailboxKey::new(key, agent);
                    let is_idle = self.is_mailbox_idle(&mailbox, row, 1)?;
                    mailboxes.insert(mailbox, is_idle);
                }
                Err(_) => has_damaged = true,
            }
        }
        let more = mailboxes.len() > limit;
        Ok(MailboxPage { mailboxes: mailboxes.into_iter().take(limit).collect(), more, has_damaged })
    }

    /// The mailboxes of people, who have no time of last use of their own.
    fn find_mailboxes(
        &self,
        before: Time,
        limit: usize,
        being_sent: &HashSet<String>,
        next: &mut IdleCursor,
        found: &mut Pruned,
    ) -> rusqlite::Result<()> {
        let [owner, origin] = &self.idle.mailbox;
        let mut query = self.connection.prepare_cached(OF_PEOPLE)?;
        let mut rows = query.query(params![owner, origin, row_count(limit)])?;
        let mut looked = 0;
        while let Some(row) = rows.next()? {
            let last = [row.get(0)?, row.get(1)?];
            if let [Value::Text(owner), Value::Text(origin)] = &last {
                let key = MailboxKey::from_columns(owner, "", origin);
                found.read += CHECK_READS;
                let is_idle = self.is_mailbox_idle(&key, row, 2)? && self.is_person_idle(owner, before, being_sent)?;
                found.mailboxes.extend(is_idle.then_some(key));
            }
            looked += 1;
            if looked == limit {
                next.mailbox = last;
            }
        }
        found.read += looked;
        Ok(())
    }

    /// Whether a reminder for a conversation, or a delivery to its person, is open.
    fn is_waited_for(&self, key: &ConversationKey, being_sent: &HashSet<String>) -> rusqlite::Result<bool> {
        Ok(being_sent.contains(&*key.owner)
            || self.exists(HAS_REMINDER, params![key.owner, key.id])?
            || self.exists(HAS_DELIVERY, params![key.owner])?)
    }

    /// Whether a mailbox is idle, according to the log or, if it is not in the log, to this column of its row.
    fn is_mailbox_idle(&self, key: &MailboxKey, row: &Row<'_>, column: usize) -> rusqlite::Result<bool> {
        match self.log.has(key) {
            true => Ok(self.log.is_idle(key)),
            false => Ok(row.get::<_, Option<bool>>(column)? == Some(false)),
        }
    }

    fn is_person_idle(&self, user_id: &str, before: Time, being_sent: &HashSet<String>) -> rusqlite::Result<bool> {
        let active = params![user_id, before.as_millis(), first_id_at(before)];
        Ok(!being_sent.contains(user_id)
            && !self.exists(WAS_ACTIVE, active)?
            && !self.exists(HAS_ANY_REMINDER, params![user_id])?
            && !self.exists(HAS_DELIVERY, params![user_id])?)
    }

    fn being_sent(&self) -> rusqlite::Result<HashSet<String>> {
        let mut query = self.connection.prepare_cached(BEING_SENT)?;
        // A damaged user id belongs to no person, so it is skipped.
        let people = query.query_map([], |row| Ok(row.get_ref(0)?.as_str().ok().map(str::to_owned)))?;
        people.filter_map(Result::transpose).collect()
    }

    fn exists(&self, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<bool> {
        self.connection.prepare_cached(sql)?.query_row(values, |row| row.get(0))
    }

    /// Deletes the found conversations and mailboxes. Returns the number of rows.
    fn delete(&mut self, found: &Pruned) -> Result<usize, StoreError> {
        let logged = found.conversations.iter().flat_map(|key| self.log.in_conversation(key, ""));
        let logged = logged.chain(found.mailboxes.iter().filter(|key| self.log.has(key))).cloned().collect();
        let plan = self.log.plan_deletion(logged);
        let log = &self.log;
        let deleted = transaction::commit(&self.connection, |connection| {
            log.write(connection, &plan)?;
            let mut rows = 0;
            for key in &found.conversations {
                for sql in [DELETE_MAILBOXES, DELETE_CONVERSATION] {
                    rows += connection.prepare_cached(sql)?.execute(params![key.owner, key.id])?;
                }
            }
            for key in &found.mailboxes {
                let (owner, conversation_id, agent) = key.columns();
                rows += connection.prepare_cached(DELETE_MAILBOX)?.execute(params![owner, conversation_id, agent])?;
            }
            Ok(rows)
        });
        let rows = deleted.map_err(failed)?;
        self.log.committed(plan);
        Ok(rows)
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use super::super::migrate::MIGRATIONS;
    use super::*;

    #[test]
    fn every_statement_finds_its_rows_by_an_index_in_order() {
        let file = rusqlite::Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|(_, sql)| file.execute_batch(sql).unwrap());
        let found = [
            (CONVERSATIONS, "conversations_by_last_use"),
            (MAILBOXES, "sqlite_autoindex_mailboxes_1"),
            (OF_PEOPLE, "mailboxes_of_people"),
            (HAS_REMINDER, "reminders_waiting"),
            (HAS_ANY_REMINDER, "reminders_waiting"),
            (HAS_DELIVERY, "deliveries_waiting_by_user"),
            (BEING_SENT, "deliveries_leased"),
            (WAS_ACTIVE, "conversations_by_user"),
            (super::super::people_write::PRUNED_UNREAD, "inbox_unread_by_age"),
            (super::super::people_write::PRUNED_UNREAD, "deliveries_by_notification"),
            (super::super::people_write::WAITED, "deliveries"),
            (super::super::people_read::OLDEST_DELIVERY, "deliveries_waiting_by_channel"),
        ];
        for (sql, index) in found {
            let mut plan = file.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let values = rusqlite::params_from_iter(vec![1; plan.parameter_count()]);
            let lines: Vec<String> = plan.query_map(values, |row| row.get(3)).unwrap().map(Result::unwrap).collect();
            assert!(lines.iter().any(|line| line.contains(index)), "{sql}\n{lines:#?}");
            let is_small = |line: &String| line.contains("deliveries_leased") || line.contains("DISTINCT");
            let bad = |line: &&String| {
                !is_small(line)
                    && (line.contains("TEMP B-TREE") || line.starts_with("SCAN ") && !line.contains("CONSTANT"))
            };
            assert_eq!(lines.iter().filter(bad).count(), 0, "{sql}\n{lines:#?}");
        }
    }
}

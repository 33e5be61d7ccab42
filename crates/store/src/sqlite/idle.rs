//! Deletes conversations and mailboxes that nobody used for long. One in which anything waits is kept, however old it is.

use bellwire_core::Time;
use rusqlite::types::Value;
use rusqlite::{Row, params};

use super::prune::first_name_at;
use super::{SqliteWriter, failed, row_count, transaction};
use crate::error::StoreError;
use crate::rows::{ConversationKey, MailboxKey};
use crate::writer::Pruned;

/// The rows behind which the next look goes on, so that rows which are kept do not hide those that follow. The values are
/// as they are in the file: a damaged one is passed over.
pub(super) struct IdleCursor {
    /// Last use, id and person of a conversation.
    conversation: [Value; 3],
    /// Person and origin of a mailbox.
    mailbox: [Value; 2],
}

impl Default for IdleCursor {
    fn default() -> Self {
        let text = || Value::Text(String::new());
        Self { conversation: [Value::Integer(i64::MIN), text(), text()], mailbox: [text(), text()] }
    }
}

const CONVERSATIONS: &str = "SELECT MAX(created_at, seen_at), id, user_id FROM conversations \
     WHERE (MAX(created_at, seen_at), id, user_id) > (?1, ?2, ?3) AND MAX(created_at, seen_at) < ?4 \
     ORDER BY MAX(created_at, seen_at), id, user_id LIMIT ?5";
/// The mailboxes of a conversation, and whether each has something waiting, has a timer, or is damaged.
const MAILBOXES: &str = "SELECT agent, LENGTH(pending) > 0 OR due_at <> 9223372036854775807 OR LENGTH(state) = 0 \
                         FROM mailboxes WHERE owner = ?1 AND conversation_id = ?2";
const OF_PEOPLE: &str = "SELECT owner, agent, LENGTH(pending) > 0 OR due_at <> 9223372036854775807 OR LENGTH(state) = 0 \
                         FROM mailboxes WHERE conversation_id = '' AND (owner, agent) > (?1, ?2) ORDER BY owner, agent LIMIT ?3";
const HAS_REMINDER: &str =
    "SELECT EXISTS (SELECT 1 FROM reminders WHERE user_id = ?1 AND conversation_id = ?2 AND ended_at IS NULL)";
const HAS_ANY_REMINDER: &str = "SELECT EXISTS (SELECT 1 FROM reminders WHERE user_id = ?1 AND ended_at IS NULL)";
const HAS_DELIVERY: &str = "SELECT EXISTS (SELECT 1 FROM deliveries WHERE user_id = ?1 AND state = 'waiting') \
     OR EXISTS (SELECT 1 FROM deliveries INDEXED BY deliveries_leased WHERE state IN ('claimed', 'started') AND user_id = ?1)";
/// Whether a person used a conversation, or was told something, since a time; the second as the first id of that time.
const WAS_ACTIVE: &str = "SELECT EXISTS (SELECT 1 FROM conversations WHERE user_id = ?1 AND seen_at >= ?2) \
                          OR EXISTS (SELECT 1 FROM inbox WHERE user_id = ?1 AND id >= ?3)";
const DELETE_CONVERSATION: &str = "DELETE FROM conversations WHERE id = ?2 AND user_id = ?1";
const DELETE_MAILBOXES: &str = "DELETE FROM mailboxes WHERE owner = ?1 AND conversation_id = ?2";
const DELETE_MAILBOX: &str = "DELETE FROM mailboxes WHERE owner = ?1 AND conversation_id = ?2 AND agent = ?3";

impl SqliteWriter {
    /// Looks at about `limit` conversations and mailboxes that were last used before this time, and deletes those in which
    /// nothing waits.
    pub(super) fn delete_idle(&mut self, before: Time, limit: usize) -> Result<Pruned, StoreError> {
        // While somebody is erased, mailboxes may be in their places whose records are still in the log.
        if !self.erasures.is_empty() {
            return Ok(Pruned::default());
        }
        let mut next = IdleCursor::default();
        let mut pruned = Pruned::default();
        self.find_conversations(before, limit, &mut next, &mut pruned).map_err(failed)?;
        self.find_mailboxes(before, limit, &mut next, &mut pruned).map_err(failed)?;
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
        next: &mut IdleCursor,
        found: &mut Pruned,
    ) -> rusqlite::Result<()> {
        let [at, id, user_id] = &self.idle.conversation;
        let mut query = self.connection.prepare_cached(CONVERSATIONS)?;
        let mut rows = query.query(params![at, id, user_id, before.as_millis(), row_count(limit)])?;
        let mut looked = 0;
        while let Some(row) = rows.next()? {
            let last = [row.get(0)?, row.get(1)?, row.get(2)?];
            if let [_, Value::Text(id), Value::Text(user_id)] = &last {
                let key = ConversationKey::new(user_id, id);
                let (is_idle, mailboxes) = self.is_idle(&key)?;
                looked += mailboxes;
                found.conversations.extend(is_idle.then_some(key));
            }
            looked += 1;
            if looked >= limit {
                next.conversation = last;
                break;
            }
        }
        found.read += looked;
        Ok(())
    }

    /// The mailboxes of people, who have no time of last use of their own.
    fn find_mailboxes(
        &self,
        before: Time,
        limit: usize,
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
                let is_idle = self.is_mailbox_idle(&key, row, 2)? && self.is_person_idle(owner, before)?;
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

    /// Whether nothing waits in a conversation, and nothing will happen in it by itself; and how many mailboxes it has.
    fn is_idle(&self, key: &ConversationKey) -> rusqlite::Result<(bool, usize)> {
        let mut mailboxes = 0;
        for logged in self.log.in_conversation(key) {
            mailboxes += 1;
            if !self.log.is_idle(logged) {
                return Ok((false, mailboxes));
            }
        }
        let mut query = self.connection.prepare_cached(MAILBOXES)?;
        let mut rows = query.query(params![key.owner, key.id])?;
        while let Some(row) = rows.next()? {
            mailboxes += 1;
            let Ok(agent) = row.get_ref(0)?.as_str() else { return Ok((false, mailboxes)) };
            if !self.is_mailbox_idle(&MailboxKey::new(key, agent), row, 1)? {
                return Ok((false, mailboxes));
            }
        }
        let waits =
            self.exists(HAS_REMINDER, params![key.owner, key.id])? || self.exists(HAS_DELIVERY, params![key.owner])?;
        Ok((!waits, mailboxes))
    }

    /// Whether nothing waits in a mailbox: the log says it, or else its row in this column.
    fn is_mailbox_idle(&self, key: &MailboxKey, row: &Row<'_>, column: usize) -> rusqlite::Result<bool> {
        match self.log.has(key) {
            true => Ok(self.log.is_idle(key)),
            false => Ok(row.get::<_, Option<bool>>(column)? == Some(false)),
        }
    }

    fn is_person_idle(&self, user_id: &str, before: Time) -> rusqlite::Result<bool> {
        let active = params![user_id, before.as_millis(), first_name_at(before)];
        Ok(!self.exists(WAS_ACTIVE, active)?
            && !self.exists(HAS_ANY_REMINDER, params![user_id])?
            && !self.exists(HAS_DELIVERY, params![user_id])?)
    }

    fn exists(&self, sql: &str, values: impl rusqlite::Params) -> rusqlite::Result<bool> {
        self.connection.prepare_cached(sql)?.query_row(values, |row| row.get(0))
    }

    /// Deletes what was found; how many rows that were.
    fn delete(&mut self, found: &Pruned) -> Result<usize, StoreError> {
        let logged = found.conversations.iter().flat_map(|key| self.log.in_conversation(key));
        let logged = logged.chain(found.mailboxes.iter().filter(|key| self.log.has(key))).cloned().collect();
        let plan = self.log.plan_deletion(logged);
        let log = &self.log;
        let deleted = transaction::whole(&self.connection, |connection| {
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
            (WAS_ACTIVE, "conversations_by_user"),
            (super::super::people_write::PRUNED_UNREAD, "inbox_unread_by_age"),
            (super::super::people_write::PRUNED_UNREAD, "deliveries_open"),
        ];
        for (sql, index) in found {
            let mut plan = file.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
            let values = rusqlite::params_from_iter(vec![1; plan.parameter_count()]);
            let lines: Vec<String> = plan.query_map(values, |row| row.get(3)).unwrap().map(Result::unwrap).collect();
            assert!(lines.iter().any(|line| line.contains(index)), "{sql}\n{lines:#?}");
            let bad = |line: &&String| {
                line.contains("TEMP B-TREE")
                    || line.starts_with("SCAN ") && !line.contains("deliveries_leased") && !line.contains("CONSTANT")
            };
            assert_eq!(lines.iter().filter(bad).count(), 0, "{sql}\n{lines:#?}");
        }
    }
}

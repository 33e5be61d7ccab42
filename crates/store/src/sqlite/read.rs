//! Reads rows.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwire_core::event::{EventCause, StoredEvent};
use bellwire_core::render::Boundary;
use bellwire_core::{Event, EventId, InjectionPoint, Mailbox, Notification, NotificationId, Severity, Time};
use rusqlite::{Connection, Params, Row, params};
use sqlx::sqlite::{Sqlite as Driver, SqliteConnection, SqliteRow};
use sqlx::{AssertSqlSafe, Column as _, Decode, QueryBuilder, Row as _, Type};
use uuid::Uuid;

use super::conversation_list::conversation_page;
use super::event_list::{self, event_page};
use super::mailbox_log::{self, DuePosition};
use super::people_read::person_traces;
use super::{Sqlite, SqliteWriter, damaged, failed, failure};
use crate::command::{IdempotencyKey, InjectionView, Message, NotificationView, Superseded, Token, Trace};
use crate::conversation_list::{ConversationQuery, ListedConversation};
use crate::damage::{Damage, Found};
use crate::error::StoreError;
use crate::event_list::{EventQuery, ListedEvent, NamedEvent};
use crate::executor::{DueMailboxes, LoadedMailbox, MailboxSummary, RowSource};
use crate::packed_event::PackedEvent;
use crate::rows::{
    ClientEventIdRow, ConversationKey, ConversationRow, EventRow, IdempotencyRow, InjectionRow, MailboxKey,
};
use crate::single_writer::Reader;
use crate::verdicts::Verdicts;

const EVENT_COLUMNS: &str = "id, type, source, severity, timestamp, payload, dedupe_key, conversation_id, agent, \
                             user_id, correlation_id, cause, owner, accepted_at, filtered";

pub(super) const CONVERSATION_COLUMNS: &str = "id, user_id, registered, title, boundary, created_at, seen_at, workers, boundary_changed, folder, \
     agent_secret, agent_boundaries";

/// The index of pending notifications is ordered by id, and ids start with the time, so this reads one entry.
pub(super) const OLDEST_WAITING: &str = "SELECT id FROM notifications WHERE state = 'pending' ORDER BY id LIMIT 1";

/// The page size when searching for due rows, and the number of rows after which the search stops.
const DUE_PAGE: usize = 128;
const DUE_READ_MAX: usize = 1_000;

/// Whether to load an event with its verdicts. A mailbox does not need them, and an event for many conversations has
/// many.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum StoredVerdicts {
    With,
    Without,
}

impl SqliteWriter {
    /// The latest state of a mailbox, and the ids of its pending notifications, 16 bytes each.
    async fn saved_mailbox(&mut self, key: &MailboxKey) -> Result<Option<(Vec<u8>, Vec<u8>)>, StoreError> {
        if let Some((state, pending)) = self.log.newest(key) {
            return Ok(Some((state.to_owned(), pending.to_owned())));
        }
        let sql = "SELECT state, pending FROM mailboxes WHERE owner = $1 AND conversation_id = $2 AND agent = $3";
        let (owner, conversation, agent) = key.columns();
        let query = sqlx::query(sql).bind(owner).bind(conversation).bind(agent);
        let row = query.fetch_optional(&mut self.reading).await.map_err(failure)?;
        row.map(|row| Ok((column(&row, 0)?, column(&row, 1)?))).transpose()
    }
}

impl RowSource for SqliteWriter {
    async fn conversation(&mut self, key: &ConversationKey) -> Result<Option<ConversationRow>, StoreError> {
        let sql = format!("SELECT {CONVERSATION_COLUMNS} FROM conversations WHERE id = $1 AND user_id = $2");
        let row = sqlx::query(AssertSqlSafe(sql))
            .bind(&*key.id)
            .bind(&*key.owner)
            .fetch_optional(&mut self.reading)
            .await
            .map_err(failure)?;
        row.as_ref().map(conversation_row).transpose()
    }

    async fn conversations_named(&mut self, id: &str) -> Result<Vec<ConversationRow>, StoreError> {
        let sql =
            format!("SELECT {CONVERSATION_COLUMNS} FROM conversations WHERE id = $1 ORDER BY registered DESC LIMIT 2");
        let rows = sqlx::query(AssertSqlSafe(sql)).bind(id).fetch_all(&mut self.reading).await.map_err(failure)?;
        rows.iter().map(conversation_row).collect()
    }

    async fn open_conversations(
        &mut self,
        user_id: &str,
        since: Time,
        limit: usize,
    ) -> Result<Vec<Arc<str>>, StoreError> {
        let sql = "SELECT id FROM conversations WHERE user_id = $1 AND seen_at >= $2 ORDER BY seen_at DESC LIMIT $3";
        let rows = sqlx::query(sql)
            .bind(user_id)
            .bind(since.as_millis())
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_all(&mut self.reading)
            .await
            .map_err(failure)?;
        rows.iter().map(|row| Ok(column::<String>(row, 0)?.into())).collect()
    }

    async fn mailbox(&mut self, key: &MailboxKey) -> Result<Option<LoadedMailbox>, StoreError> {
        let Some((state, pending)) = self.saved_mailbox(key).await? else { return Ok(None) };
        let pending = waiting(&mut self.reading, &pending).await?;
        let has_guessable_secret = Mailbox::has_guessable_secret(&state);
        let mailbox = Mailbox::load(&state, pending).map_err(|error| damaged(&error.to_string()))?;
        Ok(Some(LoadedMailbox { mailbox, has_guessable_secret, saved: state.len() }))
    }

    async fn mailbox_summary(&mut self, key: &MailboxKey, now: Time) -> Result<Option<MailboxSummary>, StoreError> {
        let Some((state, pending)) = self.saved_mailbox(key).await? else { return Ok(None) };
        let mailbox = Mailbox::load(&state, Vec::new()).map_err(|error| damaged(&error.to_string()))?;
        Ok(Some(MailboxSummary { working: mailbox.is_working(now), pending: pending.len() / 16 }))
    }

    async fn sub_agents(&mut self, key: &ConversationKey, limit: usize) -> Result<Vec<Arc<str>>, StoreError> {
        let sql = "SELECT agent FROM mailboxes WHERE owner = $1 AND conversation_id = $2 AND agent <> 'main' \
                   AND pending <> x'' LIMIT $3";
        let query = sqlx::query(sql).bind(&*key.owner).bind(&*key.id);
        let query = query.bind(i64::try_from(limit).unwrap_or(i64::MAX));
        let rows = query.fetch_all(&mut self.reading).await.map_err(failure)?;
        let stored = rows.iter().map(|row| Ok(column::<String>(row, 0)?.into()));
        let logged = self.log.sub_agents_with_mail(key).filter_map(|key| key.agent().cloned()).take(limit);
        logged.map(Ok).chain(stored).collect()
    }

    async fn disabled(&mut self, user_id: &str) -> Result<Vec<String>, StoreError> {
        let row = sqlx::query("SELECT disabled_subscribers_json FROM user_settings WHERE user_id = $1")
            .bind(user_id)
            .fetch_optional(&mut self.reading)
            .await
            .map_err(failure)?;
        row.map_or(Ok(Vec::new()), |row| parse_json(column(&row, 0)?, "user_settings.disabled_subscribers_json"))
    }

    async fn client_event_id(
        &mut self,
        owner: &str,
        id: &str,
    ) -> Result<Option<(ClientEventIdRow, EventRow)>, StoreError> {
        let row = sqlx::query("SELECT event_id, content, at FROM brought_ids WHERE token_owner = $1 AND id = $2")
            .bind(owner)
            .bind(id)
            .fetch_optional(&mut self.reading)
            .await
            .map_err(failure)?;
        let Some(row) = row else { return Ok(None) };
        let client_event_id = ClientEventIdRow {
            token_owner: owner.to_owned(),
            id: id.to_owned(),
            event_id: EventId(uuid(&row, 0)?),
            content: column::<Vec<u8>>(&row, 1)?.try_into().map_err(|_| damaged("brought_ids.content"))?,
            at: Time::from_millis(column(&row, 2)?),
        };
        let event = events(&mut self.reading, &[client_event_id.event_id], StoredVerdicts::With).await?.pop();
        Ok(event.map(|event| (client_event_id, event)))
    }

    async fn idempotency_row(&mut self, key: &IdempotencyKey) -> Result<Option<IdempotencyRow>, StoreError> {
        let row = sqlx::query(
            "SELECT content, answer, at FROM idempotency_keys WHERE token_id = $1 AND route = $2 AND name = $3",
        )
        .bind(&key.token_id)
        .bind(&key.route)
        .bind(&key.key)
        .fetch_optional(&mut self.reading)
        .await
        .map_err(failure)?;
        row.map(|row| {
            let content = column::<Vec<u8>>(&row, 0)?.try_into().map_err(|_| damaged("idempotency_keys.content"))?;
            let key = IdempotencyKey { content, ..key.clone() };
            let (answer, at) = (column(&row, 1)?, Time::from_millis(column(&row, 2)?));
            Ok(IdempotencyRow { key, answer, people: BTreeSet::new(), at })
        })
        .transpose()
    }

    async fn injection(&mut self, key: &MailboxKey, call_id: &str) -> Result<Option<InjectionRow>, StoreError> {
        let sql = "SELECT point, at, unseen, answer, taken, system_messages_json, tool_result_digest FROM injections \
                   WHERE owner = ?1 AND conversation_id = ?2 AND agent = ?3 AND call_id = ?4";
        let (owner, conversation, agent) = key.columns();
        let names = params![owner, conversation, agent, call_id];
        let found = first(&self.connection, sql, names, |row| {
            let taken: Vec<u8> = row.get(4)?;
            // Without a digest the answer is still valid, so a damaged one counts as none.
            let digest = row.get::<_, Option<Vec<u8>>>(6).ok().flatten().and_then(|digest| digest.try_into().ok());
            Ok((text(row, 0)?, row.get(1)?, row.get(2)?, text(row, 3)?, taken, text(row, 5)?, digest))
        });
        let Some((point, at, unseen, answer, taken, messages, tool_result_digest)) = found.map_err(failed)? else {
            return Ok(None);
        };
        Ok(Some(InjectionRow {
            key: key.clone(),
            call_id: call_id.to_owned(),
            point: InjectionPoint::parse(&point).map_err(|_| damaged("injections.point"))?,
            at: Time::from_millis(at),
            unseen,
            tool_result_digest,
            answer: parse_json(&answer, "injections.answer")?,
            taken: postcard::from_bytes(&taken).map_err(|_| damaged("injections.taken"))?,
            messages: parse_json(&messages, "injections.system_messages_json")?,
        }))
    }

    async fn events(&mut self, ids: &[EventId]) -> Result<Vec<(EventId, PackedEvent)>, StoreError> {
        let rows = events(&mut self.reading, ids, StoredVerdicts::Without).await?;
        Ok(rows.into_iter().map(|row| (row.event.id(), row.packed)).collect())
    }

    async fn verdicts(&mut self, event: EventId) -> Result<Option<Arc<Verdicts>>, StoreError> {
        Ok(events(&mut self.reading, &[event], StoredVerdicts::With).await?.pop().map(|row| row.verdicts))
    }

    async fn due(
        &mut self,
        now: Time,
        limit: usize,
        damage: &Damage,
        erasing: &BTreeSet<String>,
    ) -> Result<DueMailboxes, StoreError> {
        let is_skipped = |key: &MailboxKey| damage.has_mailbox(key) || erasing.contains(&**key.owner());
        let mut checked_until = self.log.rows_checked_until();
        let (mut due_rows, mut unreadable, mut read) = (Vec::new(), Vec::new(), 0);
        let more = loop {
            let page = due_rows_after(&self.connection, checked_until, now, DUE_PAGE).map_err(failed)?;
            let is_last = page.len() < DUE_PAGE;
            read += page.len();
            checked_until = match page.last() {
                Some(row) if !is_last => row.position,
                _ => (now.as_millis(), i64::MAX),
            };
            for row in page {
                match row.key {
                    // If the mailbox is in the log, the row is outdated.
                    Ok(key) if self.log.has(&key) || is_skipped(&key) => {}
                    Ok(key) => due_rows.push((row.position, key)),
                    Err(error) => unreadable.push((format!("mailboxes, rowid {}", row.position.1), failed(error))),
                }
            }
            if is_last || due_rows.len() >= limit || read >= DUE_READ_MAX {
                break !is_last;
            }
        };
        let logged = self.log.due(now).filter(|(_, key)| !is_skipped(key)).take(limit);
        let mut due: Vec<(Time, MailboxKey)> = logged.collect();
        due.extend(due_rows.iter().map(|((due_at, _), key)| (Time::from_millis(*due_at), key.clone())));
        self.log.set_due_rows(checked_until, due_rows);
        due.sort();
        let more = more || due.len() >= limit;
        let rows = due.into_iter().map(|(_, key)| key).take(limit).collect();
        Ok(DueMailboxes { found: Found { rows, damaged: unreadable }, read, more })
    }

    async fn next_due(&mut self, after: Time) -> Result<Time, StoreError> {
        // The row of a mailbox in the log may have an outdated, earlier time. That costs one unneeded query.
        let mailbox = "SELECT due_at FROM mailboxes WHERE due_at > ?1 ORDER BY due_at LIMIT 1";
        let reminder = "SELECT due_at FROM reminders WHERE ended_at IS NULL AND due_at > ?1 ORDER BY due_at LIMIT 1";
        let notify = "SELECT lease_until FROM notify_requests WHERE state IN ('claimed', 'started') AND lease_until > ?1 \
                      ORDER BY lease_until LIMIT 1";
        let stored = earliest(&self.connection, &[mailbox, reminder, notify], after).map_err(failed)?;
        Ok(stored.min(self.log.next_due(after)))
    }

    async fn next_delivery(&mut self, after: Time) -> Result<Time, StoreError> {
        let waiting = "SELECT not_before FROM deliveries WHERE state = 'waiting' AND not_before > ?1 \
                       ORDER BY not_before LIMIT 1";
        let leased = "SELECT lease_until FROM deliveries WHERE state IN ('claimed', 'started') AND lease_until > ?1 \
                      ORDER BY lease_until LIMIT 1";
        earliest(&self.connection, &[waiting, leased], after).map_err(failed)
    }
}

/// The earliest time that these queries find after `after`.
fn earliest(connection: &Connection, queries: &[&str], after: Time) -> rusqlite::Result<Time> {
    let mut earliest = Time::NEVER;
    for sql in queries {
        let found = first(connection, sql, [after.as_millis()], |row| row.get(0))?;
        earliest = earliest.min(found.map_or(Time::NEVER, Time::from_millis));
    }
    Ok(earliest)
}

/// A due row of the table `mailboxes`.
struct DueRow {
    /// An error if the key cannot be read.
    key: rusqlite::Result<MailboxKey>,
    position: DuePosition,
}

/// A page of due rows after a position.
fn due_rows_after(
    connection: &Connection,
    from: DuePosition,
    now: Time,
    limit: usize,
) -> rusqlite::Result<Vec<DueRow>> {
    let mut query = connection.prepare_cached(
        "SELECT owner, conversation_id, agent, CAST(due_at AS INTEGER), rowid FROM mailboxes \
         WHERE (due_at, rowid) > (?1, ?2) AND due_at <= ?3 ORDER BY due_at, rowid LIMIT ?4",
    )?;
    let due_row = |row: &Row<'_>| Ok(DueRow { key: mailbox_log::key(row, 0), position: (row.get(3)?, row.get(4)?) });
    query.query_map(params![from.0, from.1, now.as_millis(), limit as i64], due_row)?.collect()
}

impl Reader for Sqlite {
    async fn has_idempotency_row(&self, key: &IdempotencyKey) -> Result<bool, StoreError> {
        let sql = "SELECT EXISTS (SELECT 1 FROM idempotency_keys WHERE token_id = $1 AND route = $2 AND name = $3)";
        let named = sqlx::query_scalar(sql).bind(&key.token_id).bind(&key.route).bind(&key.key);
        named.fetch_one(&self.pool).await.map_err(failure)
    }

    async fn owners(&self, conversation_id: &str) -> Result<Vec<(String, bool)>, StoreError> {
        let sql = "SELECT user_id, registered FROM conversations WHERE id = $1 ORDER BY registered DESC LIMIT 2";
        let rows = sqlx::query(sql).bind(conversation_id).fetch_all(&self.pool).await.map_err(failure)?;
        rows.iter().map(|row| Ok((column(row, 0)?, column::<i64>(row, 1)? != 0))).collect()
    }

    async fn open_count(&self, user_id: &str, since: Time, limit: usize) -> Result<usize, StoreError> {
        let sql = "SELECT count(*) FROM (SELECT 1 FROM conversations WHERE user_id = $1 AND seen_at >= $2 LIMIT $3)";
        let count = sqlx::query_scalar::<_, i64>(sql)
            .bind(user_id)
            .bind(since.as_millis())
            .bind(i64::try_from(limit).unwrap_or(i64::MAX))
            .fetch_one(&self.pool)
            .await
            .map_err(failure)?;
        Ok(usize::try_from(count).unwrap_or(0))
    }

    async fn has(&self, user_id: &str, conversation_id: &str) -> Result<bool, StoreError> {
        let row = sqlx::query("SELECT 1 FROM conversations WHERE id = $1 AND user_id = $2")
            .bind(conversation_id)
            .bind(user_id)
            .fetch_optional(&self.pool)
            .await
            .map_err(failure)?;
        Ok(row.is_some())
    }

    async fn events(&self, query: &EventQuery) -> Result<(Vec<ListedEvent>, Option<EventId>), StoreError> {
        event_page(&mut *self.pool.acquire().await.map_err(failure)?, query).await
    }

    async fn conversations(&self, query: &ConversationQuery) -> Result<Vec<ListedConversation>, StoreError> {
        conversation_page(&mut *self.pool.acquire().await.map_err(failure)?, query).await
    }

    async fn messages(
        &self,
        owner: &str,
        conversation_id: &str,
        after: i64,
        limit: usize,
    ) -> Result<(Vec<Message>, Option<i64>), StoreError> {
        let rows = sqlx::query(
            "SELECT sequence, system_messages_json FROM injections WHERE owner = $1 AND conversation_id = $2 \
             AND sequence >= $3 AND system_messages_json <> '[]' ORDER BY sequence LIMIT $4",
        )
        .bind(owner)
        .bind(conversation_id)
        .bind(crate::rows::first_injection(after))
        // Two more: the messages of the first row may all lie before the position, and the last row shows whether there
        // is more.
        .bind(i64::try_from(limit + 2).unwrap_or(i64::MAX))
        .fetch_all(&self.pool)
        .await
        .map_err(failure)?;
        let parse =
            |row: &SqliteRow| Ok((column(row, 0)?, parse_json(column(row, 1)?, "injections.system_messages_json")?));
        let rows: Result<Vec<_>, StoreError> = rows.iter().map(parse).collect();
        Ok(crate::rows::page(rows?.into_iter(), after, limit))
    }

    async fn messages_before(
        &self,
        owner: &str,
        conversation_id: &str,
        before: i64,
        limit: usize,
    ) -> Result<(Vec<Message>, Option<i64>), StoreError> {
        let rows = sqlx::query(
            "SELECT sequence, system_messages_json FROM injections WHERE owner = $1 AND conversation_id = $2 \
             AND sequence <= $3 AND system_messages_json <> '[]' ORDER BY sequence DESC LIMIT $4",
        )
        .bind(owner)
        .bind(conversation_id)
        .bind(crate::rows::first_injection(before))
        // Two more, as above.
        .bind(i64::try_from(limit + 2).unwrap_or(i64::MAX))
        .fetch_all(&self.pool)
        .await
        .map_err(failure)?;
        let parse =
            |row: &SqliteRow| Ok((column(row, 0)?, parse_json(column(row, 1)?, "injections.system_messages_json")?));
        let rows: Result<Vec<_>, StoreError> = rows.iter().map(parse).collect();
        Ok(crate::rows::page_before(rows?.into_iter(), before, limit))
    }

    async fn events_named(&self, client_event_id: &str, limit: usize) -> Result<Vec<NamedEvent>, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(failure)?;
        event_list::events_named(&mut connection, client_event_id, limit).await
    }

    async fn trace(&self, token_owner: &str, id: &str) -> Result<Option<Trace>, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(failure)?;
        let client_event_id = sqlx::query("SELECT event_id FROM brought_ids WHERE token_owner = $1 AND id = $2")
            .bind(token_owner)
            .bind(id)
            .fetch_optional(&mut *connection)
            .await
            .map_err(failure)?;
        let id = match client_event_id {
            Some(row) => Some(EventId(uuid(&row, 0)?)),
            None => crate::event_id(id),
        };
        let Some(id) = id else { return Ok(None) };
        let Some(row) = events(&mut connection, &[id], StoredVerdicts::With).await?.pop() else { return Ok(None) };
        let ids: Vec<Uuid> = row.verdicts.iter().filter_map(|verdict| verdict.notification_id).collect();
        // Verdicts without an agent were decided for the person.
        let to_person = row.verdicts.iter().filter(|verdict| verdict.agent.is_none());
        let to_person: Vec<Uuid> = to_person.filter_map(|verdict| verdict.notification_id).collect();
        let notifications = notifications(&mut connection, &ids).await?;
        Ok(Some(Trace {
            event: row.event.to_stored(),
            owner: row.owner.to_string(),
            accepted_at: row.accepted_at,
            filtered: row.filtered,
            injections: injections(&mut connection, &row.owner, &notifications).await?,
            superseded: superseded(&mut connection, id).await?,
            person_traces: person_traces(&mut connection, &row.owner, &to_person).await?,
            notifications,
            verdicts: Arc::unwrap_or_clone(row.verdicts).into_list(),
        }))
    }

    async fn token_by_secret(&self, hash: &[u8]) -> Result<Option<Token>, StoreError> {
        let row = sqlx::query(
            "SELECT id, secret_hash, scope, name, user_id, origin, conversation_id, created_at, expires_at, \
             revoked_at FROM tokens WHERE secret_hash = $1",
        )
        .bind(hash)
        .fetch_optional(&self.pool)
        .await
        .map_err(failure)?;
        row.as_ref().map(token).transpose()
    }

    async fn oldest_waiting(&self) -> Result<Option<Time>, StoreError> {
        let row = sqlx::query(OLDEST_WAITING).fetch_optional(&self.pool).await.map_err(failure)?;
        let oldest = row.map(|row| uuid(&row, 0)).transpose()?;
        Ok(oldest.map(crate::minted_at))
    }

    async fn tokens(&self) -> Result<Vec<Token>, StoreError> {
        let rows = sqlx::query(
            "SELECT id, secret_hash, scope, name, user_id, origin, conversation_id, created_at, expires_at, \
             revoked_at FROM tokens ORDER BY created_at, id",
        )
        .fetch_all(&self.pool)
        .await
        .map_err(failure)?;
        rows.iter().map(token).collect()
    }

    async fn close(&self) {
        self.pool.close().await;
    }
}

/// The first row of a query, read on the writer's connection and thread.
pub(super) fn first<T>(
    connection: &Connection,
    sql: &str,
    values: impl Params,
    read: impl FnOnce(&Row<'_>) -> rusqlite::Result<T>,
) -> rusqlite::Result<Option<T>> {
    connection.prepare_cached(sql)?.query(values)?.next()?.map(read).transpose()
}

fn text(row: &Row<'_>, column: usize) -> rusqlite::Result<String> {
    row.get(column)
}

/// The notifications with these ids, 16 bytes each.
pub(super) async fn waiting(connection: &mut SqliteConnection, ids: &[u8]) -> Result<Vec<Notification>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql = QueryBuilder::<Driver>::new("SELECT waiting FROM notifications WHERE state = 'pending' AND id IN (");
    let mut list = sql.separated(", ");
    for id in ids.chunks(16) {
        list.push_bind(id);
    }
    sql.push(") ORDER BY id");
    let rows = sql.build().fetch_all(connection).await.map_err(failure)?;
    let parse = |row: &SqliteRow| {
        postcard::from_bytes::<Notification>(column(row, 0)?).map_err(|_| damaged("notifications.waiting"))
    };
    rows.iter().map(parse).collect()
}

pub(super) async fn events(
    connection: &mut SqliteConnection,
    ids: &[EventId],
    verdicts: StoredVerdicts,
) -> Result<Vec<EventRow>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let last = if verdicts == StoredVerdicts::With { "verdicts" } else { "'[]'" };
    let mut sql = QueryBuilder::<Driver>::new(format!("SELECT {EVENT_COLUMNS}, {last} FROM events WHERE id IN ("));
    let mut list = sql.separated(", ");
    for id in ids {
        list.push_bind(id.0.as_bytes().to_vec());
    }
    sql.push(")");
    let rows = sql.build().fetch_all(connection).await.map_err(failure)?;
    rows.iter().map(event_row).collect()
}

pub(super) fn conversation_row(row: &SqliteRow) -> Result<ConversationRow, StoreError> {
    Ok(ConversationRow {
        key: ConversationKey::new(column(row, 1)?, column(row, 0)?),
        registered: column::<i64>(row, 2)? != 0,
        title: column(row, 3)?,
        boundary: Boundary::parse(column(row, 4)?).ok_or_else(|| damaged("conversations.boundary"))?,
        created_at: Time::from_millis(column(row, 5)?),
        seen_at: Time::from_millis(column(row, 6)?),
        workers: parse_json(column(row, 7)?, "conversations.workers")?,
        boundary_changed: column::<i64>(row, 8)? != 0,
        folder: column(row, 9)?,
        agent_secret: column::<Vec<u8>>(row, 10)?.try_into().map_err(|_| damaged("conversations.agent_secret"))?,
        agent_boundaries: agent_boundaries(column(row, 11)?)?,
    })
}

fn agent_boundaries(json: &str) -> Result<Vec<(Arc<str>, Boundary)>, StoreError> {
    const COLUMN: &str = "conversations.agent_boundaries";
    let stored: Vec<(Arc<str>, String)> = parse_json(json, COLUMN)?;
    let parse = |(agent, text): (Arc<str>, String)| Some((agent, Boundary::parse(&text)?));
    stored.into_iter().map(parse).collect::<Option<_>>().ok_or_else(|| damaged(COLUMN))
}

fn event_row(row: &SqliteRow) -> Result<EventRow, StoreError> {
    let stored = StoredEvent {
        id: EventId(uuid(row, 0)?),
        kind: column(row, 1)?,
        source: column(row, 2)?,
        severity: Severity::parse(column(row, 3)?).map_err(|_| damaged("events.severity"))?,
        timestamp: Time::from_millis(column(row, 4)?),
        payload: column(row, 5)?,
        dedupe_key: column(row, 6)?,
        conversation_id: column(row, 7)?,
        agent: column(row, 8)?,
        user_id: column(row, 9)?,
        correlation_id: column(row, 10)?,
        cause: EventCause::parse(column(row, 11)?).ok_or_else(|| damaged("events.cause"))?,
    };
    let packed = PackedEvent::of_stored(&stored);
    let event = Event::from_stored(stored).map_err(|error| damaged(&error.to_string()))?;
    Ok(EventRow {
        packed,
        event: Arc::new(event),
        owner: column::<String>(row, 12)?.into(),
        accepted_at: Time::from_millis(column(row, 13)?),
        filtered: u32::try_from(column::<i64>(row, 14)?).unwrap_or(0),
        verdicts: parse_json(column(row, 15)?, "events.verdicts")?,
    })
}

/// The injections that showed these notifications, each once, oldest first.
async fn injections(
    connection: &mut SqliteConnection,
    owner: &str,
    shown: &[NotificationView],
) -> Result<Vec<InjectionView>, StoreError> {
    let mut injections: Vec<InjectionView> = Vec::new();
    for (one, call_id) in shown.iter().filter_map(|one| Some((one, one.call_id.as_deref()?))) {
        let same = |known: &InjectionView| {
            known.call_id == call_id && known.agent == one.agent && known.conversation_id == one.conversation_id
        };
        if injections.iter().any(same) {
            continue;
        }
        let row = sqlx::query(
            "SELECT point, at, unseen FROM injections \
             WHERE owner = $1 AND conversation_id = $2 AND agent = $3 AND call_id = $4",
        )
        .bind(owner)
        .bind(&one.conversation_id)
        .bind(&one.agent)
        .bind(call_id)
        .fetch_optional(&mut *connection)
        .await
        .map_err(failure)?;
        // Answers are kept for a shorter time than events, so the row may be gone.
        let Some(row) = &row else { continue };
        injections.push(InjectionView {
            conversation_id: one.conversation_id.clone(),
            agent: one.agent.clone(),
            call_id: call_id.to_owned(),
            point: column(row, 0)?,
            at: Time::from_millis(column(row, 1)?),
            unseen: column::<i64>(row, 2)? != 0,
        });
    }
    injections.sort_by_key(|one| one.at);
    Ok(injections)
}

async fn superseded(connection: &mut SqliteConnection, id: EventId) -> Result<Vec<Superseded>, StoreError> {
    let rows = sqlx::query("SELECT subscriber_id, newer_id, at FROM superseded WHERE event_id = $1 ORDER BY 1")
        .bind(id.0.as_bytes().to_vec())
        .fetch_all(connection)
        .await
        .map_err(failure)?;
    let view = |row: &SqliteRow| {
        Ok(Superseded {
            subscriber: column(row, 0)?,
            by: EventId(uuid(row, 1)?),
            at: Time::from_millis(column(row, 2)?),
        })
    };
    rows.iter().map(view).collect()
}

async fn notifications(connection: &mut SqliteConnection, ids: &[Uuid]) -> Result<Vec<NotificationView>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut sql = QueryBuilder::<Driver>::new(
        "SELECT id, subscriber_id, conversation_id, agent, priority, inject_at, state, reason, content, call_id, \
         created_at, ended_at, template_error FROM notifications WHERE id IN (",
    );
    let mut list = sql.separated(", ");
    for id in ids {
        list.push_bind(id.as_bytes().to_vec());
    }
    sql.push(") ORDER BY id");
    let rows = sql.build().fetch_all(connection).await.map_err(failure)?;
    let view = |row: &SqliteRow| {
        Ok(NotificationView {
            id: NotificationId(uuid(row, 0)?),
            subscriber_id: column(row, 1)?,
            conversation_id: column(row, 2)?,
            agent: column(row, 3)?,
            priority: column(row, 4)?,
            inject_at: column(row, 5)?,
            state: column(row, 6)?,
            reason: column(row, 7)?,
            content: column(row, 8)?,
            call_id: column(row, 9)?,
            created_at: Time::from_millis(column(row, 10)?),
            ended_at: column::<Option<i64>>(row, 11)?.map(Time::from_millis),
            template_error: column(row, 12)?,
        })
    };
    rows.iter().map(view).collect()
}

fn token(row: &SqliteRow) -> Result<Token, StoreError> {
    Ok(Token {
        id: column(row, 0)?,
        secret_hash: column(row, 1)?,
        scope: column(row, 2)?,
        name: column(row, 3)?,
        user_id: column(row, 4)?,
        origin: column(row, 5)?,
        conversation_id: column(row, 6)?,
        created_at: Time::from_millis(column(row, 7)?),
        expires_at: column::<Option<i64>>(row, 8)?.map(Time::from_millis),
        revoked_at: column::<Option<i64>>(row, 9)?.map(Time::from_millis),
    })
}

/// A column of a row. A value of another type is reported as damage.
pub(super) fn column<'r, T>(row: &'r SqliteRow, index: usize) -> Result<T, StoreError>
where
    T: Decode<'r, Driver> + Type<Driver>,
{
    row.try_get(index).map_err(|error| damaged(&format!("column {}: {error}", row.column(index).name())))
}

pub(super) fn uuid(row: &SqliteRow, index: usize) -> Result<Uuid, StoreError> {
    Uuid::from_slice(column(row, index)?).map_err(|_| damaged("an id"))
}

pub(super) fn parse_json<T: serde::de::DeserializeOwned>(text: &str, what: &str) -> Result<T, StoreError> {
    serde_json::from_str(text).map_err(|_| damaged(what))
}

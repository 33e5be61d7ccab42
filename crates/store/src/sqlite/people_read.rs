//! Reads the rows of people.

use std::collections::BTreeSet;

use bellwire_core::person::{ChannelName, PersonSettings, TOAST_DURATION_MAX};
use bellwire_core::{NotificationId, Time};
use sqlx::sqlite::{Sqlite as Driver, SqliteConnection, SqliteRow};
use sqlx::{Connection as _, QueryBuilder};
use uuid::Uuid;

use super::read::{column, first, parse_json, uuid};
use super::{Sqlite, SqliteWriter, damaged, failed, failure, row_count};
use crate::damage::Found;
use crate::error::StoreError;
use crate::executor::{PeopleRowSource, StoredItem};
use crate::people::{
    Catchup, ConfirmationRow, DUE_TOASTS_MAX, Delivery, DeliveryContent, DeliveryState, DirectMessage, Hold,
    InboxChange, InboxItem, InboxItemKind, InboxItemType, InboxQuery, InboxState, KnownPerson, LoadedPerson,
    PersonTrace, Reminder, SEARCHED_MAX, UNREAD_COUNTED_MAX, due_toasts,
};
use crate::single_writer::PeopleReader;

const INBOX: &str = "SELECT user_id, id, shelf, type, origin, conversation_id, title, message, toast_json, \
                     correlation_id, created_at, read_at, dismissed_at, acted_json, created_sequence, \
                     changed_sequence, source, template_error, repeats FROM inbox WHERE ";
/// The changes of an inbox after a position, in order: creations, and the last change of each item.
const CHANGES: &str = "SELECT user_id, id, shelf, type, origin, conversation_id, title, message, toast_json, \
                       correlation_id, created_at, read_at, dismissed_at, acted_json, created_sequence, \
                       changed_sequence, source, template_error, repeats, position FROM \
                       (SELECT *, created_sequence AS position FROM inbox \
                       WHERE user_id = $1 AND changed_sequence > $2 AND created_sequence > $2 \
                       UNION ALL SELECT *, changed_sequence AS position FROM inbox \
                       WHERE user_id = $1 AND changed_sequence > $2 AND changed_sequence > created_sequence) \
                       ORDER BY position LIMIT $3";
const DELIVERIES: &str = "SELECT id, notification_id, user_id, channel, target, state, reason, attempts, not_before, \
                          lease_until, fence, letter_id, created_at, ended_at, held_by, is_direct FROM deliveries WHERE ";
pub(super) const OLDEST_DELIVERY: &str =
    "SELECT MIN(not_before) FROM deliveries WHERE state = 'waiting' AND channel = $1";
/// What a list says of these people, a JSON array of their ids.
const PEOPLE: &str = "SELECT value, (SELECT MAX(seen_at) FROM conversations WHERE user_id = value), \
                      (SELECT COUNT(*) FROM (SELECT 1 FROM inbox WHERE user_id = value AND read_at IS NULL LIMIT $2)) \
                      FROM json_each($1) ORDER BY value";
const REMINDERS: &str = "SELECT id, user_id, origin, conversation_id, message, type, asked, at, due_at, \
                         correlation_id, created_at, ended_at, notification_id, source, template_error, repeats \
                         FROM reminders WHERE ";

impl PeopleRowSource for SqliteWriter {
    async fn person(&mut self, user_id: &str, since: Time) -> Result<LoadedPerson, StoreError> {
        let connection = &mut self.reading;
        let mut person = LoadedPerson { settings: settings(connection, user_id).await?, ..LoadedPerson::default() };
        let position = sqlx::query("SELECT position FROM inbox_positions WHERE user_id = $1").bind(user_id);
        let position = position.fetch_optional(&mut *connection).await.map_err(failure)?;
        person.position = position.map(|row| column(&row, 0)).transpose()?;
        let rows = sqlx::query(
            "SELECT shelf, type, created_at FROM inbox WHERE user_id = $1 AND id > $2 AND created_at > $3 ORDER BY created_at",
        );
        let rows = rows.bind(user_id).bind(first_id_since(since)).bind(since.as_millis());
        let rows = rows.fetch_all(connection).await.map_err(failure)?;
        for row in &rows {
            let kind = InboxItemKind::parse(column(row, 0)?).ok_or_else(|| damaged("inbox.shelf"))?;
            let item_type = InboxItemType::parse(column(row, 1)?).ok_or_else(|| damaged("inbox.type"))?;
            person.sent.push((kind, item_type, Time::from_millis(column(row, 2)?)));
        }
        Ok(person)
    }

    async fn inbox_item(&mut self, user_id: &str, id: NotificationId) -> Result<Option<InboxItem>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(INBOX);
        sql.push("user_id = ").push_bind(user_id).push(" AND id = ").push_bind(id.0.as_bytes().to_vec());
        Ok(all(sql, &mut self.reading, inbox_item).await?.pop())
    }

    async fn inbox_items(&mut self, user_id: &str, ids: &[NotificationId]) -> Result<Vec<StoredItem>, StoreError> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut sql = QueryBuilder::<Driver>::new(INBOX);
        sql.push("user_id = ").push_bind(user_id).push(" AND id IN (");
        let mut list = sql.separated(", ");
        for id in ids {
            list.push_bind(id.0.as_bytes().to_vec());
        }
        sql.push(")");
        let rows = sql.build().fetch_all(&mut self.reading).await.map_err(failure)?;
        rows.iter().map(|row| Ok((NotificationId(uuid(row, 1)?), inbox_item(row)))).collect()
    }

    async fn unread(&mut self, user_id: &str, limit: usize) -> Result<Vec<InboxItem>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(INBOX);
        sql.push("read_at IS NULL AND user_id = ").push_bind(user_id);
        sql.push(" ORDER BY id LIMIT ").push_bind(row_count(limit));
        all(sql, &mut self.reading, inbox_item).await
    }

    async fn reminder(&mut self, id: Uuid) -> Result<Option<Reminder>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(REMINDERS);
        sql.push("id = ").push_bind(id.as_bytes().to_vec());
        Ok(all(sql, &mut self.reading, reminder).await?.pop())
    }

    async fn waiting_reminders(&mut self, user_id: &str) -> Result<usize, StoreError> {
        let sql = "SELECT COUNT(*) FROM reminders WHERE user_id = $1 AND ended_at IS NULL AND asked <> 0";
        let waiting: i64 = sqlx::query_scalar(sql).bind(user_id).fetch_one(&mut self.reading).await.map_err(failure)?;
        Ok(usize::try_from(waiting).unwrap_or(0))
    }

    async fn due_reminders(
        &mut self,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> Result<Found<Reminder>, StoreError> {
        // Runs with every tick and almost never finds a row, so a cheap query comes first.
        let any = "SELECT 1 FROM reminders WHERE ended_at IS NULL AND due_at <= ?1 LIMIT 1";
        if first(&self.connection, any, [now.as_millis()], |_| Ok(())).map_err(failed)?.is_none() {
            return Ok(Vec::new().into());
        }
        let query = |limit: usize| {
            let mut sql = QueryBuilder::<Driver>::new(REMINDERS);
            sql.push("ended_at IS NULL AND due_at <= ").push_bind(now.as_millis());
            push_except(&mut sql, except);
            sql.push(" ORDER BY due_at, id LIMIT ").push_bind(row_count(limit));
            sql
        };
        oldest(&mut self.reading, limit, "reminders", query, reminder).await
    }

    async fn delivery(&mut self, id: Uuid) -> Result<Option<Delivery>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(DELIVERIES);
        sql.push("id = ").push_bind(id.as_bytes().to_vec());
        Ok(all(sql, &mut self.reading, delivery).await?.pop())
    }

    async fn due_deliveries(
        &mut self,
        channel: &ChannelName,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> Result<Found<Delivery>, StoreError> {
        let query = |limit: usize| {
            let mut sql = QueryBuilder::<Driver>::new(DELIVERIES);
            sql.push("state = 'waiting' AND channel = ").push_bind(channel.as_str());
            sql.push(" AND not_before <= ").push_bind(now.as_millis());
            push_except(&mut sql, except);
            sql.push(" ORDER BY not_before, id LIMIT ").push_bind(row_count(limit));
            sql
        };
        oldest(&mut self.reading, limit, "deliveries", query, delivery).await
    }

    async fn waiting_deliveries(
        &mut self,
        user_id: &str,
        after: Uuid,
        limit: usize,
    ) -> Result<Found<Delivery>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(DELIVERIES);
        sql.push("state = 'waiting' AND user_id = ").push_bind(user_id);
        sql.push(" AND id > ").push_bind(after.as_bytes().to_vec());
        sql.push(" ORDER BY id LIMIT ").push_bind(row_count(limit));
        found(sql, &mut self.reading, "deliveries", delivery).await
    }

    async fn waiting_on_channel(
        &mut self,
        user_id: &str,
        channel: &ChannelName,
        limit: usize,
    ) -> Result<Found<Delivery>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(DELIVERIES);
        sql.push("state = 'waiting' AND user_id = ").push_bind(user_id);
        sql.push(" AND channel = ").push_bind(channel.as_str());
        sql.push(" ORDER BY id LIMIT ").push_bind(row_count(limit));
        found(sql, &mut self.reading, "deliveries", delivery).await
    }

    async fn attempt(
        &mut self,
        message_id: Uuid,
        fence: i64,
        state: DeliveryState,
        limit: usize,
    ) -> Result<Found<Delivery>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(DELIVERIES);
        sql.push("letter_id = ").push_bind(message_id.as_bytes().to_vec()).push(" AND fence = ").push_bind(fence);
        sql.push(" AND +state = ").push_bind(state.as_str()).push(" ORDER BY id LIMIT ").push_bind(row_count(limit));
        found(sql, &mut self.reading, "deliveries", delivery).await
    }

    async fn lapsed_deliveries(
        &mut self,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> Result<Found<Delivery>, StoreError> {
        let query = |limit: usize| {
            let mut sql = QueryBuilder::<Driver>::new(DELIVERIES);
            sql.push("state IN ('claimed', 'started') AND (lease_until IS NULL OR lease_until <= ");
            sql.push_bind(now.as_millis()).push(")");
            push_except(&mut sql, except);
            sql.push(" ORDER BY lease_until LIMIT ").push_bind(row_count(limit));
            sql
        };
        oldest(&mut self.reading, limit, "deliveries", query, delivery).await
    }

    async fn messages_in_flight(&mut self, channel: &ChannelName) -> Result<Vec<(String, Option<Uuid>)>, StoreError> {
        let sql = "SELECT DISTINCT user_id, letter_id FROM deliveries WHERE state IN ('claimed', 'started') \
                   AND channel = $1";
        let rows = sqlx::query(sql).bind(channel.as_str()).fetch_all(&mut self.reading).await.map_err(failure)?;
        // A damaged row is reported when its lease ends; here it is only not counted.
        Ok(rows.iter().filter_map(|row| Some((column(row, 0).ok()?, optional(row, 1).ok()?))).collect())
    }

    async fn message_deliveries(&mut self, user_id: &str, message_id: Uuid) -> Result<Found<Delivery>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(DELIVERIES);
        // The plus keeps SQLite from using the index on user_id: a message has few deliveries, a person many.
        sql.push("+user_id = ").push_bind(user_id).push(" AND letter_id = ").push_bind(message_id.as_bytes().to_vec());
        found(sql, &mut self.reading, "deliveries", delivery).await
    }

    async fn direct_message(&mut self, delivery_id: Uuid) -> Result<Option<DirectMessage>, StoreError> {
        let sql = "SELECT origin, subject, message, needs_allowance FROM direct_messages WHERE delivery_id = $1";
        let row = sqlx::query(sql).bind(delivery_id.as_bytes().to_vec());
        let row = row.fetch_optional(&mut self.reading).await.map_err(failure)?;
        let Some(row) = &row else { return Ok(None) };
        Ok(Some(DirectMessage {
            origin: column(row, 0)?,
            subject: column(row, 1)?,
            message: column(row, 2)?,
            needs_allowance: column::<i64>(row, 3)? != 0,
        }))
    }

    async fn codes_since(&mut self, user_id: &str, since: Time) -> Result<usize, StoreError> {
        let sql = "SELECT COUNT(*) FROM deliveries WHERE user_id = $1 AND notification_id IS NULL AND created_at > $2";
        let row = sqlx::query(sql).bind(user_id).bind(since.as_millis());
        let row = row.fetch_one(&mut self.reading).await.map_err(failure)?;
        Ok(usize::try_from(column::<i64>(&row, 0)?).unwrap_or(0))
    }

    async fn confirmation(
        &mut self,
        user_id: &str,
        channel: &ChannelName,
    ) -> Result<Option<ConfirmationRow>, StoreError> {
        let sql = "SELECT target, code, expires_at, tries FROM confirmations WHERE user_id = $1 AND channel = $2";
        let row = sqlx::query(sql).bind(user_id).bind(channel.as_str());
        let row = row.fetch_optional(&mut self.reading).await.map_err(failure)?;
        let Some(row) = &row else { return Ok(None) };
        Ok(Some(ConfirmationRow {
            target: column(row, 0)?,
            code: column(row, 1)?,
            expires_at: Time::from_millis(column(row, 2)?),
            tries: column(row, 3)?,
        }))
    }

    async fn secret(&mut self, name: &str) -> Result<Option<Vec<u8>>, StoreError> {
        let row = sqlx::query("SELECT value FROM secrets WHERE name = $1").bind(name);
        let row = row.fetch_optional(&mut self.reading).await.map_err(failure)?;
        row.map(|row| column(&row, 0)).transpose()
    }
}

impl PeopleReader for Sqlite {
    async fn settings(&self, user_id: &str) -> Result<PersonSettings, StoreError> {
        settings(&mut *self.pool.acquire().await.map_err(failure)?, user_id).await
    }

    async fn inbox(&self, user_id: &str, query: InboxQuery) -> Result<Vec<InboxItem>, StoreError> {
        let mut sql = inbox_query(user_id, &query);
        sql.push(" ORDER BY id DESC LIMIT ").push_bind(row_count(query.limit));
        all(sql, &mut *self.pool.acquire().await.map_err(failure)?, inbox_item).await
    }

    async fn search_inbox(
        &self,
        user_id: &str,
        query: InboxQuery,
        text: &str,
    ) -> Result<(Vec<InboxItem>, Option<Uuid>), StoreError> {
        let mut connection = self.pool.acquire().await.map_err(failure)?;
        // The last item of this page's part of the inbox.
        let mut sql = QueryBuilder::<Driver>::new("SELECT id FROM inbox WHERE user_id = ");
        sql.push_bind(user_id);
        if let Some(before) = query.before {
            sql.push(" AND id < ").push_bind(before.as_bytes().to_vec());
        }
        sql.push(" ORDER BY id DESC LIMIT 1 OFFSET ").push_bind(row_count(SEARCHED_MAX - 1));
        let last = sql.build().fetch_optional(&mut *connection).await.map_err(failure)?;
        let last = last.map(|row| uuid(&row, 0)).transpose()?;
        let mut sql = inbox_query(user_id, &query);
        if let Some(last) = last {
            sql.push(" AND id >= ").push_bind(last.as_bytes().to_vec());
        }
        sql.push(" AND (");
        for (at, text_column) in ["message", "title", "origin", "source"].into_iter().enumerate() {
            sql.push(if at == 0 { "" } else { " OR " });
            sql.push(format!("INSTR(LOWER({text_column}), ")).push_bind(text).push(") > 0");
        }
        sql.push(") ORDER BY id DESC LIMIT ").push_bind(row_count(query.limit));
        Ok((all(sql, &mut connection, inbox_item).await?, last))
    }

    async fn people(&self, prefix: &str, after: Option<&str>, limit: usize) -> Result<Vec<KnownPerson>, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(failure)?;
        let mut ids = BTreeSet::new();
        for table in ["conversations", "inbox_positions", "user_settings", "tokens", "sessions"] {
            ids.extend(distinct_people(&mut connection, table, prefix, after, limit).await?);
        }
        let ids: Vec<&String> = ids.iter().take(limit).collect();
        let rows = sqlx::query(PEOPLE).bind(serde_json::to_string(&ids).unwrap_or_default());
        let rows = rows.bind(row_count(UNREAD_COUNTED_MAX)).fetch_all(&mut *connection).await.map_err(failure)?;
        let person = |row: &SqliteRow| {
            Ok(KnownPerson {
                id: column(row, 0)?,
                last_seen_at: time(row, 1)?.filter(|at| *at > Time::ZERO),
                unread: usize::try_from(column::<i64>(row, 2)?).unwrap_or(0),
            })
        };
        rows.iter().map(person).collect()
    }

    async fn unread_count(&self, user_id: &str) -> Result<usize, StoreError> {
        unread(&mut *self.pool.acquire().await.map_err(failure)?, user_id).await
    }

    async fn catch_up(
        &self,
        user_id: &str,
        after: Option<i64>,
        limit: usize,
        now: Time,
    ) -> Result<Catchup, StoreError> {
        let mut connection = self.pool.acquire().await.map_err(failure)?;
        // One transaction, so that the items, the position and the count are consistent.
        let mut moment = connection.begin().await.map_err(failure)?;
        let position = sqlx::query("SELECT position FROM inbox_positions WHERE user_id = $1").bind(user_id);
        let position = position.fetch_optional(&mut *moment).await.map_err(failure)?;
        let mut position = position.map_or(Ok(0), |row| column(&row, 0))?;
        let mut changes = Vec::new();
        let due_toasts = match after {
            None => due_toasts(shown_toasts(&mut moment, user_id, now).await?, now),
            Some(_) => Vec::new(),
        };
        if let Some(after) = after {
            let rows = sqlx::query(CHANGES).bind(user_id).bind(after).bind(row_count(limit + 1));
            let rows = rows.fetch_all(&mut *moment).await.map_err(failure)?;
            let change = |row| Ok(InboxChange { position: column(row, 19)?, item: inbox_item(row)? });
            changes = rows.iter().map(change).collect::<Result<Vec<_>, StoreError>>()?;
        }
        let more = changes.len() > limit;
        changes.truncate(limit);
        if more {
            position = changes.last().map_or(position, |change| change.position);
        }
        let unread = unread(&mut moment, user_id).await?;
        moment.rollback().await.map_err(failure)?;
        Ok(Catchup { changes, due_toasts, position, unread, more })
    }

    async fn reminders(
        &self,
        user_id: Option<&str>,
        after: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<Reminder>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(REMINDERS);
        sql.push("asked = 1 AND ended_at IS NULL");
        if let Some(user) = user_id {
            sql.push(" AND user_id = ").push_bind(user);
        }
        if let Some(after) = after {
            sql.push(" AND id > ").push_bind(after.as_bytes().to_vec());
        }
        sql.push(" ORDER BY id LIMIT ").push_bind(row_count(limit));
        all(sql, &mut *self.pool.acquire().await.map_err(failure)?, reminder).await
    }

    async fn deliveries(
        &self,
        user_id: Option<&str>,
        state: Option<DeliveryState>,
        before: Option<Uuid>,
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(DELIVERIES);
        sql.push("1 = 1");
        if let Some(user) = user_id {
            sql.push(" AND user_id = ").push_bind(user);
        }
        if let Some(state) = state {
            sql.push(" AND state = ").push_bind(state.as_str());
        }
        if let Some(before) = before {
            sql.push(" AND id < ").push_bind(before.as_bytes().to_vec());
        }
        sql.push(" ORDER BY id DESC LIMIT ").push_bind(row_count(limit));
        all(sql, &mut *self.pool.acquire().await.map_err(failure)?, delivery).await
    }

    async fn deliveries_of(
        &self,
        user_id: &str,
        ids: &[NotificationId],
        limit: usize,
    ) -> Result<Vec<Delivery>, StoreError> {
        let mut sql = QueryBuilder::<Driver>::new(DELIVERIES);
        // The plus keeps SQLite from walking through all deliveries of the person.
        sql.push("+user_id = ").push_bind(user_id).push(" AND notification_id IN (");
        let mut list = sql.separated(", ");
        for id in ids {
            list.push_bind(id.0.as_bytes().to_vec());
        }
        sql.push(") ORDER BY id LIMIT ").push_bind(row_count(limit));
        Ok(found(sql, &mut *self.pool.acquire().await.map_err(failure)?, "deliveries", delivery).await?.rows)
    }

    async fn oldest_delivery(&self, channel: &ChannelName) -> Result<Option<Time>, StoreError> {
        let row = sqlx::query(OLDEST_DELIVERY);
        let row = row.bind(channel.as_str()).fetch_one(&self.pool).await.map_err(failure)?;
        Ok(column::<Option<i64>>(&row, 0)?.map(Time::from_millis))
    }
}

/// The person's notifications with these ids, which come from the verdicts on an event.
pub(super) async fn person_traces(
    connection: &mut SqliteConnection,
    user_id: &str,
    names: &[Uuid],
) -> Result<Vec<PersonTrace>, StoreError> {
    let mut all_told = Vec::new();
    for name in BTreeSet::from_iter(names) {
        let mut sql = QueryBuilder::<Driver>::new(REMINDERS);
        sql.push("asked = 0 AND user_id = ").push_bind(user_id).push(" AND id = ").push_bind(name.as_bytes().to_vec());
        let later = all(sql, connection, reminder).await?.pop();
        // A notification that was deferred as a reminder has another id after it was sent.
        let id = later.as_ref().and_then(|later| later.notification_id).map_or(*name, |id| id.0).as_bytes().to_vec();
        let mut sql = QueryBuilder::<Driver>::new(INBOX);
        sql.push("user_id = ").push_bind(user_id).push(" AND id = ").push_bind(id.clone());
        let item = all(sql, connection, inbox_item).await?.pop();
        let mut sql = QueryBuilder::<Driver>::new(DELIVERIES);
        sql.push("+user_id = ").push_bind(user_id).push(" AND notification_id = ").push_bind(id);
        let deliveries = all(sql, connection, delivery).await?;
        all_told.extend(PersonTrace::of(item, later, deliveries));
    }
    Ok(all_told)
}

/// The items of a query, without its order and limit.
fn inbox_query(user_id: &str, query: &InboxQuery) -> QueryBuilder<Driver> {
    let mut sql = QueryBuilder::<Driver>::new(INBOX);
    sql.push("user_id = ").push_bind(user_id);
    sql.push(match query.state {
        InboxState::Unread => " AND read_at IS NULL",
        InboxState::All => " AND dismissed_at IS NULL",
        InboxState::Dismissed => " AND dismissed_at IS NOT NULL",
    });
    if let Some(item_type) = query.item_type {
        sql.push(" AND type = ").push_bind(item_type.as_str());
    }
    if let Some(before) = query.before {
        sql.push(" AND id < ").push_bind(before.as_bytes().to_vec());
    }
    sql
}

/// The first distinct people of a table after an id, each found by one step in an index: a person has many rows.
async fn distinct_people(
    connection: &mut SqliteConnection,
    table: &str,
    prefix: &str,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<String>, StoreError> {
    // The first id with the prefix may be the prefix itself.
    let (after, from) = (after.filter(|after| *after >= prefix), prefix);
    let first = if after.is_some() { ">" } else { ">=" };
    let sql = format!(
        "WITH RECURSIVE ids(id) AS (SELECT MIN(user_id) FROM {table} WHERE user_id {first} $1 UNION ALL \
         SELECT (SELECT MIN(user_id) FROM {table} WHERE user_id > ids.id) FROM ids WHERE ids.id IS NOT NULL LIMIT $2) \
         SELECT id FROM ids WHERE id IS NOT NULL"
    );
    // One more for `*`, which is no person, and one for the end.
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql)).bind(after.unwrap_or(from)).bind(row_count(limit + 2));
    let rows = rows.fetch_all(connection).await.map_err(failure)?;
    let ids = rows.iter().map(|row| column::<String>(row, 0)).collect::<Result<Vec<_>, _>>()?;
    Ok(ids.into_iter().filter(|id| id != "*" && id.starts_with(prefix)).collect())
}

/// The unread toasts that may be due: the newest that stay until they are dismissed, and those of the last seconds.
async fn shown_toasts(
    connection: &mut SqliteConnection,
    user_id: &str,
    now: Time,
) -> Result<Vec<InboxItem>, StoreError> {
    let limit = row_count(DUE_TOASTS_MAX);
    let mut sql = QueryBuilder::<Driver>::new(INBOX);
    sql.push("user_id = ").push_bind(user_id).push(" AND persistent = 1 AND read_at IS NULL ORDER BY id DESC LIMIT ");
    sql.push_bind(limit);
    let mut toasts = found(sql, connection, "inbox", inbox_item).await?.rows;
    let since = u64::try_from(now.minus(TOAST_DURATION_MAX).as_millis()).unwrap_or(0);
    let mut sql = QueryBuilder::<Driver>::new(INBOX);
    sql.push("user_id = ").push_bind(user_id).push(" AND id >= ").push_bind(since.to_be_bytes()[2..].to_vec());
    sql.push(" AND +persistent = 0 AND +read_at IS NULL AND toast_json IS NOT NULL ORDER BY id DESC LIMIT ");
    sql.push_bind(limit);
    toasts.extend(found(sql, connection, "inbox", inbox_item).await?.rows);
    Ok(toasts)
}

pub(super) async fn all<T>(
    mut sql: QueryBuilder<Driver>,
    connection: &mut SqliteConnection,
    read: fn(&SqliteRow) -> Result<T, StoreError>,
) -> Result<Vec<T>, StoreError> {
    let rows = sql.build().fetch_all(connection).await.map_err(failure)?;
    rows.iter().map(read).collect()
}

/// The same, with damaged rows reported separately, for work that must go on without them.
pub(super) async fn found<T>(
    mut sql: QueryBuilder<Driver>,
    connection: &mut SqliteConnection,
    table: &str,
    read: fn(&SqliteRow) -> Result<T, StoreError>,
) -> Result<Found<T>, StoreError> {
    let rows = sql.build().fetch_all(connection).await.map_err(failure)?;
    let mut found = Found::from(Vec::with_capacity(rows.len()));
    for row in &rows {
        match read(row) {
            Ok(one) => found.rows.push(one),
            Err(error) => found.damaged.push((format!("{table} {}", id_of(row)), error)),
        }
    }
    Ok(found)
}

/// The same, until `limit` readable rows are found. Damaged rows stay and become the oldest, so they must not count
/// towards the limit.
async fn oldest<T>(
    connection: &mut SqliteConnection,
    wanted: usize,
    table: &str,
    query: impl Fn(usize) -> QueryBuilder<Driver>,
    read: fn(&SqliteRow) -> Result<T, StoreError>,
) -> Result<Found<T>, StoreError> {
    let mut limit = wanted;
    loop {
        let mut found = found(query(limit), connection, table, read).await?;
        let is_all = found.rows.len() + found.damaged.len() < limit;
        if is_all || found.rows.len() >= wanted {
            found.rows.truncate(wanted);
            return Ok(found);
        }
        limit = wanted.saturating_add(2 * found.damaged.len());
    }
}

/// The waiting reminders, with the damaged ones.
pub(super) async fn reminders_that_wait(connection: &mut SqliteConnection) -> Result<Found<Reminder>, StoreError> {
    let mut sql = QueryBuilder::<Driver>::new(REMINDERS);
    sql.push("ended_at IS NULL");
    found(sql, connection, "reminders", reminder).await
}

/// The waiting deliveries, with the damaged ones.
pub(super) async fn deliveries_that_wait(connection: &mut SqliteConnection) -> Result<Found<Delivery>, StoreError> {
    let mut sql = QueryBuilder::<Driver>::new(DELIVERIES);
    sql.push("ended_at IS NULL");
    found(sql, connection, "deliveries", delivery).await
}

/// Adds a condition that excludes these people.
pub(super) fn push_except(sql: &mut QueryBuilder<Driver>, except: &BTreeSet<String>) {
    if !except.is_empty() {
        let people = serde_json::to_string(except).unwrap_or_default();
        sql.push(" AND user_id NOT IN (SELECT value FROM json_each(").push_bind(people).push("))");
    }
}

/// The id in the first column, as text for the log, if it can be read.
fn id_of(row: &SqliteRow) -> String {
    let id = uuid(row, 0).map(|id| id.to_string());
    id.or_else(|_| column::<String>(row, 0)).unwrap_or_else(|_| "with a damaged id".to_owned())
}

async fn settings(connection: &mut SqliteConnection, user_id: &str) -> Result<PersonSettings, StoreError> {
    let row = sqlx::query("SELECT settings_json FROM user_settings WHERE user_id = $1").bind(user_id);
    let row = row.fetch_optional(connection).await.map_err(failure)?;
    row.map_or(Ok(PersonSettings::default()), |row| parse_json(column(&row, 0)?, "user_settings.settings_json"))
}

async fn unread(connection: &mut SqliteConnection, user_id: &str) -> Result<usize, StoreError> {
    let row = sqlx::query("SELECT COUNT(*) FROM inbox WHERE user_id = $1 AND read_at IS NULL").bind(user_id);
    let row = row.fetch_one(connection).await.map_err(failure)?;
    Ok(usize::try_from(column::<i64>(&row, 0)?).unwrap_or(0))
}

fn inbox_item(row: &SqliteRow) -> Result<InboxItem, StoreError> {
    let toast: Option<&str> = column(row, 8)?;
    Ok(InboxItem {
        user_id: column(row, 0)?,
        id: NotificationId(uuid(row, 1)?),
        kind: InboxItemKind::parse(column(row, 2)?).ok_or_else(|| damaged("inbox.shelf"))?,
        item_type: InboxItemType::parse(column(row, 3)?).ok_or_else(|| damaged("inbox.type"))?,
        origin: column(row, 4)?,
        conversation_id: column(row, 5)?,
        title: column(row, 6)?,
        message: column(row, 7)?,
        toast: toast.map(|text| parse_json(text, "inbox.toast_json")).transpose()?,
        correlation_id: column(row, 9)?,
        created_at: Time::from_millis(column(row, 10)?),
        read_at: time(row, 11)?,
        dismissed_at: time(row, 12)?,
        acted: parse_json(column(row, 13)?, "inbox.acted_json")?,
        created_sequence: column(row, 14)?,
        changed_sequence: column(row, 15)?,
        source: column(row, 16)?,
        template_error: column(row, 17)?,
        repeats: repeats(row, 18)?,
    })
}

fn delivery(row: &SqliteRow) -> Result<Delivery, StoreError> {
    Ok(Delivery {
        id: uuid(row, 0)?,
        content: DeliveryContent::of_row(optional(row, 1)?.map(NotificationId), column::<i64>(row, 15)? != 0),
        user_id: column(row, 2)?,
        channel: channel(row, 3)?,
        target: column(row, 4)?,
        state: DeliveryState::parse(column(row, 5)?).ok_or_else(|| damaged("deliveries.state"))?,
        reason: column(row, 6)?,
        attempts: u32::try_from(column::<i64>(row, 7)?).unwrap_or(u32::MAX),
        not_before: Time::from_millis(column(row, 8)?),
        lease_until: time(row, 9)?,
        fence: column(row, 10)?,
        message_id: optional(row, 11)?,
        created_at: Time::from_millis(column(row, 12)?),
        ended_at: time(row, 13)?,
        held_by: held_by(column(row, 14)?)?,
    })
}

fn channel(row: &SqliteRow, index: usize) -> Result<ChannelName, StoreError> {
    ChannelName::parse(column(row, index)?).map_err(|_| damaged("deliveries.channel"))
}

fn held_by(code: Option<&str>) -> Result<Option<Hold>, StoreError> {
    code.map(|code| Hold::parse(code).ok_or_else(|| damaged("deliveries.held_by"))).transpose()
}

fn reminder(row: &SqliteRow) -> Result<Reminder, StoreError> {
    Ok(Reminder {
        id: uuid(row, 0)?,
        user_id: column(row, 1)?,
        origin: column(row, 2)?,
        conversation_id: column(row, 3)?,
        message: column(row, 4)?,
        item_type: InboxItemType::parse(column(row, 5)?).ok_or_else(|| damaged("reminders.type"))?,
        asked: column::<i64>(row, 6)? != 0,
        at: Time::from_millis(column(row, 7)?),
        due_at: Time::from_millis(column(row, 8)?),
        correlation_id: column(row, 9)?,
        created_at: Time::from_millis(column(row, 10)?),
        ended_at: time(row, 11)?,
        notification_id: optional(row, 12)?.map(NotificationId),
        source: column(row, 13)?,
        template_error: column(row, 14)?,
        repeats: repeats(row, 15)?,
    })
}

fn repeats(row: &SqliteRow, index: usize) -> Result<u32, StoreError> {
    u32::try_from(column::<i64>(row, index)?).map_err(|_| damaged("repeats"))
}

/// The first id to search for items created since a time. Ids start with the time of their creation. A notification
/// gets its id when its batch opens: seconds before it is sent, or longer if the hub was down in between.
fn first_id_since(since: Time) -> Vec<u8> {
    const AWAY_MAX_MS: i64 = 24 * 60 * 60 * 1000;
    let millis = u64::try_from(since.as_millis().saturating_sub(AWAY_MAX_MS)).unwrap_or(0);
    millis.to_be_bytes()[2..].to_vec()
}

pub(super) fn time(row: &SqliteRow, index: usize) -> Result<Option<Time>, StoreError> {
    Ok(column::<Option<i64>>(row, index)?.map(Time::from_millis))
}

pub(super) fn optional(row: &SqliteRow, index: usize) -> Result<Option<Uuid>, StoreError> {
    let bytes: Option<&[u8]> = column(row, index)?;
    bytes.map(|bytes| Uuid::from_slice(bytes).map_err(|_| damaged("an id"))).transpose()
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use rusqlite::{Connection, StatementStatus};

    use super::super::migrate::MIGRATIONS;
    use super::super::read::OLDEST_WAITING;
    use super::*;

    /// The steps of SQLite's virtual machine for a statement, with this many pending notifications and waiting deliveries.
    fn steps(sql: &str, rows: usize) -> i32 {
        let file = Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|(_, sql)| file.execute_batch(sql).unwrap());
        let numbers = format!("WITH n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < {rows})");
        file.execute_batch(&format!(
            "{numbers} INSERT INTO deliveries (id, user_id, channel, target, state, attempts, not_before, fence, created_at)
                 SELECT randomblob(16), 'ada', 'email', 'ada@example.org', 'waiting', 0, i, 0, i FROM n;
             {numbers} INSERT INTO notifications (id, owner, conversation_id, agent, subscriber_id, priority, inject_at, state, \
                 created_at, waiting)
                 SELECT randomblob(16), 'ada', 'chat', 'main', 's', 'high', 'after_tool', 'pending', 1, x'' FROM n;"
        ))
        .unwrap();
        let mut statement = file.prepare(sql).unwrap();
        let values = rusqlite::params_from_iter(vec!["email"; statement.parameter_count()]);
        let found = statement.query_map(values, |_| Ok(())).unwrap().count();
        assert_eq!(found, 1);
        statement.get_status(StatementStatus::VmStep)
    }

    #[test]
    fn the_queries_of_the_metrics_cost_the_same_however_many_rows_wait() {
        for sql in [OLDEST_DELIVERY, OLDEST_WAITING] {
            assert_eq!(steps(sql, 10), steps(sql, 5_000), "{sql}");
            assert!(steps(sql, 10) < 50, "{sql}");
        }
    }
}

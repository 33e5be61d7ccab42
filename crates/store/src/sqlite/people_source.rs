//! Reads of people's rows by the writer, for the commands that it decides.

use std::collections::BTreeSet;

use bellwire_core::person::ChannelName;
use bellwire_core::{NotificationId, Time};
use sqlx::QueryBuilder;
use sqlx::sqlite::Sqlite as Driver;
use uuid::Uuid;

use super::people_read::settings;
use super::people_rows::{DELIVERIES, INBOX, REMINDERS, delivery, inbox_item, reminder};
use super::read::{column, first, uuid};
use super::rows::{all, found, oldest, optional, push_except};
use super::{SqliteWriter, damaged, failed, failure, row_count};
use crate::damage::Found;
use crate::error::StoreError;
use crate::executor::{PeopleRowSource, StoredItem};
use crate::people::{
    ConfirmationRow, Delivery, DeliveryState, DirectMessage, InboxItem, InboxItemKind, InboxItemType, LoadedPerson,
    Reminder,
};

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

/// The first id to search for items created since a time. Ids start with the time of their creation. A notification
/// gets its id when its batch opens: seconds before it is sent, or longer if the hub was down in between.
fn first_id_since(since: Time) -> Vec<u8> {
    const AWAY_MAX_MS: i64 = 24 * 60 * 60 * 1000;
    let millis = u64::try_from(since.as_millis().saturating_sub(AWAY_MAX_MS)).unwrap_or(0);
    millis.to_be_bytes()[2..].to_vec()
}

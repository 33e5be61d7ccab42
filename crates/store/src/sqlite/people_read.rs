//! Reads of people's rows that do not need the writer.

use std::collections::BTreeSet;

use bellwire_core::person::{ChannelName, PersonSettings};
use bellwire_core::{NotificationId, Time};
use sqlx::QueryBuilder;
use sqlx::sqlite::{Sqlite as Driver, SqliteConnection, SqliteRow};
use uuid::Uuid;

use super::people_rows::{DELIVERIES, INBOX, REMINDERS, delivery, inbox_item, reminder};
use super::read::{column, parse_json, uuid};
use super::rows::{all, found, time};
use super::{Sqlite, failure, inbox_read, row_count};
use crate::damage::Found;
use crate::error::StoreError;
use crate::people::{
    Catchup, Delivery, DeliveryState, InboxItem, InboxQuery, ItemHeading, KnownPerson, PersonTrace, Reminder,
    UNREAD_COUNTED_MAX,
};
use crate::single_writer::PeopleReader;

pub(super) const OLDEST_DELIVERY: &str =
    "SELECT MIN(not_before) FROM deliveries WHERE state = 'waiting' AND channel = $1";
/// The headings of a JSON array of people's notifications: each is found by its key, because a cross join is not reordered.
const HEADINGS: &str = "SELECT inbox.id, origin, title, SUBSTR(message, 1, $2) FROM json_each($1) AS asked CROSS JOIN inbox \
     WHERE inbox.user_id = asked.value ->> 0 AND inbox.id = UNHEX(asked.value ->> 1)";
/// What a list says of these people, a JSON array of their ids.
const PEOPLE: &str = "SELECT value, (SELECT MAX(seen_at) FROM conversations WHERE user_id = value), \
                      (SELECT COUNT(*) FROM (SELECT 1 FROM inbox WHERE user_id = value AND read_at IS NULL LIMIT $2)) \
                      FROM json_each($1) ORDER BY value";

impl PeopleReader for Sqlite {
    async fn settings(&self, user_id: &str) -> Result<PersonSettings, StoreError> {
        settings(&mut *self.pool.acquire().await.map_err(failure)?, user_id).await
    }

    async fn inbox(&self, user_id: &str, query: InboxQuery) -> Result<Vec<InboxItem>, StoreError> {
        inbox_read::page(&mut *self.pool.acquire().await.map_err(failure)?, user_id, &query).await
    }

    async fn search_inbox(
        &self,
        user_id: &str,
        query: InboxQuery,
        text: &str,
    ) -> Result<(Vec<InboxItem>, Option<Uuid>), StoreError> {
        inbox_read::search(&mut *self.pool.acquire().await.map_err(failure)?, user_id, &query, text).await
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
        inbox_read::unread(&mut *self.pool.acquire().await.map_err(failure)?, user_id).await
    }

    async fn catch_up(
        &self,
        user_id: &str,
        after: Option<i64>,
        limit: usize,
        now: Time,
    ) -> Result<Catchup, StoreError> {
        inbox_read::catch_up(&mut *self.pool.acquire().await.map_err(failure)?, user_id, after, limit, now).await
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
        let sql = deliveries_query(user_id, state, before, limit);
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

    async fn headings(&self, items: &[(String, NotificationId)]) -> Result<Vec<ItemHeading>, StoreError> {
        let asked: Vec<(&str, String)> =
            items.iter().map(|(user_id, id)| (user_id.as_str(), id.0.simple().to_string())).collect();
        let rows = sqlx::query(HEADINGS).bind(serde_json::to_string(&asked).unwrap_or_default());
        let rows = rows.bind(row_count(ItemHeading::TITLE_MAX + 1)).fetch_all(&self.pool).await.map_err(failure)?;
        let heading = |row: &SqliteRow| {
            let message: String = column(row, 3)?;
            Ok(ItemHeading::new(NotificationId(uuid(row, 0)?), column(row, 1)?, column(row, 2)?, &message))
        };
        rows.iter().map(heading).collect()
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

/// A page of deliveries: of a person by the index on people, of everyone in one state by the index on states.
fn deliveries_query(
    user_id: Option<&str>,
    state: Option<DeliveryState>,
    before: Option<Uuid>,
    limit: usize,
) -> QueryBuilder<Driver> {
    let mut sql = QueryBuilder::<Driver>::new(DELIVERIES);
    match (user_id, state) {
        (Some(user_id), state) => {
            sql.push("user_id = ").push_bind(user_id.to_owned());
            // The plus keeps SQLite from reading the deliveries of everyone in this state.
            state.map(|state| sql.push(" AND +state = ").push_bind(state.as_str()));
        }
        // Both as text, because SQLite compares the condition of the index with that of the query.
        (None, Some(state)) if !matches!(state, DeliveryState::Claimed | DeliveryState::Started) => {
            sql.push("state NOT IN ('claimed', 'started') AND state = ").push_bind(state.as_str());
        }
        (None, Some(state)) => {
            sql.push("state IN ('claimed', 'started') AND +state = ").push_bind(state.as_str());
        }
        (None, None) => {
            sql.push("TRUE");
        }
    }
    // Few deliveries are being attempted: all are read by their index and sorted.
    let is_attempted = matches!(state, Some(DeliveryState::Claimed | DeliveryState::Started));
    let id = if is_attempted && user_id.is_none() { "+id" } else { "id" };
    if let Some(before) = before {
        sql.push(format!(" AND {id} < ")).push_bind(before.as_bytes().to_vec());
    }
    sql.push(format!(" ORDER BY {id} DESC LIMIT ")).push_bind(row_count(limit));
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

pub(super) async fn settings(connection: &mut SqliteConnection, user_id: &str) -> Result<PersonSettings, StoreError> {
    let row = sqlx::query("SELECT settings_json FROM user_settings WHERE user_id = $1").bind(user_id);
    let row = row.fetch_optional(connection).await.map_err(failure)?;
    row.map_or(Ok(PersonSettings::default()), |row| parse_json(column(&row, 0)?, "user_settings.settings_json"))
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
    fn a_page_of_deliveries_is_found_by_an_index_in_order() {
        let file = Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|(_, sql)| file.execute_batch(sql).unwrap());
        let (failed, before) = (Some(DeliveryState::Failed), Some(Uuid::nil()));
        let found = [
            (None, None, "SEARCH deliveries USING PRIMARY KEY"),
            (None, failed, "SEARCH deliveries USING INDEX deliveries_by_state"),
            (None, Some(DeliveryState::Waiting), "SEARCH deliveries USING INDEX deliveries_by_state"),
            (None, Some(DeliveryState::Started), "deliveries_leased"),
            (Some("ada"), None, "SEARCH deliveries USING INDEX deliveries_by_user"),
            (Some("ada"), failed, "SEARCH deliveries USING INDEX deliveries_by_user"),
        ];
        for (user_id, state, expected) in found {
            let query = deliveries_query(user_id, state, before, 20);
            let mut plan = file.prepare(&format!("EXPLAIN QUERY PLAN {}", query.sql().as_str())).unwrap();
            let values = rusqlite::params_from_iter(vec![1; plan.parameter_count()]);
            let lines: Vec<String> = plan.query_map(values, |row| row.get(3)).unwrap().map(Result::unwrap).collect();
            assert!(lines[0].contains(expected), "{lines:#?}");
            assert!(lines.len() == 1 || expected == "deliveries_leased", "{lines:#?}");
        }
    }

    #[test]
    fn headings_are_found_by_the_key_of_their_notification() {
        let file = Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|(_, sql)| file.execute_batch(sql).unwrap());
        let mut plan = file.prepare(&format!("EXPLAIN QUERY PLAN {HEADINGS}")).unwrap();
        let lines: Vec<String> = plan.query_map(["[]", "1"], |row| row.get(3)).unwrap().map(Result::unwrap).collect();
        let expected = ["SCAN asked VIRTUAL TABLE INDEX 1:", "SEARCH inbox USING PRIMARY KEY (user_id=? AND id=?)"];
        assert_eq!(lines, expected);
    }

    #[test]
    fn the_queries_of_the_metrics_cost_the_same_however_many_rows_wait() {
        for sql in [OLDEST_DELIVERY, OLDEST_WAITING] {
            assert_eq!(steps(sql, 10), steps(sql, 5_000), "{sql}");
            assert!(steps(sql, 10) < 50, "{sql}");
        }
    }
}

//! Runs queries and reads their rows, with a report of the damaged ones where work must go on without them.

use std::collections::BTreeSet;

use bellwire_core::Time;
use sqlx::QueryBuilder;
use sqlx::sqlite::{Sqlite as Driver, SqliteConnection, SqliteRow};
use uuid::Uuid;

use super::read::{column, uuid};
use super::{damaged, failure};
use crate::damage::Found;
use crate::error::StoreError;

/// Every row of a query. A damaged row is an error.
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
pub(super) async fn oldest<T>(
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

pub(super) fn time(row: &SqliteRow, index: usize) -> Result<Option<Time>, StoreError> {
    Ok(column::<Option<i64>>(row, index)?.map(Time::from_millis))
}

pub(super) fn optional(row: &SqliteRow, index: usize) -> Result<Option<Uuid>, StoreError> {
    let bytes: Option<&[u8]> = column(row, index)?;
    bytes.map(|bytes| Uuid::from_slice(bytes).map_err(|_| damaged("an id"))).transpose()
}

//! Reads of the inbox that do not need the writer: pages, searches, and the changes for streams.

use bellwire_core::Time;
use bellwire_core::person::TOAST_DURATION_MAX;
use sqlx::sqlite::{Sqlite as Driver, SqliteConnection};
use sqlx::{Connection as _, QueryBuilder};
use uuid::Uuid;

use super::people_rows::{INBOX, inbox_item};
use super::read::{column, uuid};
use super::rows::{all, found};
use super::{failure, row_count};
use crate::error::StoreError;
use crate::people::{
    Catchup, DUE_TOASTS_MAX, InboxChange, InboxItem, InboxQuery, InboxState, SEARCHED_MAX, due_toasts,
};

/// The changes of an inbox after a position, in order: creations, and the last change of each item.
const CHANGES: &str = "SELECT user_id, id, shelf, type, origin, conversation_id, title, message, toast_json, \
                       correlation_id, created_at, read_at, dismissed_at, acted_json, created_sequence, \
                       changed_sequence, source, template_error, repeats, position FROM \
                       (SELECT *, created_sequence AS position FROM inbox \
                       WHERE user_id = $1 AND changed_sequence > $2 AND created_sequence > $2 \
                       UNION ALL SELECT *, changed_sequence AS position FROM inbox \
                       WHERE user_id = $1 AND changed_sequence > $2 AND changed_sequence > created_sequence) \
                       ORDER BY position LIMIT $3";

/// A page of the inbox, newest first.
pub(super) async fn page(
    connection: &mut SqliteConnection,
    user_id: &str,
    query: &InboxQuery,
) -> Result<Vec<InboxItem>, StoreError> {
    let mut sql = inbox_query(user_id, query);
    sql.push(" ORDER BY id DESC LIMIT ").push_bind(row_count(query.limit));
    all(sql, connection, inbox_item).await
}

/// The items of a page that contain a text, and the last item that was looked at if there are more.
pub(super) async fn search(
    connection: &mut SqliteConnection,
    user_id: &str,
    query: &InboxQuery,
    text: &str,
) -> Result<(Vec<InboxItem>, Option<Uuid>), StoreError> {
    // The last item of this page's part of the inbox.
    let mut sql = QueryBuilder::<Driver>::new("SELECT id FROM inbox WHERE user_id = ");
    sql.push_bind(user_id);
    if let Some(before) = query.before {
        sql.push(" AND id < ").push_bind(before.as_bytes().to_vec());
    }
    sql.push(" ORDER BY id DESC LIMIT 1 OFFSET ").push_bind(row_count(SEARCHED_MAX - 1));
    let last = sql.build().fetch_optional(&mut *connection).await.map_err(failure)?;
    let last = last.map(|row| uuid(&row, 0)).transpose()?;
    let mut sql = inbox_query(user_id, query);
    if let Some(last) = last {
        sql.push(" AND id >= ").push_bind(last.as_bytes().to_vec());
    }
    sql.push(" AND (");
    for (at, text_column) in ["message", "title", "origin", "source"].into_iter().enumerate() {
        sql.push(if at == 0 { "" } else { " OR " });
        sql.push(format!("INSTR(LOWER({text_column}), ")).push_bind(text).push(") > 0");
    }
    sql.push(") ORDER BY id DESC LIMIT ").push_bind(row_count(query.limit));
    Ok((all(sql, connection, inbox_item).await?, last))
}

/// The changes after a position, at most `limit`; without a position, the current one and the toasts that are due.
pub(super) async fn catch_up(
    connection: &mut SqliteConnection,
    user_id: &str,
    after: Option<i64>,
    limit: usize,
    now: Time,
) -> Result<Catchup, StoreError> {
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

pub(super) async fn unread(connection: &mut SqliteConnection, user_id: &str) -> Result<usize, StoreError> {
    let row = sqlx::query("SELECT COUNT(*) FROM inbox WHERE user_id = $1 AND read_at IS NULL").bind(user_id);
    let row = row.fetch_one(connection).await.map_err(failure)?;
    Ok(usize::try_from(column::<i64>(&row, 0)?).unwrap_or(0))
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

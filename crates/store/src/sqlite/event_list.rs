//! Lists of events. Rows are numbered in the order in which they were accepted; a page reads them from the newest on, in
//! chunks, until it is full or has read as much as a page may.

use bellwire_core::event::TypePattern;
use bellwire_core::{EventId, Time};
use sha2::{Digest as _, Sha256};
use sqlx::QueryBuilder;
use sqlx::sqlite::{Sqlite as Driver, SqliteConnection, SqliteRow};

use super::prune::first_id_at;
use super::read::{StoredVerdicts, column, events, uuid};
use super::{failure, row_count};
use crate::error::StoreError;
use crate::event_list::{EventQuery, ListedEvent, NamedEvent, PAGE_BYTES_MAX, SCANNED_MAX};

/// How many rows are read at once.
const CHUNK: usize = 500;
/// After so many bytes of payloads a page reads no further chunk: most columns are behind the payload.
const SCANNED_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Row numbers: from the newest that a page has not read yet to the oldest it may read.
struct Unread {
    before: i64,
    from: i64,
}

/// The newest unread rows.
struct Chunk {
    rows: usize,
    /// The number of the last row.
    oldest: i64,
    /// The size of the payloads.
    bytes: usize,
}

/// An event that may be in the page.
struct Candidate {
    id: EventId,
    /// The size of its payload and verdicts.
    bytes: usize,
}

/// The rows are limited before they are joined, so that ids with the same hash cost no more than others.
const NAMED: &str = "SELECT events.id, events.owner, events.conversation_id, events.type, events.accepted_at FROM \
    (SELECT id FROM events WHERE client_id_hash = $1 ORDER BY id DESC LIMIT $2) AS named \
    CROSS JOIN brought_ids ON brought_ids.event_id = named.id CROSS JOIN events ON events.id = named.id \
    WHERE brought_ids.id = $3 ORDER BY named.id DESC";

/// The events with this client event id, of all senders, the newest first.
pub(super) async fn events_named(
    connection: &mut SqliteConnection,
    client_event_id: &str,
    limit: usize,
) -> Result<Vec<NamedEvent>, StoreError> {
    let hash = client_id_hash(client_event_id);
    let query = sqlx::query(NAMED).bind(&hash[..]).bind(row_count(limit)).bind(client_event_id);
    let rows = query.fetch_all(connection).await.map_err(failure)?;
    let named = |row: &SqliteRow| {
        Ok(NamedEvent {
            event_id: EventId(uuid(row, 0)?),
            owner: column(row, 1)?,
            conversation_id: column(row, 2)?,
            kind: column(row, 3)?,
            accepted_at: Time::from_millis(column(row, 4)?),
        })
    };
    rows.iter().map(named).collect()
}

/// The hash of a client event id, by which an index finds it.
pub(super) fn client_id_hash(client_event_id: &str) -> [u8; 16] {
    let hash: [u8; 32] = Sha256::digest(client_event_id.as_bytes()).into();
    std::array::from_fn(|at| hash[at])
}

/// A page of events, newest first, and the position of the next one.
pub(super) async fn event_page(
    connection: &mut SqliteConnection,
    query: &EventQuery,
) -> Result<(Vec<ListedEvent>, Option<EventId>), StoreError> {
    let Some(unread) = unread(connection, query).await? else { return Ok((Vec::new(), None)) };
    let (mut candidates, end) = candidates(connection, query, unread).await?;
    let fits = fitting(&candidates, query.limit);
    let next = match candidates.len() > fits {
        true => candidates.get(fits - 1).map(|last| last.id),
        false => end,
    };
    candidates.truncate(fits);
    let ids: Vec<EventId> = candidates.into_iter().map(|one| one.id).collect();
    let mut rows = events(connection, &ids, StoredVerdicts::With).await?;
    rows.sort_by_key(|row| ids.iter().position(|id| *id == row.event.id()));
    // The statement compares texts; this compares their meaning.
    rows.retain(|row| query.matches(row));
    Ok((rows.into_iter().map(|row| query.filter.listed(row)).collect(), next))
}

/// Where the page begins and ends; none if no event can be in it.
async fn unread(connection: &mut SqliteConnection, query: &EventQuery) -> Result<Option<Unread>, StoreError> {
    let before = match query.before {
        None => i64::MAX,
        Some(id) => {
            // The event itself may have been deleted since the previous page.
            let sql = "SELECT rowid, id FROM events WHERE id <= $1 ORDER BY id DESC LIMIT 1";
            let row = sqlx::query(sql).bind(id.0.as_bytes().to_vec());
            let Some(row) = row.fetch_optional(&mut *connection).await.map_err(failure)? else { return Ok(None) };
            column::<i64>(&row, 0)? + i64::from(uuid(&row, 1)? != id.0)
        }
    };
    let from = match query.filter.since {
        None => i64::MIN,
        Some(since) => {
            let sql = "SELECT rowid FROM events WHERE id >= $1 ORDER BY id LIMIT 1";
            let row = sqlx::query(sql).bind(first_id_at(since).to_vec());
            let Some(row) = row.fetch_optional(connection).await.map_err(failure)? else { return Ok(None) };
            column(&row, 0)?
        }
    };
    Ok(Some(Unread { before, from }))
}

/// The events that match, newest first, one more than the page holds if there is one. If the page has read as much as it
/// may, also the last row that it read.
async fn candidates(
    connection: &mut SqliteConnection,
    query: &EventQuery,
    mut unread: Unread,
) -> Result<(Vec<Candidate>, Option<EventId>), StoreError> {
    let (mut found, mut rows, mut bytes) = (Vec::new(), 0, 0);
    loop {
        let Some(chunk) = next_chunk(connection, &unread).await? else { return Ok((found, None)) };
        let wanted = query.limit + 1 - found.len();
        let read = Unread { before: unread.before, from: chunk.oldest };
        let matches = matches(query, &read, wanted).build().fetch_all(&mut *connection).await.map_err(failure)?;
        found.extend(matches.iter().map(candidate).collect::<Result<Vec<_>, _>>()?);
        if found.len() > query.limit || chunk.rows < CHUNK {
            return Ok((found, None));
        }
        (unread.before, rows, bytes) = (chunk.oldest, rows + chunk.rows, bytes + chunk.bytes);
        if rows >= SCANNED_MAX || bytes >= SCANNED_BYTES_MAX {
            let sql = "SELECT id FROM events WHERE rowid = $1";
            let last = sqlx::query(sql).bind(chunk.oldest).fetch_optional(connection).await.map_err(failure)?;
            return Ok((found, last.map(|row| uuid(&row, 0).map(EventId)).transpose()?));
        }
    }
}

async fn next_chunk(connection: &mut SqliteConnection, unread: &Unread) -> Result<Option<Chunk>, StoreError> {
    let sql = "SELECT COUNT(*), MIN(number), SUM(bytes) FROM (SELECT rowid AS number, \
               COALESCE(OCTET_LENGTH(payload), 0) AS bytes FROM events WHERE rowid < $1 AND rowid >= $2 \
               ORDER BY rowid DESC LIMIT $3)";
    let row = sqlx::query(sql).bind(unread.before).bind(unread.from).bind(row_count(CHUNK));
    let row = row.fetch_one(connection).await.map_err(failure)?;
    let Some(oldest) = column::<Option<i64>>(&row, 1)? else { return Ok(None) };
    let size = |index| column::<i64>(&row, index).map(|size| usize::try_from(size).unwrap_or(usize::MAX));
    Ok(Some(Chunk { rows: size(0)?, oldest, bytes: size(2)? }))
}

/// Selects candidates. The verdicts are compact JSON, in whose strings every quote is escaped, so that a key with its value
/// is found as text.
fn matches(query: &EventQuery, read: &Unread, limit: usize) -> QueryBuilder<Driver> {
    let mut sql = QueryBuilder::<Driver>::new(
        "SELECT id, COALESCE(OCTET_LENGTH(payload) + OCTET_LENGTH(verdicts), 0) FROM events WHERE rowid < ",
    );
    sql.push_bind(read.before).push(" AND rowid >= ").push_bind(read.from);
    let filter = &query.filter;
    // The type is the cheapest to read: it is before the payload.
    match &filter.types {
        Some(TypePattern::Exact(kind)) => drop(sql.push(" AND type = ").push_bind(kind.to_string())),
        Some(pattern) => drop(sql.push(" AND type GLOB ").push_bind(pattern.to_string())),
        None => {}
    }
    if let Some(user) = &query.user_id {
        sql.push(" AND owner = ").push_bind(user.clone());
    }
    if let Some(kind) = filter.verdict {
        sql.push(" AND INSTR(verdicts, ").push_bind(format!("\"verdict\":\"{}\"", kind.as_str())).push(") > 0");
    }
    if let Some(id) = &filter.conversation_id {
        let key = format!("\"conversation_id\":{}", serde_json::Value::from(id.as_str()));
        sql.push(" AND (conversation_id = ").push_bind(id.clone());
        sql.push(" OR conversation_id IS NULL AND INSTR(verdicts, ").push_bind(key).push(") > 0)");
    }
    sql.push(" ORDER BY rowid DESC LIMIT ").push_bind(row_count(limit));
    sql
}

fn candidate(row: &SqliteRow) -> Result<Candidate, StoreError> {
    let bytes = usize::try_from(column::<i64>(row, 1)?).unwrap_or(usize::MAX);
    Ok(Candidate { id: EventId(uuid(row, 0)?), bytes })
}

/// How many of the candidates are in the page; at least one.
fn fitting(candidates: &[Candidate], limit: usize) -> usize {
    let mut bytes = 0_usize;
    let fits = candidates.iter().take(limit).take_while(|one| {
        bytes = bytes.saturating_add(one.bytes);
        bytes <= PAGE_BYTES_MAX
    });
    fits.count().max(1)
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use super::super::migrate::MIGRATIONS;
    use super::*;

    #[test]
    fn events_are_found_by_a_senders_id_through_indexes_only() {
        let file = rusqlite::Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|(_, sql)| file.execute_batch(sql).unwrap());
        let mut plan = file.prepare(&format!("EXPLAIN QUERY PLAN {NAMED}")).unwrap();
        let lines = plan.query_map(["hash", "20", "build-17"], |row| row.get::<_, String>(3)).unwrap();
        let lines: Vec<String> = lines.map(Result::unwrap).collect();
        for index in ["events_by_client_id_hash (client_id_hash=?)", "brought_ids_by_event (event_id=?)"] {
            assert!(lines.iter().any(|line| line.contains(index)), "{index}: {lines:#?}");
        }
        assert!(!lines.iter().any(|line| line.starts_with("SCAN ") && !line.contains("named")), "{lines:#?}");
    }
}

//! Finds damaged rows that a hub would skip in its timers and deliveries.

use bellwire_core::Mailbox;
use sqlx::sqlite::{SqliteConnection, SqliteRow};

use super::mailbox_log::MailboxLog;
use super::people_read::{deliveries_that_wait, reminders_that_wait};
use super::read::{column, parse_json, waiting};
use super::{damaged, failure};
use crate::damage::Found;
use crate::error::{ErrorKind, StoreError};
use crate::rows::{ConversationKey, MailboxKey};

/// How many mailboxes are loaded per page.
const PAGE: usize = 500;

/// The damaged rows of people: table, key and error of each.
pub(super) async fn rows(connection: &mut SqliteConnection) -> Result<Vec<String>, StoreError> {
    let mut lines = said(reminders_that_wait(connection).await?);
    lines.append(&mut said(deliveries_that_wait(connection).await?));
    let sql = "SELECT user_id, settings_json, disabled_subscribers_json FROM user_settings";
    let rows = sqlx::query(sql).fetch_all(connection).await.map_err(failure)?;
    for row in &rows {
        let user = column::<String>(row, 0).unwrap_or_else(|_| "a damaged user_id".to_owned());
        lines.extend(settings(row).err().map(|error| format!("user_settings {user}: {error}")));
    }
    Ok(lines)
}

fn settings(row: &SqliteRow) -> Result<(), StoreError> {
    parse_json::<bellwire_core::person::PersonSettings>(column(row, 1)?, "user_settings.settings_json")?;
    parse_json::<Vec<String>>(column(row, 2)?, "user_settings.disabled_subscribers_json").map(drop)
}

fn said<T>(found: Found<T>) -> Vec<String> {
    found.damaged.into_iter().map(|(row, error)| format!("{row}: {error}")).collect()
}

/// The same for mailboxes, each from the log or else from its row.
pub(super) async fn mailboxes(connection: &mut SqliteConnection, log: &MailboxLog) -> Result<Vec<String>, StoreError> {
    let mut lines = Vec::new();
    for (key, (state, pending)) in log.newest_of_all() {
        lines.extend(unloadable(connection, key, state, pending).await?);
    }
    let mut after = i64::MIN;
    loop {
        let sql = "SELECT rowid, owner, conversation_id, agent, state, pending FROM mailboxes WHERE rowid > $1 \
                   ORDER BY rowid LIMIT $2";
        let page = sqlx::query(sql).bind(after).bind(PAGE as i64);
        let page = page.fetch_all(&mut *connection).await.map_err(failure)?;
        for row in &page {
            after = column(row, 0)?;
            match placed(row) {
                Ok((key, ..)) if log.has(&key) => {}
                Ok((key, state, pending)) => lines.extend(unloadable(connection, &key, state, pending).await?),
                Err(error) => lines.push(format!("mailboxes, rowid {after}: {error}")),
            }
        }
        if page.len() < PAGE {
            return Ok(lines);
        }
    }
}

fn placed(row: &SqliteRow) -> Result<(MailboxKey, &[u8], &[u8]), StoreError> {
    let conversation = ConversationKey::new(column(row, 1)?, column(row, 2)?);
    let agent: &str = column(row, 3)?;
    Ok((MailboxKey::new(&conversation, agent), column(row, 4)?, column(row, 5)?))
}

/// Why a mailbox cannot be loaded, if it cannot.
async fn unloadable(
    connection: &mut SqliteConnection,
    key: &MailboxKey,
    state: &[u8],
    pending: &[u8],
) -> Result<Option<String>, StoreError> {
    let loaded = match waiting(connection, pending).await {
        Ok(pending) => Mailbox::load(state, pending).map(drop).map_err(|error| damaged(&error.to_string())),
        Err(error) => Err(error),
    };
    let (owner, conversation, agent) = key.columns();
    match loaded {
        Ok(()) => Ok(None),
        Err(error) if error.kind == ErrorKind::Damaged => {
            Ok(Some(format!("mailboxes ({owner}, {conversation}, {agent}): {error}")))
        }
        Err(error) => Err(error),
    }
}

//! Checks the database file through a second connection: no corruption, and the rows agree with each other.

use std::collections::{HashMap, HashSet};
use std::path::Path;

use bellwire_core::Mailbox;
use bellwire_store::{SavedMailbox, SqliteStore};
use serde_json::Value;
use sqlx::sqlite::{SqliteConnectOptions, SqliteConnection, SqliteRow};
use sqlx::{ConnectOptions as _, Connection as _, Row as _};

/// A copy of the database that a killed hub left.
pub(crate) struct Database {
    connection: SqliteConnection,
    _copy: tempfile::TempDir,
}

/// The columns that refer to other rows. Ids have the API's text form.
struct Rows {
    events: Vec<(String, Value)>,
    notifications: HashMap<String, NotificationRow>,
    injections: HashMap<CallKey, InjectionRow>,
    /// The events that mailboxes refer to.
    held: HashSet<String>,
    /// The bytes of every saved mailbox.
    mailboxes: Vec<Vec<u8>>,
}

/// Conversation, agent, call id.
type CallKey = (String, String, String);

struct NotificationRow {
    state: String,
    call: Option<CallKey>,
    has_reason: bool,
    has_waiting: bool,
}

struct InjectionRow {
    unseen: bool,
    notifications: Vec<String>,
}

impl Database {
    /// Copies the file and opens the copy: opening the original would recover it before the hub does.
    pub(crate) async fn copy_of(folder: &Path) -> Self {
        let copy = tempfile::tempdir().expect("a folder");
        for file in ["bellwire.db", "bellwire.db-wal"] {
            let from = folder.join(file);
            if from.exists() {
                std::fs::copy(&from, copy.path().join(file)).expect("the file can be copied");
            }
        }
        let path = copy.path().join("bellwire.db");
        let mailboxes = SqliteStore::mailboxes(&path).await.expect("the mailboxes can be read");
        let mut connection = SqliteConnectOptions::new().filename(path).connect().await.expect("the database opens");
        copy_mailboxes(&mut connection, &mailboxes).await.expect("a table of the copy's own");
        Self { connection, _copy: copy }
    }

    /// Every inconsistency in the file.
    pub(crate) async fn violations(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        let verdict = self.rows("PRAGMA integrity_check").await;
        found.extend(verdict.iter().map(|row| row.get::<String, _>(0)).filter(|verdict| verdict != "ok"));
        found.extend(self.orphans().await);
        let rows = self.read().await;
        for (event, verdicts) in &rows.events {
            found.extend(verdicts.as_array().into_iter().flatten().filter_map(|one| rows.wrong_verdict(event, one)));
        }
        found.extend(rows.notifications.iter().filter_map(|(id, one)| rows.wrong_notification(id, one)));
        found.extend(rows.injections.iter().flat_map(|(call, one)| rows.wrong_injection(call, one)));
        let events: HashSet<&String> = rows.events.iter().map(|(id, _)| id).collect();
        let gone = rows.held.iter().filter(|id| !events.contains(id));
        found.extend(gone.map(|id| format!("a mailbox refers to event {id}, which is gone")));
        found
    }

    /// The markers of all events.
    pub(crate) async fn markers(&mut self) -> HashSet<String> {
        let rows = self.rows("SELECT payload FROM events").await;
        let payload = |row: &SqliteRow| serde_json::from_str::<Value>(row.get(0)).expect("a payload is JSON");
        let marker = |payload: Value| {
            let marker = payload["marker"].as_str().or_else(|| payload["text"].as_str());
            marker.map(str::to_owned)
        };
        rows.iter().map(payload).filter_map(marker).collect()
    }

    pub(crate) async fn close(self) {
        self.connection.close().await.expect("the database closes");
    }

    /// Rows that refer to missing rows.
    async fn orphans(&mut self) -> Vec<String> {
        let questions = [
            (
                "a brought id without its event",
                "SELECT b.id FROM brought_ids b LEFT JOIN events e ON e.id = b.event_id WHERE e.id IS NULL",
            ),
            (
                "a mailbox without its conversation",
                "SELECT m.conversation_id FROM newest_mailboxes m LEFT JOIN conversations c ON c.id = m.conversation_id AND c.user_id = m.owner WHERE c.id IS NULL AND m.conversation_id <> ''",
            ),
            (
                "an event without its conversation",
                "SELECT e.conversation_id FROM events e LEFT JOIN conversations c ON c.id = e.conversation_id AND c.user_id = e.owner WHERE e.conversation_id IS NOT NULL AND c.id IS NULL",
            ),
            (
                "a notification without its mailbox",
                "SELECT n.conversation_id FROM notifications n LEFT JOIN newest_mailboxes m ON m.owner = n.owner AND m.conversation_id = n.conversation_id AND m.agent = n.agent WHERE m.agent IS NULL",
            ),
            (
                "an injection without its mailbox",
                "SELECT i.call_id FROM injections i LEFT JOIN newest_mailboxes m ON m.owner = i.owner AND m.conversation_id = i.conversation_id AND m.agent = i.agent WHERE m.agent IS NULL",
            ),
            (
                "two injections in one place of the order",
                "SELECT conversation_id FROM injections GROUP BY conversation_id, sequence HAVING COUNT(*) > 1",
            ),
        ];
        let mut found = Vec::new();
        for (what, question) in questions {
            let rows = self.rows(question).await;
            found.extend(rows.iter().map(|row| format!("{what}: {}", row.get::<String, _>(0))));
        }
        found
    }

    async fn read(&mut self) -> Rows {
        let events = self.rows("SELECT id, verdicts FROM events").await;
        let event = |row: &SqliteRow| (id(row), serde_json::from_str(row.get(1)).expect("verdicts are JSON"));
        let notifications = "SELECT id, state, conversation_id, agent, call_id, reason IS NOT NULL, \
                             LENGTH(waiting) > 0 FROM notifications";
        let notifications = self.rows(notifications).await;
        let injections = "SELECT conversation_id, agent, call_id, unseen <> 0, answer FROM injections";
        let injections = self.rows(injections).await;
        let mailboxes = self.rows("SELECT state FROM newest_mailboxes").await;
        let held = |row: &SqliteRow| {
            let mailbox = Mailbox::load(row.get(0), Vec::new()).expect("a saved mailbox loads");
            mailbox.references().map(|id| id.to_string()).collect::<Vec<_>>()
        };
        Rows {
            events: events.iter().map(event).collect(),
            notifications: notifications.iter().map(|row| (id(row), NotificationRow::read(row))).collect(),
            injections: injections.iter().map(|row| (call(row, 0), InjectionRow::read(row))).collect(),
            held: mailboxes.iter().flat_map(held).collect(),
            mailboxes: mailboxes.iter().map(|row| row.get(0)).collect(),
        }
    }

    async fn rows(&mut self, question: &'static str) -> Vec<SqliteRow> {
        let rows = sqlx::query(question).fetch_all(&mut self.connection).await;
        rows.unwrap_or_else(|error| panic!("{question}: {error}"))
    }
}

/// Copies the latest state of every mailbox into a temporary table for the queries.
async fn copy_mailboxes(connection: &mut SqliteConnection, mailboxes: &[SavedMailbox]) -> sqlx::Result<()> {
    let table = "CREATE TEMP TABLE newest_mailboxes (owner TEXT, conversation_id TEXT, agent TEXT, state BLOB, \
                 PRIMARY KEY (owner, conversation_id, agent))";
    sqlx::query(table).execute(&mut *connection).await?;
    for mailbox in mailboxes {
        sqlx::query("INSERT INTO newest_mailboxes VALUES ($1, $2, $3, $4)")
            .bind(&mailbox.owner)
            .bind(&mailbox.conversation_id)
            .bind(&mailbox.agent)
            .bind(&mailbox.state)
            .execute(&mut *connection)
            .await?;
    }
    Ok(())
}

impl Rows {
    fn wrong_verdict(&self, event: &str, verdict: &Value) -> Option<String> {
        let id = verdict["notification_id"].as_str()?;
        let is_there = self.notifications.contains_key(id) || (verdict["verdict"] == "held" && self.is_held(id));
        (!is_there).then(|| format!("event {event} names notification {id}, which is neither a row nor held"))
    }

    /// Whether an open batch has this id. It has no row yet; its id is in the mailbox's bytes.
    fn is_held(&self, id: &str) -> bool {
        let digits = id.replace('-', "");
        let name = u128::from_str_radix(&digits, 16).expect("an id is a number").to_be_bytes();
        self.mailboxes.iter().any(|mailbox| mailbox.windows(name.len()).any(|window| window == name))
    }

    fn wrong_notification(&self, id: &str, one: &NotificationRow) -> Option<String> {
        let injection = one.call.as_ref().and_then(|call| self.injections.get(call));
        let is_told = injection
            .is_some_and(|injection| !injection.unseen && injection.notifications.iter().any(|other| other == id));
        let is_right = match one.state.as_str() {
            "pending" => one.has_waiting && one.call.is_none(),
            "injected" => is_told,
            "folded" => is_told || one.call.is_none(),
            _ => one.has_reason && one.call.is_none(),
        };
        (!is_right).then(|| format!("notification {id} is {} in call {:?}, told: {is_told}", one.state, one.call))
    }

    /// Every notification in an answer has a row that names this call.
    fn wrong_injection(&self, call: &CallKey, one: &InjectionRow) -> Vec<String> {
        let is_right =
            |id: &&String| one.unseen || self.notifications.get(*id).is_some_and(|row| row.call.as_ref() == Some(call));
        let wrong = one.notifications.iter().filter(|id| !is_right(id));
        wrong.map(|id| format!("the answer of {call:?} told {id}, which does not know of it")).collect()
    }
}

impl NotificationRow {
    fn read(row: &SqliteRow) -> Self {
        let call_id: Option<String> = row.get(4);
        Self {
            state: row.get(1),
            call: call_id.map(|call_id| (row.get(2), row.get(3), call_id)),
            has_reason: row.get(5),
            has_waiting: row.get(6),
        }
    }
}

impl InjectionRow {
    fn read(row: &SqliteRow) -> Self {
        let answer: Value = serde_json::from_str(row.get(4)).expect("an answer is JSON");
        let ids = answer["notifications"].as_array().into_iter().flatten();
        Self { unseen: row.get(3), notifications: ids.filter_map(Value::as_str).map(str::to_owned).collect() }
    }
}

fn call(row: &SqliteRow, at: usize) -> CallKey {
    (row.get(at), row.get(at + 1), row.get(at + 2))
}

/// The UUID of the first column as text.
fn id(row: &SqliteRow) -> String {
    let bytes: Vec<u8> = row.get(0);
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    [&hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..]].join("-")
}

//! Several statements as one text, so that the driver's thread is asked once and not once per statement.
//!
//! A statement is prepared once per text and then kept. So that there are few texts, the rows of a statement are filled
//! up to a power of two with rows of NULL, which the statement leaves out.

use sqlx::sqlite::{Sqlite as Driver, SqliteArguments, SqliteConnection};
use sqlx::{Arguments as _, AssertSqlSafe, Encode, Type};

use super::mailbox_log::Leaving;

/// The most rows one statement inserts. More would be hardly faster, and every size is kept prepared.
pub(super) const ROWS_MAX: usize = 64;

/// A table to insert into; its first column is never NULL.
pub(super) struct Table {
    pub(super) name: &'static str,
    pub(super) columns: &'static [&'static str],
    /// What to do where the row is there already.
    pub(super) conflict: &'static str,
}

/// Statements and the values they are run with.
#[derive(Default)]
pub(super) struct Script {
    text: String,
    values: SqliteArguments,
}

impl Script {
    pub(super) fn beginning() -> Self {
        Self { text: "BEGIN IMMEDIATE;".to_owned(), values: SqliteArguments::default() }
    }

    pub(super) fn commit(&mut self) {
        self.text.push_str("COMMIT;");
    }

    /// Inserts up to [`ROWS_MAX`] rows; `bind` gives the values of one, column by column.
    pub(super) fn insert<T>(&mut self, table: &Table, rows: &[T], mut bind: impl FnMut(&mut Values<'_>, &T)) {
        if rows.is_empty() {
            return;
        }
        let size = rows.len().next_power_of_two();
        self.statement(table, size);
        let mut values = Values(&mut self.values);
        rows.iter().for_each(|row| bind(&mut values, row));
        for _ in rows.len() * table.columns.len()..size * table.columns.len() {
            values.bind(None::<i64>);
        }
    }

    /// Moves mailboxes to their place, and takes the oldest rows off their log.
    pub(super) fn settle(&mut self, leaving: &Leaving) {
        for sequences in leaving.settling.chunks(ROWS_MAX) {
            let size = sequences.len().next_power_of_two();
            self.text.push_str(&format!(
                "INSERT INTO mailboxes (owner, conversation_id, agent, state, pending, due_at) \
                 SELECT owner, conversation_id, agent, state, pending, due_at FROM mailbox_log WHERE sequence IN ({}) \
                 ON CONFLICT (owner, conversation_id, agent) DO UPDATE SET state = excluded.state, \
                 pending = excluded.pending, due_at = excluded.due_at;",
                vec!["?"; size].join(",")
            ));
            let mut values = Values(&mut self.values);
            for at in 0..size {
                values.bind(sequences.get(at).copied());
            }
        }
        self.text.push_str("DELETE FROM mailbox_log WHERE sequence <= ?;");
        Values(&mut self.values).bind(leaving.last);
    }

    /// Runs everything; stops where something fails.
    pub(super) async fn run(self, connection: &mut SqliteConnection) -> sqlx::Result<()> {
        if self.text.is_empty() {
            return Ok(());
        }
        sqlx::query_with(AssertSqlSafe(self.text), self.values).execute(connection).await.map(drop)
    }

    /// A failure rolls the whole commit back, so OR FAIL saves the journal that could undo this statement alone.
    fn statement(&mut self, table: &Table, size: usize) {
        let Table { name, columns, conflict } = table;
        let row = format!("({})", vec!["?"; columns.len()].join(","));
        let text = &mut self.text;
        text.push_str(&format!("INSERT OR FAIL INTO {name} ({}) SELECT * FROM (VALUES ", columns.join(",")));
        for at in 0..size {
            text.push_str(if at == 0 { "" } else { "," });
            text.push_str(&row);
        }
        text.push_str(&format!(") WHERE column1 IS NOT NULL {conflict};"));
    }
}

/// Takes the values of rows, in the order of their columns.
pub(super) struct Values<'a>(&'a mut SqliteArguments);

impl Values<'_> {
    pub(super) fn bind<'v, T: Encode<'v, Driver> + Type<Driver>>(&mut self, value: T) -> &mut Self {
        self.0.add(value).expect("texts, numbers and bytes can always be bound");
        self
    }
}

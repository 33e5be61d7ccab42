//! Lists of conversations, each read in order through an index.

use bellwire_core::Time;
use sqlx::QueryBuilder;
use sqlx::sqlite::{Sqlite as Driver, SqliteConnection};

use super::read::{CONVERSATION_COLUMNS, conversation_row};
use super::{failure, row_count};
use crate::conversation_list::{ConversationQuery, ListedConversation};
use crate::error::StoreError;

/// The last use of a conversation, as the indexes have it.
const LAST_USE: &str = "MAX(created_at, seen_at)";

/// A page of conversations, in order.
pub(super) async fn conversation_page(
    connection: &mut SqliteConnection,
    query: &ConversationQuery,
) -> Result<Vec<ListedConversation>, StoreError> {
    let rows = conversations(query).build().fetch_all(connection).await.map_err(failure)?;
    rows.iter().map(|row| conversation_row(row).map(ListedConversation::from)).collect()
}

fn conversations(query: &ConversationQuery) -> QueryBuilder<Driver> {
    let mut sql = QueryBuilder::<Driver>::new(format!("SELECT {CONVERSATION_COLUMNS} FROM conversations WHERE "));
    let after = query.after.as_ref();
    match (&query.conversation_id, &query.user_id) {
        (Some(id), user) => {
            sql.push("id = ").push_bind(id.clone());
            if let Some(user) = user {
                sql.push(" AND user_id = ").push_bind(user.clone());
            }
            if let Some(after) = after {
                sql.push(" AND user_id > ").push_bind(after.user_id.clone());
            }
            sql.push(" ORDER BY user_id");
        }
        (None, Some(user)) => {
            sql.push("user_id = ").push_bind(user.clone());
            if let Some(after) = after {
                sql.push(format!(" AND ({LAST_USE}, id) < (")).push_bind(after.last_used_at.as_millis());
                sql.push(", ").push_bind(after.id.clone()).push(")");
            }
            push_since(&mut sql, query.since);
            sql.push(format!(" ORDER BY {LAST_USE} DESC, id DESC"));
        }
        (None, None) => {
            sql.push("1 = 1");
            if let Some(after) = after {
                sql.push(format!(" AND ({LAST_USE}, id, user_id) < (")).push_bind(after.last_used_at.as_millis());
                sql.push(", ").push_bind(after.id.clone());
                sql.push(", ").push_bind(after.user_id.clone()).push(")");
            }
            push_since(&mut sql, query.since);
            sql.push(format!(" ORDER BY {LAST_USE} DESC, id DESC, user_id DESC"));
        }
    }
    sql.push(" LIMIT ").push_bind(row_count(query.limit));
    sql
}

fn push_since(sql: &mut QueryBuilder<Driver>, since: Option<Time>) {
    if let Some(since) = since {
        sql.push(format!(" AND {LAST_USE} >= ")).push_bind(since.as_millis());
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test says what it expects by unwrapping it")]
mod tests {
    use super::super::migrate::MIGRATIONS;
    use super::*;
    use crate::conversation_list::ConversationPosition;

    #[test]
    fn every_list_is_read_in_order_through_an_index() {
        let file = rusqlite::Connection::open_in_memory().unwrap();
        MIGRATIONS.iter().for_each(|(_, sql)| file.execute_batch(sql).unwrap());
        let after = ConversationPosition { last_used_at: Time::from_millis(1), user_id: "a".into(), id: "b".into() };
        for (after, since) in [(None, None), (Some(after), Some(Time::from_millis(1)))] {
            let lists = [
                (Some("ada"), None, "conversations_by_user_and_use"),
                (None, None, "conversations_by_last_use"),
                (None, Some("chat"), "PRIMARY KEY"),
                (Some("ada"), Some("chat"), "PRIMARY KEY"),
            ];
            for (user_id, id, index) in lists {
                let (user_id, conversation_id) = (user_id.map(Into::into), id.map(Into::into));
                let query = ConversationQuery { user_id, conversation_id, since, after: after.clone(), limit: 20 };
                let sql = conversations(&query).sql().as_str().to_owned();
                let mut plan = file.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
                let values = rusqlite::params_from_iter(vec![1; plan.parameter_count()]);
                let lines = plan.query_map(values, |row| row.get(3)).unwrap();
                let lines: Vec<String> = lines.map(Result::unwrap).collect();
                // A sort would be a line of its own.
                assert!(lines.iter().all(|line| line.contains(index)), "{sql}\n{lines:#?}");
            }
        }
    }
}

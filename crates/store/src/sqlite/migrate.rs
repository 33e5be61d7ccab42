use bellwire_core::Time;
use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnection;

use super::failure;
use super::read::column;
use crate::error::{ErrorKind, StoreError};

/// All migrations in order. A released migration never changes.
pub(super) const MIGRATIONS: &[(&str, &str)] = &[
    ("0001_initial", include_str!("../../migrations/sqlite/0001_initial.sql")),
    ("0002_readiness", include_str!("../../migrations/sqlite/0002_readiness.sql")),
    ("0003_people", include_str!("../../migrations/sqlite/0003_people.sql")),
    ("0004_owners", include_str!("../../migrations/sqlite/0004_owners.sql")),
    ("0005_mailbox_changes", include_str!("../../migrations/sqlite/0005_mailbox_changes.sql")),
    ("0006_whom_answers_are_about", include_str!("../../migrations/sqlite/0006_whom_answers_are_about.sql")),
    ("0007_new_boundaries", include_str!("../../migrations/sqlite/0007_new_boundaries.sql")),
    ("0008_sources", include_str!("../../migrations/sqlite/0008_sources.sql")),
    ("0009_erasing", include_str!("../../migrations/sqlite/0009_erasing.sql")),
    ("0010_retention", include_str!("../../migrations/sqlite/0010_retention.sql")),
    ("0011_last_now", include_str!("../../migrations/sqlite/0011_last_now.sql")),
    ("0012_sub_agents_at_work", include_str!("../../migrations/sqlite/0012_sub_agents_at_work.sql")),
    ("0013_deliveries_by_age", include_str!("../../migrations/sqlite/0013_deliveries_by_age.sql")),
    ("0015_deliveries_held", include_str!("../../migrations/sqlite/0015_deliveries_held.sql")),
    ("0020_waiting_deliveries_by_user", include_str!("../../migrations/sqlite/0020_waiting_deliveries_by_user.sql")),
    ("0021_time_of_older_rows", include_str!("../../migrations/sqlite/0021_time_of_older_rows.sql")),
    ("0022_no_index_by_owner", include_str!("../../migrations/sqlite/0022_no_index_by_owner.sql")),
    (
        "0023_conversations_by_user_and_use",
        include_str!("../../migrations/sqlite/0023_conversations_by_user_and_use.sql"),
    ),
    ("0024_erased_users", include_str!("../../migrations/sqlite/0024_erased_users.sql")),
    ("0025_template_errors", include_str!("../../migrations/sqlite/0025_template_errors.sql")),
    ("0026_client_event_ids_by_id", include_str!("../../migrations/sqlite/0026_client_event_ids_by_id.sql")),
    ("0027_tool_result_digests", include_str!("../../migrations/sqlite/0027_tool_result_digests.sql")),
    ("0028_repeats", include_str!("../../migrations/sqlite/0028_repeats.sql")),
    ("0030_channels", include_str!("../../migrations/sqlite/0030_channels.sql")),
    ("0031_direct_messages", include_str!("../../migrations/sqlite/0031_direct_messages.sql")),
    ("0035_notify", include_str!("../../migrations/sqlite/0035_notify.sql")),
    ("0040_chats", include_str!("../../migrations/sqlite/0040_chats.sql")),
    ("0050_inbox_on_pages", include_str!("../../migrations/sqlite/0050_inbox_on_pages.sql")),
    ("0051_sessions", include_str!("../../migrations/sqlite/0051_sessions.sql")),
    ("0060_agents", include_str!("../../migrations/sqlite/0060_agents.sql")),
    ("0061_requests_passed_on", include_str!("../../migrations/sqlite/0061_requests_passed_on.sql")),
    ("0062_chosen_contexts", include_str!("../../migrations/sqlite/0062_chosen_contexts.sql")),
    ("0063_delivery_progress", include_str!("../../migrations/sqlite/0063_delivery_progress.sql")),
    ("0065_deliveries_by_state", include_str!("../../migrations/sqlite/0065_deliveries_by_state.sql")),
];

/// Applies the missing migrations, each in its own transaction. Returns their names.
pub(super) async fn run(connection: &mut SqliteConnection, now: Time) -> Result<Vec<&'static str>, StoreError> {
    sqlx::raw_sql("CREATE TABLE IF NOT EXISTS migrations (name TEXT NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL)")
        .execute(&mut *connection)
        .await
        .map_err(failure)?;
    let missing = pending(connection).await?;
    let mut applied = Vec::new();
    for (name, sql) in MIGRATIONS.iter().filter(|(name, _)| missing.contains(name)) {
        let mut transaction = connection.begin_with("BEGIN IMMEDIATE").await.map_err(failure)?;
        sqlx::raw_sql(*sql).execute(&mut *transaction).await.map_err(failure)?;
        sqlx::query("INSERT INTO migrations (name, applied_at) VALUES ($1, $2)")
            .bind(*name)
            .bind(now.as_millis())
            .execute(&mut *transaction)
            .await
            .map_err(failure)?;
        transaction.commit().await.map_err(failure)?;
        applied.push(*name);
    }
    Ok(applied)
}

/// The missing migrations, in order. A database of a newer version is refused.
pub(super) async fn pending(connection: &mut SqliteConnection) -> Result<Vec<&'static str>, StoreError> {
    let known = sqlx::query("SELECT name FROM migrations").fetch_all(&mut *connection).await.map_err(failure)?;
    let known: Vec<String> = known.iter().map(|row| column(row, 0)).collect::<Result<_, _>>()?;
    if let Some(newer) = known.iter().find(|name| !MIGRATIONS.iter().any(|(ours, _)| ours == name)) {
        let message = format!("the database was made by a newer Bellwire (step {newer}); use that version");
        return Err(StoreError::new(ErrorKind::Broken, message));
    }
    let missing = MIGRATIONS.iter().map(|(name, _)| *name).filter(|name| !known.iter().any(|known| known == name));
    Ok(missing.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A hub that was used before conversations had owners in their keys.
    const BEFORE: &str = "
        INSERT INTO conversations VALUES ('chat', 'ada', 'Work', 'k7Qm2xTb', 1, 2);
        INSERT INTO mailboxes VALUES ('chat', 'main', x'01', 5), ('', 'ada', x'02', 6), ('gone', 'main', x'03', 7);
        INSERT INTO notifications (id, conversation_id, agent, subscriber_id, priority, inject_at, state, created_at, waiting)
            VALUES (x'01', 'chat', 'main', 's', 'high', 'after_tool', 'pending', 1, x''),
                   (x'02', '', 'ada', 's', 'high', 'after_tool', 'pending', 1, x'');
        INSERT INTO injections (conversation_id, agent, call_id, point, at, sequence, answer, taken)
            VALUES ('chat', 'main', 'c1', 'after_tool', 1, 1, '{}', x'');";

    /// A database as a hub left it that knew only so many steps.
    async fn as_of(steps: usize, rows: &'static str) -> Result<SqliteConnection, Box<dyn std::error::Error>> {
        let mut connection = SqliteConnection::connect("sqlite::memory:").await?;
        sqlx::raw_sql("CREATE TABLE migrations (name TEXT NOT NULL PRIMARY KEY, applied_at BIGINT NOT NULL)")
            .execute(&mut connection)
            .await?;
        for (name, sql) in &MIGRATIONS[..steps] {
            sqlx::raw_sql(*sql).execute(&mut connection).await?;
            sqlx::query("INSERT INTO migrations VALUES ($1, 0)").bind(*name).execute(&mut connection).await?;
        }
        sqlx::raw_sql(rows).execute(&mut connection).await?;
        Ok(connection)
    }

    /// The steps that follow the first so many.
    fn after(steps: usize) -> Vec<&'static str> {
        MIGRATIONS[steps..].iter().map(|(name, _)| *name).collect()
    }

    #[tokio::test]
    async fn the_newest_state_of_each_mailbox_is_in_its_place_before_the_log_holds_differences()
    -> Result<(), Box<dyn std::error::Error>> {
        let mut connection = as_of(
            4,
            "INSERT INTO mailboxes VALUES ('ada', 'a', 'main', x'01', x'', 1), ('ada', 'b', 'main', x'02', x'', 2);
             INSERT INTO mailbox_log VALUES (1, 'ada', 'b', 'main', x'03', x'aa', 3), (2, 'ada', 'c', 'main', x'04', x'', 4),
                (3, 'ada', 'b', 'main', x'05', x'bb', 5);",
        )
        .await?;
        assert_eq!(run(&mut connection, Time::ZERO).await?, after(4));
        let sql = "SELECT conversation_id, HEX(state), HEX(pending), due_at FROM mailboxes ORDER BY conversation_id";
        let rows: Vec<(String, String, String, i64)> = sqlx::query_as(sql).fetch_all(&mut connection).await?;
        let expected = [("a", "01", "", 1), ("b", "05", "BB", 5), ("c", "04", "", 4)];
        assert_eq!(rows, expected.map(|(id, state, pending, due)| (id.into(), state.into(), pending.into(), due)));
        Ok(())
    }

    #[tokio::test]
    async fn the_migration_to_owner_keys_keeps_all_rows() -> Result<(), Box<dyn std::error::Error>> {
        let mut connection = as_of(3, BEFORE).await?;
        assert_eq!(run(&mut connection, Time::ZERO).await?, after(3));
        let rows = sqlx::query_as::<_, (String, String, String, String)>(
            "SELECT 'conversation', user_id, id, '' FROM conversations WHERE registered = 1
             UNION ALL SELECT 'mailbox', owner, conversation_id, agent FROM mailboxes
             UNION ALL SELECT 'notification', owner, conversation_id, agent FROM notifications
             UNION ALL SELECT 'injection', owner, conversation_id, agent FROM injections ORDER BY 1, 3",
        );
        let rows = rows.fetch_all(&mut connection).await?;
        let rows: Vec<[String; 4]> = rows.into_iter().map(<[String; 4]>::from).collect();
        let expected = [
            ["conversation", "ada", "chat", ""],
            ["injection", "ada", "chat", "main"],
            ["mailbox", "ada", "", ""],
            ["mailbox", "ada", "chat", "main"],
            ["notification", "ada", "", ""],
            ["notification", "ada", "chat", "main"],
        ];
        assert_eq!(rows, expected.map(|row| row.map(str::to_owned)));
        Ok(())
    }

    #[tokio::test]
    async fn damaged_rows_do_not_stop_the_migration_of_remembered_answers() -> Result<(), Box<dyn std::error::Error>> {
        let mut connection = as_of(
            8,
            "INSERT INTO idempotency_keys (token_id, route, name, content, answer, at, people) VALUES
                ('t', 'r', 'a', x'', '', 1, '[\"ada\"'), ('t', 'r', 'b', x'', '', 1, '[\"ada\", null]'),
                ('t', 'r', 'c', x'', '', 1, x'ff')",
        )
        .await?;
        assert_eq!(run(&mut connection, Time::ZERO).await?, after(8));
        let rows = sqlx::query_as("SELECT user_id, name FROM idempotency_subjects").fetch_all(&mut connection);
        let rows: Vec<(String, String)> = rows.await?;
        assert_eq!(rows, [("ada".to_owned(), "b".to_owned())]);
        Ok(())
    }

    #[tokio::test]
    async fn whose_target_an_address_is_is_known_of_settings_in_every_stored_form()
    -> Result<(), Box<dyn std::error::Error>> {
        let steps = MIGRATIONS.iter().position(|(name, _)| *name == "0035_notify").unwrap_or_default();
        let mut connection = as_of(
            steps,
            r#"INSERT INTO user_settings (user_id, settings_json, updated_at) VALUES
                ('ada', '{"email":{"enabled":true,"address":" Ada@Example.org","confirmed":true},
                          "telegram":{"enabled":true,"chat_id":77,"paired":true}}', 1),
                ('bob', '{"channels":{"email":{"enabled":true,"target":"bob@example.org","verified":true},
                          "telegram":{"enabled":false,"target":"-78","verified":true},
                          "owl":{"enabled":false,"target":null,"verified":false}}}', 1),
                ('eve', '{"channels":{"email":7},"email":{"address":null},"telegram":[]}', 1),
                ('fay', '{"channels":[', 1), ('gil', '{}', 1), ('hal', '7', 1);"#,
        )
        .await?;
        assert_eq!(run(&mut connection, Time::ZERO).await?, after(steps));
        let rows = sqlx::query_as("SELECT user_id, channel, target FROM person_targets ORDER BY 1, 2");
        let rows: Vec<(String, String, String)> = rows.fetch_all(&mut connection).await?;
        let expected = [
            ("ada", "email", "ada@example.org"),
            ("ada", "telegram", "77"),
            ("bob", "email", "bob@example.org"),
            ("bob", "telegram", "-78"),
        ];
        assert_eq!(rows, expected.map(|(user, channel, target)| (user.into(), channel.into(), target.into())));
        Ok(())
    }

    #[tokio::test]
    async fn a_boundary_that_could_be_guessed_is_replaced_and_that_is_noted() -> Result<(), Box<dyn std::error::Error>>
    {
        let mut connection = as_of(
            6,
            "INSERT INTO conversations VALUES ('a', 'ada', 1, NULL, 'k7Qm2xAb', 1, 1), ('b', 'ada', 1, NULL, 'k7Qm2xAb', 1, 1)",
        )
        .await?;
        run(&mut connection, Time::ZERO).await?;
        let rows = sqlx::query_as("SELECT boundary, boundary_changed FROM conversations").fetch_all(&mut connection);
        let rows: Vec<(String, i64)> = rows.await?;
        let boundaries: std::collections::BTreeSet<&String> = rows.iter().map(|(boundary, _)| boundary).collect();
        assert_eq!((boundaries.len(), boundaries.contains(&"k7Qm2xAb".to_owned())), (2, false));
        assert!(boundaries.iter().all(|boundary| bellwire_core::Boundary::parse(boundary).is_some()));
        assert!(rows.iter().all(|(_, is_changed)| *is_changed == 1));
        Ok(())
    }
}

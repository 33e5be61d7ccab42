use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use bellwire_store::Reminder;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::field::Rfc3339Time;
use super::inbox::cursor;
use super::path::PathUuid;
use super::shape::{List, NoContent, PAGE_MAX, Query, limit};
use super::{ApiError, Hub};
use crate::auth::Identity;

/// Something an agent will remind a person of.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Reminder")]
pub(super) struct ReminderBody {
    /// Its name.
    id: Uuid,
    /// Who is reminded.
    user_id: String,
    /// Who asked for it.
    origin: String,
    /// In which conversation.
    conversation_id: Option<String>,
    /// What it will say.
    message: String,
    /// When it is to be told.
    at: Rfc3339Time,
    /// When it will be told: later where the hour's allowance is used up.
    due_at: Rfc3339Time,
    /// When it was asked for.
    created_at: Rfc3339Time,
}

/// The query of `GET /v1/reminders`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReminderPage {
    /// How many at most; 20 where it is left out.
    #[schemars(range(min = 1, max = PAGE_MAX))]
    limit: Option<usize>,
    /// Where to go on: the `next_cursor` of the page before.
    #[schemars(extend("format" = "uuid"))]
    cursor: Option<String>,
}

/// Lists pending reminders: those of the token's user, or all for an admin.
pub(super) async fn list(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    Query(page): Query<ReminderPage>,
) -> Result<Json<List<ReminderBody>>, ApiError> {
    let after = page.cursor.as_deref().map(cursor).transpose()?;
    let (reminders, next) = hub.store.reminders(identity.caller.user_id.clone(), after, limit(page.limit)?).await?;
    let items = reminders.into_iter().map(ReminderBody::from).collect();
    Ok(Json(List { items, next_cursor: next.map(|next| next.to_string()) }))
}

/// Cancels a pending reminder.
pub(super) async fn cancel(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathUuid(id): PathUuid,
) -> Result<NoContent, ApiError> {
    hub.store.cancel_reminder(identity.caller.user_id.clone(), id).await?;
    Ok(NoContent)
}

impl From<Reminder> for ReminderBody {
    fn from(reminder: Reminder) -> Self {
        Self {
            id: reminder.id,
            user_id: reminder.user_id,
            origin: reminder.origin,
            conversation_id: reminder.conversation_id,
            message: reminder.message,
            at: Rfc3339Time(reminder.at),
            due_at: Rfc3339Time(reminder.due_at),
            created_at: Rfc3339Time(reminder.created_at),
        }
    }
}

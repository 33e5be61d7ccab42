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

/// Which page.
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

/// What is to be told later, to the caller's person; to everyone, for an admin.
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

/// Cancels what was to be told later.
pub(super) async fn cancel(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathUuid(id): PathUuid,
) -> Result<NoContent, ApiError> {
    hub.store.cancel_reminder(identity.caller.user_id.clone(), id).await?;
    Ok(NoContent)
}

impl From<Reminder> for ReminderBody {
    fn from(kept: Reminder) -> Self {
        Self {
            id: kept.id,
            user_id: kept.user_id,
            origin: kept.origin,
            conversation_id: kept.conversation_id,
            message: kept.message,
            at: Rfc3339Time(kept.at),
            due_at: Rfc3339Time(kept.due_at),
            created_at: Rfc3339Time(kept.created_at),
        }
    }
}

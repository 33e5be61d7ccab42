use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use bellwire_core::Time;
use bellwire_core::person::{self, MESSAGE_MAX, Remind};
use bellwire_store::{NewReminder, Reminder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::correlation::Correlation;
use super::field::{BoundedInteger, ID_MAX, MultiLineText, Rfc3339Time, SingleLineText};
use super::idempotency::IdempotentBody;
use super::inbox::cursor;
use super::path::PathUuid;
use super::query::{PageLimit, Query};
use super::shape::{Created, List, NoContent};
use super::{ApiError, Hub};
use crate::auth::Identity;

const MINUTE_MS: u64 = 60_000;

/// A pending reminder for a person.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Reminder")]
pub(super) struct ReminderBody {
    /// Its id.
    id: Uuid,
    /// The recipient.
    user_id: String,
    /// The authenticated name of the sender.
    origin: String,
    /// The conversation it comes from.
    conversation_id: Option<String>,
    /// The text.
    message: String,
    /// The requested time.
    at: Rfc3339Time,
    /// When it will be sent: later than `at` if the hourly limit was reached.
    due_at: Rfc3339Time,
    /// When it was created.
    created_at: Rfc3339Time,
}

/// The query of `GET /v1/reminders`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct ReminderPage {
    /// Only the reminders of this person. A person's token lists its own in any case.
    user_id: Option<SingleLineText<ID_MAX>>,
    /// The page size. Default: 20.
    limit: Option<PageLimit>,
    /// The `next_cursor` of the previous page.
    #[schemars(extend("format" = "uuid"))]
    cursor: Option<String>,
}

/// A reminder to set: its text, and exactly one of `at` and `in_minutes`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "NewReminder")]
#[schemars(extend("examples" = [{ "message": "Call the dentist", "at": "2027-01-04T09:00:00+01:00", "user_id": "ada" }]))]
pub(super) struct NewReminderBody {
    /// The text.
    message: MultiLineText<MESSAGE_MAX>,
    /// When, at most a year ahead.
    at: Option<Rfc3339Time>,
    /// In how many minutes.
    in_minutes: Option<BoundedInteger<1, { Remind::AHEAD_MAX_MINUTES }>>,
    /// The person who is reminded. An admin must say so; for a person's token it is the person.
    user_id: Option<SingleLineText<ID_MAX>>,
    /// The conversation it comes from.
    conversation_id: Option<SingleLineText<ID_MAX>>,
}

/// Sets a reminder for the token's user, or for the user that an admin names. Agents have the tool `remind`.
pub(super) async fn create(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    correlation: Extension<Correlation>,
    IdempotentBody { idempotency_key, body: new }: IdempotentBody<NewReminderBody>,
) -> Result<Created<ReminderBody>, ApiError> {
    let asked = new.user_id.as_ref().map(|user| user.0.clone());
    let user_id = asked.or_else(|| identity.caller.user_id.clone()).ok_or_else(|| {
        ApiError::invalid("user_id", "is missing; an admin token has no person of its own: say who is reminded")
    })?;
    identity.check_acts_for(&user_id)?;
    let message = person::clean(&new.message.0);
    if message.is_empty() {
        return Err(ApiError::invalid("message", "has no visible characters; say what to remind of"));
    }
    let now = hub.store.now();
    let at = match (new.due_at(now), &idempotency_key) {
        // In a repeated call `at` may have passed by now; the store returns the reminder of the first call.
        (Err(_), Some(key)) if hub.store.recall(key.clone()).await?.is_some() => now,
        (at, _) => at?,
    };
    let reminder = NewReminder {
        caller: identity.caller.clone(),
        user_id,
        origin: identity.origin.clone().unwrap_or_default(),
        conversation_id: new.conversation_id.map(|id| id.0),
        correlation_id: Some(correlation.id().to_owned()),
        message,
        at,
        idempotency_key,
    };
    Ok(Created(hub.store.remind(reminder).await?.into()))
}

/// Lists pending reminders: those of the token's user; for an admin those of the user it names, or all.
pub(super) async fn list(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    Query(page): Query<ReminderPage>,
) -> Result<Json<List<ReminderBody>>, ApiError> {
    let after = page.cursor.as_deref().map(cursor).transpose()?;
    let limit = page.limit.unwrap_or_default().0;
    let named = page.user_id.map(|user| user.0);
    named.as_deref().map_or(Ok(()), |user| identity.check_user(user))?;
    let user_id = identity.caller.user_id.clone().or(named);
    let (reminders, next) = hub.store.reminders(user_id, after, limit).await?;
    let items = reminders.into_iter().map(ReminderBody::from).collect();
    Ok(Json(List { items, next_cursor: next.map(|next| next.to_string()) }))
}

/// Cancels a pending reminder.
pub(super) async fn cancel(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathUuid(id): PathUuid,
) -> Result<NoContent, ApiError> {
    let signed_in = identity.signed_in_admin();
    let owner = identity.caller.user_id.clone().or_else(|| signed_in.map(str::to_owned));
    let cancelled = hub.store.cancel_reminder(owner, id).await.map_err(ApiError::from);
    match (cancelled, signed_in) {
        (Err(error), Some(own)) if error.status == StatusCode::NOT_FOUND => {
            let hint = format!("this session is that of '{own}' and cancels only their reminders; use an admin token");
            Err(ApiError { hint: Some(hint), ..error })
        }
        (cancelled, _) => cancelled.map(|()| NoContent),
    }
}

impl NewReminderBody {
    fn due_at(&self, now: Time) -> Result<Time, ApiError> {
        let (field, at) = match (self.at, self.in_minutes) {
            (Some(Rfc3339Time(at)), None) => ("at", at),
            (None, Some(minutes)) => ("in_minutes", now.plus(minutes.0 * MINUTE_MS)),
            (None, None) => {
                return Err(ApiError::invalid("at", "is missing; send at (a time) or in_minutes (a number)"));
            }
            (Some(_), Some(_)) => {
                return Err(ApiError::invalid("in_minutes", "cannot be combined with at; send one of them"));
            }
        };
        Remind::check_time(at, now).map_err(|problem| ApiError::invalid(field, problem))?;
        Ok(at)
    }
}

impl From<Reminder> for ReminderBody {
    fn from(reminder: Reminder) -> Self {
        let message = reminder.shown_message();
        Self {
            id: reminder.id,
            user_id: reminder.user_id,
            origin: reminder.origin,
            conversation_id: reminder.conversation_id,
            message,
            at: Rfc3339Time(reminder.at),
            due_at: Rfc3339Time(reminder.due_at),
            created_at: Rfc3339Time(reminder.created_at),
        }
    }
}

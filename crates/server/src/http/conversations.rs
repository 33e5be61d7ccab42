use axum::body::Bytes;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::{Extension, Json};
use bellwire_core::inject::Style;
use bellwire_core::render::system_prompt as prompt_for;
use bellwire_core::{Event, Time};
use bellwire_store::{ConversationView, Incoming, Message, Publish};
use serde::Deserialize;
use serde_json::{Value, json};

use super::correlation::Correlation;
use super::idempotency::Keyed;
use super::{ApiError, Hub};
use crate::auth::Identity;
use crate::clock;

/// The longest conversation or user id.
const ID_MAX: usize = 128;
const PAGE_MAX: usize = 100;
const PAGE_DEFAULT: usize = 20;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Put {
    user_id: String,
    title: Option<String>,
}

/// Creates or updates a conversation. Its owner never changes.
pub(super) async fn put(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, ApiError> {
    let put: Put = serde_json::from_slice(&body).map_err(|error| ApiError::body(&error))?;
    check_length("id", &id, ID_MAX)?;
    check_length("user_id", &put.user_id, ID_MAX)?;
    if let Some(title) = &put.title {
        check_length("title", title, 200)?;
    }
    let view = hub.store.put_conversation(identity.caller, id, put.user_id, put.title).await?;
    Ok(Json(view_json(&view)))
}

/// A conversation as people see it.
pub(super) async fn get(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let view = hub.store.conversation(identity.caller, id).await?;
    Ok(Json(view_json(&view)))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Page {
    limit: Option<usize>,
    cursor: Option<String>,
}

/// What the agent was shown, oldest first.
pub(super) async fn messages(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
    page: Result<Query<Page>, axum::extract::rejection::QueryRejection>,
) -> Result<Json<Value>, ApiError> {
    let Query(page) = page.map_err(|error| ApiError::invalid("query", error.body_text()))?;
    let limit = page.limit.unwrap_or(PAGE_DEFAULT);
    if !(1..=PAGE_MAX).contains(&limit) {
        return Err(ApiError::invalid("limit", format!("is {limit}; 1 to {PAGE_MAX} is allowed")));
    }
    let parse = |cursor: String| cursor.parse().map_err(|_| ApiError::invalid("cursor", "is not one of ours"));
    let after = page.cursor.map(parse).transpose()?;
    let (messages, next) = hub.store.messages(identity.caller, id, after, limit).await?;
    let items: Vec<Value> = messages.iter().map(message_json).collect();
    Ok(Json(json!({ "items": items, "next_cursor": next.map(|next: i64| next.to_string()) })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Say {
    text: String,
}

/// What the person says while the agent works. Only a person's own call comes here.
pub(super) async fn say(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    correlation: Extension<Correlation>,
    Path(id): Path<String>,
    Keyed { once, body }: Keyed,
) -> Result<(StatusCode, Json<Value>), ApiError> {
    let say: Say = serde_json::from_slice(&body).map_err(|error| ApiError::body(&error))?;
    check_length("text", &say.text, 10_000)?;
    // The conversation must be there: a word to nobody is not accepted.
    hub.store.conversation(identity.caller.clone(), id.clone()).await?;
    let event = Event::user_message(&say.text)?.in_conversation(&id).at(clock::now()).correlated(&correlation.id);
    let events = vec![Incoming { event, brought: None }];
    let receipts = hub.store.publish(Publish { caller: identity.caller, events, once }).await?;
    let receipt = receipts.first().ok_or_else(|| ApiError::not_found("conversation"))?;
    let answer = json!({ "id": receipt.event_id.0, "filtered": receipt.filtered, "verdicts": receipt.verdicts });
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

/// The paragraph that explains the blocks.
pub(super) async fn system_prompt(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
) -> Result<Json<Value>, ApiError> {
    let view = hub.store.conversation(identity.caller, id).await?;
    Ok(Json(json!({ "boundary": view.boundary.as_str(), "text": prompt_for(&view.boundary, Style::Block) })))
}

/// A new boundary, for a new session or after a compaction, and the paragraph.
pub(super) async fn rotate(
    State(hub): State<Hub>,
    Extension(identity): Extension<Identity>,
    Path(id): Path<String>,
    Keyed { once, .. }: Keyed,
) -> Result<Json<Value>, ApiError> {
    let boundary = hub.store.rotate_boundary(identity.caller, id, once).await?;
    Ok(Json(json!({ "boundary": boundary.as_str(), "text": prompt_for(&boundary, Style::Block) })))
}

pub(super) fn check_length(field: &'static str, text: &str, max: usize) -> Result<(), ApiError> {
    match text.trim().chars().count() {
        length if (1..=max).contains(&length) => Ok(()),
        length => Err(ApiError::invalid(field, format!("has {length} characters; 1 to {max} are allowed"))),
    }
}

fn view_json(view: &ConversationView) -> Value {
    json!({
        "id": view.id, "user_id": view.user_id, "title": view.title,
        "presence": if view.working { "working" } else { "idle" },
        "pending": view.pending, "boundary": view.boundary.as_str(),
    })
}

fn message_json(message: &Message) -> Value {
    json!({
        "id": message.id, "role": message.role, "content": message.content,
        "timestamp": Time::from_millis(message.timestamp).to_string(), "source": message.source,
        "notification_id": message.notification_id, "call_id": message.call_id,
    })
}

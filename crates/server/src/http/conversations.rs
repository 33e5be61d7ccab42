use std::sync::Arc;

use axum::extract::State;
use axum::http::StatusCode;
use axum::{Extension, Json};
use bellwire_core::event::AgentName;
use bellwire_core::{Event, InjectionPoint, Priority, Time};
use bellwire_store::{ConversationDetails, ConversationView, IncomingEvent, Publish};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::body::Body;
use super::correlation::Correlation;
use super::events::PublishedEvent;
use super::field::{EnumText, ID_MAX, MultiLineText, PathId, Rfc3339Time, SingleLineText, WireEnum};
use super::idempotency::IdempotentBody;
use super::path::ConversationPath;
use super::query::{PageLimit, Query};
use super::shape::{Accepted, List};
use super::{ApiError, Hub};
use crate::auth::Identity;
use crate::clock;

pub(super) use super::conversation_list::list;
pub(super) use super::system_prompt::{rotate, system_prompt};

/// The longest path that Linux takes.
const FOLDER_MAX: usize = 4096;
/// Cursors are positions that fit an `i64`; a longer one is refused before parsing.
const CURSOR_DIGITS_MAX: usize = 18;

/// A conversation to create or change.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "user_id": "ada", "title": "Release notes" }]))]
pub(super) struct PutConversation {
    /// The owner. It never changes.
    user_id: SingleLineText<ID_MAX>,
    /// The title for people.
    title: Option<SingleLineText<200>>,
    /// The working directory of the session, as an absolute path.
    folder: Option<SingleLineText<FOLDER_MAX>>,
}

/// A conversation.
#[derive(Serialize, JsonSchema)]
#[schemars(extend("examples" = [{
    "id": "chat", "user_id": "ada", "title": "Release notes", "folder": "/srv/notes",
    "presence": "idle", "pending": 2, "boundary": "k7Qm2xTb",
}]))]
#[schemars(rename = "Conversation")]
pub(super) struct ConversationBody {
    /// Its id.
    id: String,
    /// The owner.
    user_id: String,
    /// The title for people.
    title: Option<String>,
    /// The working directory of the session.
    folder: Option<String>,
    /// `working` or `idle`.
    #[schemars(extend("enum" = ["working", "idle"]))]
    presence: &'static str,
    /// The number of pending notifications of its main agent.
    pending: usize,
    /// The boundary of the main agent: the mark that only genuine notification blocks have.
    boundary: String,
}

/// The query of `GET …/messages`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MessagePage {
    /// Which come first. Default: `oldest`.
    order: Option<EnumText<MessageOrder>>,
    /// The page size. Default: 20.
    limit: Option<PageLimit>,
    /// The `next_cursor` of the previous page.
    #[schemars(pattern(r"^[0-9]{1,18}$"))]
    cursor: Option<String>,
    /// `ConversationPath` reads this parameter; it is listed here so that it is not refused as unknown.
    #[serde(rename = "user_id")]
    #[schemars(skip)]
    _owner: Option<serde::de::IgnoredAny>,
}

/// The order of messages.
#[derive(Copy, Clone, PartialEq, Eq)]
enum MessageOrder {
    Oldest,
    Newest,
}

/// The query of `GET …/pending`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct PendingQuery {
    /// The agent. Default: `main`.
    agent: Option<SingleLineText<ID_MAX>>,
    /// `ConversationPath` reads this parameter; it is listed here so that it is not refused as unknown.
    #[serde(rename = "user_id")]
    #[schemars(skip)]
    _owner: Option<serde::de::IgnoredAny>,
}

/// A notification that waits for an agent. Its text is made when it is shown.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "PendingNotification")]
pub(super) struct PendingBody {
    /// Its id.
    id: Uuid,
    /// The subscriber that created it.
    subscriber: String,
    /// The source of its events; null if they differ.
    source: Option<String>,
    /// The priority.
    priority: EnumText<Priority>,
    /// The injection point at which it is taken.
    inject_at: EnumText<InjectionPoint>,
    /// How many events it has.
    events: usize,
    /// How many repeats are merged into them.
    repeats: u64,
    /// When it became pending.
    since: Rfc3339Time,
    /// When it expires.
    expires_at: Rfc3339Time,
}

/// A message that the agent was shown.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "Message")]
pub(super) struct MessageBody {
    /// Its id.
    id: Uuid,
    /// Always `system`.
    #[schemars(extend("const" = "system"))]
    role: String,
    /// The text.
    content: String,
    /// When it was shown.
    timestamp: Rfc3339Time,
    /// The source of its events.
    source: String,
    /// The notification it shows.
    notification_id: Option<Uuid>,
    /// The call id of the injection that showed it.
    call_id: String,
}

/// A message from a person to the agent.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(extend("examples" = [{ "text": "Stop, please." }]))]
pub(super) struct NewMessage {
    /// The text. The agent gets all of it.
    // Not checked here: a text that is too long answers 422, and an invalid field of a body 400.
    #[schemars(with = "MultiLineText<{ Event::MESSAGE_MAX }>")]
    text: String,
}

/// Creates or updates a conversation. The owner of an existing conversation never changes.
pub(super) async fn put(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    PathId(id): PathId,
    Body(put): Body<PutConversation>,
) -> Result<Json<ConversationBody>, ApiError> {
    if identity.signed_in_admin().is_some() {
        identity.check_acts_for(&put.user_id.0)?;
    }
    let details = ConversationDetails { title: put.title.map(|line| line.0), folder: put.folder.map(|path| path.0) };
    let view = hub.store.put_conversation(identity.caller.clone(), id, put.user_id.0, details).await?;
    Ok(Json(view.into()))
}

/// A conversation.
pub(super) async fn get(
    State(hub): State<Hub>,
    ConversationPath { identity, id }: ConversationPath,
) -> Result<Json<ConversationBody>, ApiError> {
    let view = hub.store.conversation(identity.caller, id).await?;
    Ok(Json(view.into()))
}

/// Lists the messages that the agent was shown, oldest first.
pub(super) async fn messages(
    State(hub): State<Hub>,
    ConversationPath { identity, id }: ConversationPath,
    Query(page): Query<MessagePage>,
) -> Result<Json<List<MessageBody>>, ApiError> {
    let order = page.order;
    let (position, limit) = page.checked()?;
    let (messages, next) = match order {
        Some(EnumText(MessageOrder::Newest)) => hub.store.messages_before(identity.caller, id, position, limit).await?,
        _ => hub.store.messages(identity.caller, id, position, limit).await?,
    };
    let items = messages.into_iter().map(MessageBody::from).collect();
    Ok(Json(List { items, next_cursor: next.map(|next: i64| next.to_string()) }))
}

/// Lists the notifications that wait for an agent, in the order in which they would be taken.
pub(super) async fn pending(
    State(hub): State<Hub>,
    ConversationPath { identity, id }: ConversationPath,
    Query(query): Query<PendingQuery>,
) -> Result<Json<List<PendingBody>>, ApiError> {
    let agent = query.agent.map(|agent| AgentName::parse(&agent.0)).transpose();
    let agent = agent.map_err(|invalid| ApiError::invalid("agent", invalid.message))?.unwrap_or_else(AgentName::main);
    let waiting = hub.store.pending(identity.caller, id, agent).await?;
    Ok(Json(List::whole(waiting.into_iter().map(PendingBody::from).collect())))
}

/// Publishes a person's message to the agent. The route table does not admit agents, so the message is the person's own.
pub(super) async fn say(
    State(hub): State<Hub>,
    ConversationPath { identity, id }: ConversationPath,
    correlation: Extension<Correlation>,
    IdempotentBody { idempotency_key, body: message }: IdempotentBody<NewMessage>,
) -> Result<Accepted<PublishedEvent>, ApiError> {
    let text = message.checked()?;
    // Fails with 404 if the conversation does not exist.
    let conversation = hub.store.conversation(identity.caller.clone(), id.clone()).await?;
    identity.check_acts_for(&conversation.user_id)?;
    let event = Event::user_message(&text)?.in_conversation(&id).at(clock::now()).correlated(correlation.id());
    let events = vec![IncomingEvent::new(event, None)];
    let receipts = hub.store.publish(Publish { caller: identity.caller, events, idempotency_key }).await?;
    let receipt = receipts.into_iter().next().ok_or_else(|| ApiError::not_found("conversation"))?;
    Ok(Accepted(PublishedEvent::of(receipt, None)))
}

impl WireEnum for MessageOrder {
    const VALUES: &'static [Self] = &[Self::Oldest, Self::Newest];
    fn text(self) -> &'static str {
        match self {
            Self::Oldest => "oldest",
            Self::Newest => "newest",
        }
    }
}

impl NewMessage {
    /// The text: 400 without one, 422 if it is too long.
    fn checked(self) -> Result<String, ApiError> {
        let is_long = self.text.chars().count() > Event::MESSAGE_MAX;
        let status = if is_long { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::BAD_REQUEST };
        let text = MultiLineText::<{ Event::MESSAGE_MAX }>::check(self.text);
        text.map(|text| text.0).map_err(|message| ApiError { status, ..ApiError::invalid("text", message) })
    }
}

impl MessagePage {
    /// The validated cursor and page size.
    fn checked(self) -> Result<(Option<i64>, usize), ApiError> {
        let limit = self.limit.unwrap_or_default().0;
        let digits = |text: &String| text.len() <= CURSOR_DIGITS_MAX && text.bytes().all(|byte| byte.is_ascii_digit());
        let parse = |text: String| Some(text).filter(digits).and_then(|text| text.parse().ok());
        match self.cursor.map(parse) {
            Some(None) => Err(ApiError::invalid("cursor", "is not one of ours; send a next_cursor as it came")),
            after => Ok((after.flatten(), limit)),
        }
    }
}

impl From<ConversationView> for ConversationBody {
    fn from(view: ConversationView) -> Self {
        Self {
            id: view.id,
            user_id: view.user_id,
            title: view.title,
            folder: view.folder,
            presence: if view.working { "working" } else { "idle" },
            pending: view.pending,
            boundary: view.boundary.as_str().to_owned(),
        }
    }
}

impl From<bellwire_store::PendingNotification> for PendingBody {
    fn from(pending: bellwire_store::PendingNotification) -> Self {
        Self {
            id: pending.id.0,
            subscriber: pending.subscriber.to_string(),
            source: pending.source.map(|source| source.to_string()),
            priority: EnumText(pending.priority),
            inject_at: EnumText(pending.inject_at),
            events: pending.events,
            repeats: pending.repeats,
            since: Rfc3339Time(pending.since),
            expires_at: Rfc3339Time(pending.expires),
        }
    }
}

impl From<bellwire_store::Message> for MessageBody {
    fn from(message: bellwire_store::Message) -> Self {
        Self {
            id: message.id,
            role: message.role,
            content: message.content,
            timestamp: Rfc3339Time(Time::from_millis(message.timestamp)),
            source: message.source,
            notification_id: message.notification_id,
            call_id: message.call_id,
        }
    }
}

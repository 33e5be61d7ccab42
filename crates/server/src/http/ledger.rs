//! `GET /v1/ledger` and `GET /v1/ledger/sums`: what was decided on requests of the `notify` tool.

use std::sync::Arc;

use axum::extract::State;
use axum::{Extension, Json};
use bellwire_core::notify::{ErrorClass, Intent};
use bellwire_store::{LedgerDecision, LedgerEntry, LedgerQuery, OriginSums};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::field::{EnumText, ID_MAX, QueryTime, Rfc3339Time, SingleLineText};
use super::inbox::cursor;
use super::query::{PageLimit, Query};
use super::shape::List;
use super::{ApiError, Hub};
use crate::auth::{Identity, Scope};

/// The query of `GET /v1/ledger`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct LedgerPage {
    /// Only decisions on requests of this origin.
    origin: Option<SingleLineText<ID_MAX>>,
    /// Only decisions about this person.
    user_id: Option<SingleLineText<ID_MAX>>,
    /// Only decisions about this channel.
    channel: Option<SingleLineText<ID_MAX>>,
    /// Only decisions of this kind.
    decision: Option<EnumText<LedgerDecision>>,
    /// Only decisions made at this time or later.
    since: Option<QueryTime>,
    /// The page size. Default: 20. A page with a `next_cursor` can have fewer decisions, or none: a page reads at most
    /// 5,000 of them.
    limit: Option<PageLimit>,
    /// The `next_cursor` of the previous page.
    #[schemars(extend("format" = "uuid"))]
    cursor: Option<String>,
}

/// The query of `GET /v1/ledger/sums`.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SumsQuery {
    /// Only the sums of this origin.
    origin: Option<SingleLineText<ID_MAX>>,
    /// Only decisions about this person, and of those at most the 5,000 newest.
    user_id: Option<SingleLineText<ID_MAX>>,
    /// Only decisions made on the UTC day of this time or later. Default: the last seven days.
    since: Option<QueryTime>,
}

/// A decision on a request of the notify tool. It contains no text and no address.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LedgerEntry")]
pub(super) struct LedgerEntryBody {
    /// Its id, time-ordered.
    id: Uuid,
    /// When it was decided.
    at: Rfc3339Time,
    /// The origin of the agent that asked.
    origin: String,
    /// The recipient, else the person the agent works for; null for neither.
    user_id: Option<String>,
    /// The channel; null if the call named none that exists.
    channel: Option<String>,
    /// The intent; null if the call named none that exists.
    intent: Option<EnumText<Intent>>,
    /// The decision.
    decision: EnumText<LedgerDecision>,
    /// The class of the error.
    error_class: Option<EnumText<ErrorClass>>,
    /// The reason, in a few words.
    reason: Option<String>,
    /// The item in the recipient's inbox.
    notification_id: Option<Uuid>,
    /// The id of the request; null for the outcome of a deferred message.
    request_id: Option<Uuid>,
}

/// The number of decisions of one origin.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "LedgerSums")]
pub(super) struct LedgerSumsBody {
    /// The origin.
    origin: String,
    /// Accepted by the provider.
    delivered: u64,
    /// Held by quiet hours; each is decided once more when they end.
    deferred: u64,
    /// Refused by the hub.
    refused: u64,
    /// Attempted, and failed.
    failed: u64,
    /// Attempted, with an outcome that is not known.
    unknown: u64,
    /// Whether the origin has tried several times and nothing was delivered.
    never_gets_through: bool,
}

/// Lists decisions, newest first.
pub(super) async fn list(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    Query(page): Query<LedgerPage>,
) -> Result<Json<List<LedgerEntryBody>>, ApiError> {
    let (origin, user_id) = readable(&identity, page.origin, page.user_id)?;
    let query = LedgerQuery {
        origin,
        user_id,
        channel: page.channel.map(|channel| channel.0),
        decision: page.decision.map(|decision| decision.0),
        since: page.since.map(|since| since.0),
        before: page.cursor.as_deref().map(cursor).transpose()?,
        limit: page.limit.unwrap_or_default().0,
    };
    let (entries, next) = hub.store.ledger(query).await?;
    let items = entries.into_iter().map(LedgerEntryBody::from).collect();
    Ok(Json(List { items, next_cursor: next.map(|next| next.to_string()) }))
}

/// Sums decisions per origin, in the order of their names.
pub(super) async fn sums(
    State(hub): State<Hub>,
    Extension(identity): Extension<Arc<Identity>>,
    Query(query): Query<SumsQuery>,
) -> Result<Json<List<LedgerSumsBody>>, ApiError> {
    let (origin, user_id) = readable(&identity, query.origin, query.user_id)?;
    let since = query.since.map_or_else(|| hub.store.now().minus(OriginSums::RECENT_MS), |since| since.0);
    let sums = hub.store.ledger_sums(origin, user_id, since).await?;
    Ok(Json(List { items: sums.iter().map(LedgerSumsBody::from).collect(), next_cursor: None }))
}

/// Narrows the filters to what the token may read: an agent's token its origin's decisions, and a token that is bound to a
/// person only those about that person.
fn readable(
    identity: &Identity,
    origin: Option<SingleLineText<ID_MAX>>,
    user_id: Option<SingleLineText<ID_MAX>>,
) -> Result<(Option<String>, Option<String>), ApiError> {
    let (mut origin, user_id) = (origin.map(|origin| origin.0), user_id.map(|user| user.0));
    user_id.as_deref().map_or(Ok(()), |user| identity.check_user(user))?;
    if identity.scope == Scope::Agent {
        let own = identity.origin.clone().unwrap_or_default();
        if origin.as_ref().is_some_and(|asked| *asked != own) {
            return Err(ApiError::not_found("origin"));
        }
        origin = Some(own);
    }
    Ok((origin, user_id.or_else(|| identity.caller.user_id.clone())))
}

impl From<LedgerEntry> for LedgerEntryBody {
    fn from(entry: LedgerEntry) -> Self {
        let decided = entry.decided;
        Self {
            id: entry.id,
            at: Rfc3339Time(entry.at),
            origin: decided.origin,
            user_id: decided.user_id,
            channel: Some(decided.channel).filter(|channel| !channel.is_empty()),
            intent: decided.intent.map(EnumText),
            decision: EnumText(decided.decision),
            error_class: decided.class.map(EnumText),
            reason: decided.reason,
            notification_id: decided.notification_id,
            request_id: decided.request_id,
        }
    }
}

impl From<&OriginSums> for LedgerSumsBody {
    fn from(sums: &OriginSums) -> Self {
        Self {
            origin: sums.origin.clone(),
            delivered: sums.count(LedgerDecision::Delivered),
            deferred: sums.count(LedgerDecision::Deferred),
            refused: sums.count(LedgerDecision::Refused),
            failed: sums.count(LedgerDecision::Failed),
            unknown: sums.count(LedgerDecision::Unknown),
            never_gets_through: sums.never_gets_through(),
        }
    }
}

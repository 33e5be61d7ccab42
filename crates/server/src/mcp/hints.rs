//! Sends the hub's hints to MCP clients as resource updates.
//!
//! Before revision 2026-07-28 a client subscribes within its session; since then it keeps a listen request open. Either
//! way an update only says that a resource changed. A lost update loses no notification: an injection takes what is
//! pending, and a new subscription starts with an update if something is.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::http::StatusCode;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use tokio::task::AbortHandle;

use super::server::{internal_error, resource_not_found};
use super::translate::conversation_of;
use crate::auth::Identity;
use crate::http::{ConversationFeed, Hub, OpenStream};

/// The maximum number of resource subscriptions per session or listen request.
const SUBSCRIPTIONS_MAX: usize = 16;

/// Yields an item for each change in a conversation, and one at once if something is pending. It ends with the token.
pub(super) type ChangeStream = BoxStream<'static, ()>;

/// The tasks that forward changes to a session's client, by resource URI. Dropping it aborts them.
#[derive(Default)]
pub(super) struct Subscriptions(Mutex<HashMap<String, AbortHandle>>);

impl Subscriptions {
    /// Forwards changes to the peer. A second subscription to the same URI replaces the first.
    pub(super) fn begin(
        &self,
        uri: String,
        mut changes: ChangeStream,
        peer: Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut tasks = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        tasks.retain(|_, task| !task.is_finished());
        if tasks.len() >= SUBSCRIPTIONS_MAX && !tasks.contains_key(&uri) {
            let message =
                format!("a session follows at most {SUBSCRIPTIONS_MAX} resources; unsubscribe from one first");
            return Err(ErrorData::invalid_params(message, None));
        }
        let updated_uri = uri.clone();
        let task = tokio::spawn(async move {
            while changes.next().await.is_some() {
                let update = ResourceUpdatedNotificationParam::new(updated_uri.clone());
                if peer.notify_resource_updated(update).await.is_err() {
                    return;
                }
            }
        });
        if let Some(previous) = tasks.insert(uri, task.abort_handle()) {
            previous.abort();
        }
        Ok(())
    }

    pub(super) fn end(&self, uri: &str) {
        if let Some(task) = self.0.lock().unwrap_or_else(PoisonError::into_inner).remove(uri) {
            task.abort();
        }
    }
}

impl Drop for Subscriptions {
    fn drop(&mut self) {
        for task in self.0.get_mut().unwrap_or_else(PoisonError::into_inner).values() {
            task.abort();
        }
    }
}

/// Reduces a requested filter to resources of this server, at most `SUBSCRIPTIONS_MAX`.
pub fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = requested.resource_subscriptions.iter().flatten();
    let ours: Vec<String> =
        uris.filter(|uri| conversation_of(uri).is_some()).take(SUBSCRIPTIONS_MAX).cloned().collect();
    let mut filter = SubscriptionFilter::new();
    filter.resource_subscriptions = (!ours.is_empty()).then_some(ours);
    filter
}

/// Opens everything that a client listens to; each item names the resource that changed. All of it ends with the token and
/// with the hub.
pub(super) async fn open_all(
    hub: &Hub,
    identity: &Identity,
    filter: &SubscriptionFilter,
) -> Result<BoxStream<'static, String>, ErrorData> {
    let mut all = Vec::new();
    for uri in filter.resource_subscriptions.clone().unwrap_or_default() {
        let id = conversation_of(&uri).ok_or_else(|| resource_not_found(&uri))?;
        let changes = open(hub, identity.clone(), &uri, id).await?;
        all.push(changes.map(move |()| uri.clone()).boxed());
    }
    if all.is_empty() {
        // There are no changes to report, but the client may keep the stream open. It counts like any other stream.
        let mut open = OpenStream::new(hub, identity).await.map_err(|error| internal_error(&error))?;
        all.push(stream::once(async move { open.ended().await }).filter_map(|()| async { None }).boxed());
    }
    Ok(stream::select_all(all).boxed())
}

/// Reports every change until the client disconnects or the changes end.
pub(super) async fn listen(
    mut changes: BoxStream<'static, String>,
    context: &SubscriptionContext,
) -> Result<(), ErrorData> {
    loop {
        tokio::select! {
            uri = changes.next() => match uri {
                Some(uri) => if context.sink().notify_resource_updated(uri).await.is_err() { return Ok(()) },
                None => return Ok(()),
            },
            () = context.cancelled() => return Ok(()),
        }
    }
}

/// Opens the change stream of one of the caller's conversations.
pub(super) async fn open(hub: &Hub, identity: Identity, uri: &str, id: String) -> Result<ChangeStream, ErrorData> {
    let opened = ConversationFeed::open(hub.clone(), identity, id).await;
    let (state, feed) = opened.map_err(|error| match error.status {
        StatusCode::NOT_FOUND => resource_not_found(uri),
        _ => internal_error(&error),
    })?;
    let has_pending = state.iter().any(|hint| hint.count > 0);
    let rest = stream::unfold(feed, |mut feed| async move { feed.next().await.map(|_| ((), feed)) });
    Ok(stream::iter(has_pending.then_some(())).chain(rest).boxed())
}

//! "Something waits": the hub's hints as updates of a resource, in both eras of the protocol.
//!
//! Before 2026-07-28 a client subscribes within its session; since then it keeps a request open that listens. Either way
//! it hears that a resource changed and nothing else. An update that no one hears is no loss: what waits is taken by an
//! injection, and whoever subscribes anew is told at once if there is something.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use axum::http::StatusCode;
use futures_util::StreamExt as _;
use futures_util::stream::{self, BoxStream};
use rmcp::model::{ResourceUpdatedNotificationParam, SubscriptionFilter};
use rmcp::service::{Peer, SubscriptionContext};
use rmcp::{ErrorData, RoleServer};
use tokio::task::AbortHandle;

use super::server::{failed, no_such};
use super::translate::conversation_of;
use crate::auth::Identity;
use crate::http::{ConversationFeed, Hub};

/// How many conversations one client may follow.
const FOLLOWED_MAX: usize = 16;

/// An item each time something in a conversation changes, beginning with now if something waits. It ends with the token.
pub(super) type ChangeStream = BoxStream<'static, ()>;

/// What a session follows; it ends with the session.
#[derive(Default)]
pub(super) struct Subscriptions(Mutex<HashMap<String, AbortHandle>>);

impl Subscriptions {
    /// Tells this peer of every change. Subscribing twice is subscribing once.
    pub(super) fn begin(
        &self,
        uri: String,
        mut changes: ChangeStream,
        peer: Peer<RoleServer>,
    ) -> Result<(), ErrorData> {
        let mut running = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        running.retain(|_, task| !task.is_finished());
        if running.len() >= FOLLOWED_MAX && !running.contains_key(&uri) {
            let message = format!("a session follows at most {FOLLOWED_MAX} resources; unsubscribe from one first");
            return Err(ErrorData::invalid_params(message, None));
        }
        let followed = uri.clone();
        let task = tokio::spawn(async move {
            while changes.next().await.is_some() {
                let update = ResourceUpdatedNotificationParam::new(followed.clone());
                if peer.notify_resource_updated(update).await.is_err() {
                    return;
                }
            }
        });
        if let Some(before) = running.insert(uri, task.abort_handle()) {
            before.abort();
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

/// Of what a client wants to hear, what there is to hear.
pub fn accepted(requested: &SubscriptionFilter) -> SubscriptionFilter {
    let uris = requested.resource_subscriptions.iter().flatten();
    let ours: Vec<String> = uris.filter(|uri| conversation_of(uri).is_some()).take(FOLLOWED_MAX).cloned().collect();
    let mut filter = SubscriptionFilter::new();
    filter.resource_subscriptions = (!ours.is_empty()).then_some(ours);
    filter
}

/// Tells of every change for as long as the client listens, its token holds and the hub runs.
pub(super) async fn listen(hub: &Hub, identity: Identity, context: &SubscriptionContext) -> Result<(), ErrorData> {
    let mut all = Vec::new();
    for uri in context.accepted().resource_subscriptions.clone().unwrap_or_default() {
        let id = conversation_of(&uri).ok_or_else(|| no_such(&uri))?;
        let changes = open(hub, identity.clone(), &uri, id).await?;
        all.push(changes.map(move |()| uri.clone()).boxed());
    }
    if all.is_empty() {
        // There is nothing to hear, and to go away is up to the client.
        context.cancelled().await;
        return Ok(());
    }
    let mut changes = stream::select_all(all);
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

/// Follows a conversation that is the caller's own.
pub(super) async fn open(hub: &Hub, identity: Identity, uri: &str, id: String) -> Result<ChangeStream, ErrorData> {
    let opened = ConversationFeed::open(hub.clone(), identity, id).await;
    let (state, feed) = opened.map_err(|error| match error.status {
        StatusCode::NOT_FOUND => no_such(uri),
        _ => failed(&error),
    })?;
    let waits = state.iter().any(|hint| hint.count > 0);
    let rest = stream::unfold(feed, |mut feed| async move { feed.next().await.map(|_| ((), feed)) });
    Ok(stream::iter(waits.then_some(())).chain(rest).boxed())
}

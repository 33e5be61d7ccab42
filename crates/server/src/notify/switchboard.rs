//! The Switchboard: the only part that routes. It wraps a notify request into a route and passes it to the Messenger.

use bellwire_store::SentFrom;

use super::attempt::Attempt;
use super::envelope::{DeliverAnswer, DeliverArguments, Failure, RouteEnvelope, RouteResponse, WireContext};
use super::prepared::minted_context;
use super::remote::Remote;
use super::{hash_of, messenger, uuid_of};
use crate::clock;
use crate::http::Hub;

/// Delivers a notify request whose origin is authenticated. With an attempt, the same process has claimed the request.
pub(crate) async fn deliver(hub: &Hub, arguments: DeliverArguments, attempt: Option<&Attempt>) -> DeliverAnswer {
    let DeliverArguments { source_butler, notify_request: mut request, user_id } = arguments;
    let channel = request.delivery.channel.clone();
    let context = request.request_context.get_or_insert_with(|| {
        let request_id = clock::new_id();
        WireContext(minted_context(&source_butler, request_id))
    });
    let request_id = context.0.request_id;
    let route = RouteEnvelope::of(request, user_id, request_id, clock::now());
    let response = match &hub.notify.messenger {
        Some(remote) => route_elsewhere(remote, &route, attempt).await,
        None => Ok(messenger::execute(hub, route, attempt).await),
    };
    let outcome = response.and_then(|response| response.outcome(request_id, &channel));
    // The same for every repeat of the request.
    let notification_id = uuid_of(&hash_of(&["notification", &source_butler, &request_id.to_string()]));
    DeliverAnswer::of(notification_id, request_id, outcome)
}

/// Calls the Messenger on another machine. The start of a claimed request is committed before.
async fn route_elsewhere(
    remote: &Remote,
    route: &RouteEnvelope,
    attempt: Option<&Attempt>,
) -> Result<RouteResponse, Failure> {
    if let Some(attempt) = attempt {
        attempt.start(SentFrom::Elsewhere).await?;
    }
    remote.call(route).await
}

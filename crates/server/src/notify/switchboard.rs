//! The Switchboard: the only part that routes. It wraps a notify request into a route and passes it to the Messenger.

use bellwire_core::notify::NotifyError;
use uuid::Uuid;

use super::attempt::Attempt;
use super::envelope::{DeliverAnswer, DeliverArguments, Outcome, Route, WireContext};
use super::prepared::minted_context;
use super::{messenger, uuid_of};
use crate::clock;
use crate::http::Hub;

/// Delivers a notify request whose origin is authenticated. With an attempt, the same process has claimed the request.
pub(crate) async fn deliver(hub: &Hub, arguments: DeliverArguments, attempt: Option<&Attempt>) -> DeliverAnswer {
    let DeliverArguments { source_butler, notify_request: mut request, user_id } = arguments;
    if source_butler != request.origin_butler {
        return DeliverAnswer::refused(NotifyError::invalid(
            "notify_request.origin_butler: it must equal source_butler, the authenticated origin",
        ));
    }
    let channel = request.delivery.channel.clone();
    let context = request.request_context.get_or_insert_with(|| {
        let request_id = clock::new_id();
        WireContext(minted_context(&source_butler, request_id))
    });
    let request_id = context.0.request_id;
    let route = Route::of(request, user_id, request_id, clock::now());
    let outcome = messenger::execute(hub, route, attempt).await.outcome(request_id, &channel);
    answer(attempt, request_id, outcome)
}

fn answer(attempt: Option<&Attempt>, request_id: Uuid, outcome: Outcome) -> DeliverAnswer {
    let notification_id = attempt.map(|attempt| uuid_of(&attempt.key));
    DeliverAnswer::of(notification_id, request_id, outcome)
}

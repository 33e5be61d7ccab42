//! The Switchboard: the only part that routes. It wraps a notify request into a route and passes it to the Messenger.

use bellwire_store::SentFrom;
use uuid::Uuid;

use super::attempt::{Asker, Attempted, Question};
use super::envelope::{AnswerMeta, DeliverAnswer, DeliverArguments, RouteEnvelope, RouteResponse, WireContext};
use super::prepared::minted_context;
use super::remote::Remote;
use super::{asking, hash_of, messenger, uuid_of};
use crate::clock;
use crate::http::Hub;

/// Delivers a notify request whose origin is authenticated.
pub(crate) async fn deliver(hub: &Hub, arguments: DeliverArguments, asker: Asker<'_>) -> (DeliverAnswer, AnswerMeta) {
    let DeliverArguments { source_butler, notify_request: mut request, user_id } = arguments;
    let channel = request.delivery.channel.clone();
    let context = request.request_context.get_or_insert_with(|| {
        let request_id = clock::new_id();
        WireContext(minted_context(&source_butler, request_id))
    });
    let request_id = context.0.request_id;
    let route = RouteEnvelope::of(request, user_id, request_id, clock::now());
    let Attempted { outcome, meta } = match &hub.notify.messenger {
        Some(remote) => {
            let ask = |question| ask(remote, &route, question, request_id, &channel);
            match asker {
                Asker::Here(attempt) => match attempt.start(SentFrom::Elsewhere).await {
                    Ok(()) => asking::until_known(hub.channels.lease_of(&channel), ask).await,
                    Err(error) => Err(error.into()).into(),
                },
                // The caller has claimed it, and asks again if it has to.
                Asker::Elsewhere(question) => ask(question).await,
            }
        }
        None => {
            let (response, meta) = messenger::execute(hub, route, asker).await;
            Attempted { outcome: response.outcome(request_id, &channel), meta }
        }
    };
    // The same for every repeat of the request.
    let notification_id = uuid_of(&hash_of(&["notification", &source_butler, &request_id.to_string()]));
    (DeliverAnswer::of(notification_id, request_id, outcome), meta)
}

/// Calls the Messenger on another machine once.
async fn ask(remote: &Remote, route: &RouteEnvelope, question: Question, request_id: Uuid, channel: &str) -> Attempted {
    match remote.call::<RouteResponse>(route, question).await {
        Ok((response, meta)) => Attempted { outcome: response.outcome(request_id, channel), meta },
        Err(failure) => Err(failure).into(),
    }
}

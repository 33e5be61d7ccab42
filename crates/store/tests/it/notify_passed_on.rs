//! A request that was passed on to a Messenger of the same store is taken over once, and admitted once.

use bellwire_core::notify::ErrorClass;
use bellwire_store::{Claimant, LedgerDecision, NotifyClaim, NotifyClaimed, NotifyEnding, SentFrom};

use crate::backends::{Backend, on_every_store};
use crate::notify_requests::{ADDRESS, claim, decisions, delivered, end, failed, inbox, key, mine, reply, send, start};
use crate::outbox::mail_to;

fn by_messenger(claim: NotifyClaim) -> NotifyClaim {
    NotifyClaim { claimant: Claimant::Messenger, on_behalf_of: None, conversation_id: None, ..claim }
}

/// The hub claims a request and passes it on.
async fn passed_on(backend: &Backend, asked: NotifyClaim) -> i64 {
    let key = asked.key;
    let fence = mine(backend, asked).await;
    assert!(backend.store().start_notify(key, fence, SentFrom::Elsewhere).await.unwrap());
    fence
}

on_every_store! {
    async fn the_messenger_takes_a_request_over_once_and_its_outcome_is_the_answer(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        let hubs = passed_on(&backend, send(1)).await;
        assert_eq!(claim(&backend, send(1)).await, NotifyClaimed::InFlight, "an equal call of the tool joins");
        let messengers = mine(&backend, by_messenger(send(1))).await;
        assert!(messengers > hubs);
        assert_eq!(claim(&backend, by_messenger(send(1))).await, NotifyClaimed::InFlight, "it is taken over once");
        assert!(start(&backend, 1, messengers).await);
        assert_eq!(claim(&backend, by_messenger(send(1))).await, NotifyClaimed::InFlight);
        // The hub has lost the connection to the Messenger.
        assert_eq!(end(&backend, 1, hubs, failed(ErrorClass::InternalError)).await, None);
        let answer = end(&backend, 1, messengers, delivered()).await.unwrap();
        assert_eq!(end(&backend, 1, hubs, delivered()).await.as_ref(), Some(&answer));
        assert_eq!((inbox(&backend).await.len(), decisions(&backend).await), (1, vec![LedgerDecision::Delivered]));
    }

    async fn a_request_that_is_taken_over_is_admitted_by_no_limit_again(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        for number in 1..=20 {
            let hubs = passed_on(&backend, reply(number, 100)).await;
            let messengers = mine(&backend, by_messenger(reply(number, 100))).await;
            assert!(start(&backend, number, messengers).await);
            end(&backend, number, messengers, delivered()).await.unwrap();
            end(&backend, number, hubs, delivered()).await.unwrap();
        }
        assert_eq!(decisions(&backend).await, vec![LedgerDecision::Delivered; 20]);
    }

    async fn a_messenger_that_stops_before_it_sends_releases_the_request(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        passed_on(&backend, send(1)).await;
        mine(&backend, by_messenger(send(1))).await;
        backend.pass(61_000);
        backend.store().tick().await.unwrap();
        let answer = backend.store().notify_answer(key(1)).await.unwrap().unwrap();
        assert!(matches!(
            answer.ending,
            NotifyEnding::Failed { class: ErrorClass::TargetUnavailable, retryable: true, .. }
        ));
        assert!(matches!(claim(&backend, send(1)).await, NotifyClaimed::Mine { .. }), "nothing was sent");
        assert_eq!((inbox(&backend).await.len(), decisions(&backend).await), (1, vec![LedgerDecision::Failed]));
    }
}

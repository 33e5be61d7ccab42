//! A `notify` request in quiet hours: one inbox item, and one message with the whole text when they end, checked again then.

use std::collections::{BTreeMap, BTreeSet};

use bellwire_core::InjectionPoint::TurnStart;
use bellwire_core::person::{ChannelChange, MESSAGE_MAX, SettingsChange};
use bellwire_store::LedgerDecision::{Deferred, Delivered, Failed, Refused, Unknown};
use bellwire_store::{
    AttemptOutcome, ChannelRules, Claim, DeliveryState, NotifyAnswer, NotifyClaim, NotifyEnding, NotifyRecipient,
    PeopleRules, Purpose, RetentionCutoffs,
};

use crate::backends::{Backend, email, on_every_store, with_email};
use crate::notify::{message, told};
use crate::notify_requests::{decisions, ended, inbox, ledger, quiet_now, send};
use crate::outbox::{finish, mail_to, only, start};
use crate::settings::change;

/// Ada's quiet hours last so long from now.
const QUIET_MS: i64 = 90 * 60_000;

fn long_text() -> String {
    format!("{} the end", "word ".repeat(1_000))
}

async fn defer(backend: &Backend, claim: NotifyClaim) -> NotifyAnswer {
    let answer = ended(backend, claim).await;
    assert!(matches!(answer.ending, NotifyEnding::Deferred { .. }), "{answer:?}");
    answer
}

/// Ada, in her quiet hours, with a message that waits for their end.
async fn waiting(backend: &Backend) -> NotifyAnswer {
    mail_to(backend, "ada@example.org").await;
    quiet_now(backend).await;
    defer(backend, send(1)).await
}

async fn due(backend: &Backend) -> Vec<Claim> {
    backend.store().claim(email(), 10).await.unwrap()
}

/// How the delivery was skipped.
async fn skipped(backend: &Backend) -> String {
    assert!(due(backend).await.is_empty());
    let delivery = only(backend).await;
    assert_eq!(delivery.state, DeliveryState::Skipped);
    let reason = delivery.reason.expect("a reason");
    assert_eq!(decisions(backend).await, [Deferred, Refused]);
    assert_eq!(ledger(backend).await[0].decided.reason.as_ref(), Some(&reason));
    reason
}

async fn attempted(backend: &Backend, outcome: AttemptOutcome) {
    backend.pass(QUIET_MS);
    let claim = due(backend).await.remove(0);
    assert!(start(backend, &claim).await && finish(backend, &claim, outcome).await);
}

on_every_store! {
    async fn the_whole_text_and_its_subject_are_sent_alone(backend: Backend) {
        mail_to(&backend, "Ada@example.org").await;
        quiet_now(&backend).await;
        let as_asked = NotifyRecipient::Person { user_id: "ada".into(), target: " ada@EXAMPLE.org".into() };
        let asked = NotifyClaim { message: Some(long_text()), recipient: as_asked, ..send(1) };
        let first = defer(&backend, asked).await;
        defer(&backend, send(2)).await;
        assert!(due(&backend).await.is_empty());
        let shown = &inbox(&backend).await[1];
        assert_eq!((Some(shown.id), shown.message.chars().count()), (first.notification_id, MESSAGE_MAX));
        if backend.is_durable() {
            backend.restart().await;
        }
        backend.pass(QUIET_MS);
        let claims = due(&backend).await;
        assert_eq!(claims.len(), 2, "each is alone: {claims:?}");
        let Purpose::Direct(item, sent) = &claims[0].purpose else { panic!("{claims:?}") };
        assert_eq!((Some(item.id), claims[0].target.as_str()), (first.notification_id, "Ada@example.org"));
        assert_eq!((sent.message.as_str(), sent.subject.as_deref()), (long_text().as_str(), Some("Subject")));
        assert_eq!((sent.origin.as_str(), sent.needs_allowance), ("health", false));
        assert!(start(&backend, &claims[0]).await && finish(&backend, &claims[0], AttemptOutcome::Sent).await);
        assert_eq!(decisions(&backend).await, [Deferred, Deferred, Delivered]);
        let delivered = &ledger(&backend).await[0].decided;
        assert_eq!(delivered.notification_id, first.notification_id.map(|id| id.0));
        assert_eq!((delivered.origin.as_str(), delivered.user_id.as_deref()), ("health", Some("ada")));
    }

    async fn one_that_was_read_meanwhile_is_not_sent(backend: Backend) {
        let answer = waiting(&backend).await;
        backend.store().mark("ada".into(), answer.notification_id.unwrap(), true).await.unwrap();
        backend.pass(QUIET_MS);
        assert_eq!(skipped(&backend).await, "it was read meanwhile");
    }

    async fn one_of_an_origin_that_was_muted_meanwhile_is_not_sent(backend: Backend) {
        waiting(&backend).await;
        let muted = SettingsChange { muted_origins: Some(vec!["health".into()]), ..SettingsChange::default() };
        change(&backend, muted).await.unwrap();
        backend.pass(QUIET_MS);
        assert_eq!(skipped(&backend).await, "the origin is muted");
    }

    async fn one_on_a_channel_that_was_switched_off_meanwhile_is_not_sent(backend: Backend) {
        waiting(&backend).await;
        let off = ChannelChange { enabled: Some(false), target: None };
        change(&backend, SettingsChange::of_channel(email(), off)).await.unwrap();
        backend.pass(QUIET_MS);
        assert_eq!(skipped(&backend).await, "the channel is switched off");
    }

    async fn one_that_was_cancelled_is_not_sent_and_that_is_recorded(backend: Backend) {
        waiting(&backend).await;
        let id = only(&backend).await.id;
        backend.store().cancel_delivery(Some("ada".into()), id, None).await.unwrap();
        backend.pass(QUIET_MS);
        assert!(due(&backend).await.is_empty());
        assert_eq!(decisions(&backend).await, [Deferred, Refused]);
        // It can be sent after all for as long as it is kept.
        backend.store().retry_delivery(Some("ada".into()), id, None).await.unwrap();
        assert!(matches!(due(&backend).await[0].purpose, Purpose::Direct(..)));
    }

    async fn other_news_never_joins_it_and_a_retry_sends_the_same_message(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        quiet_now(&backend).await;
        told(&backend, message("news")).await;
        defer(&backend, send(1)).await;
        told(&backend, message("more news")).await;
        backend.pass(QUIET_MS);
        let claims = due(&backend).await;
        assert_eq!(claims.len(), 2, "a digest and the message: {claims:?}");
        let (direct, others): (Vec<&Claim>, Vec<&Claim>) =
            claims.iter().partition(|claim| matches!(claim.purpose, Purpose::Direct(..)));
        assert!(start(&backend, others[0]).await && finish(&backend, others[0], AttemptOutcome::Sent).await);
        assert!(start(&backend, direct[0]).await);
        let later = AttemptOutcome::TryAgain { reason: "busy".into(), retry_after_ms: Some(1) };
        assert!(finish(&backend, direct[0], later).await);
        assert_eq!(decisions(&backend).await, [Deferred], "it has not ended");
        backend.pass(600_000);
        let again = due(&backend).await.remove(0);
        assert_eq!((again.message_id, &again.purpose), (direct[0].message_id, &direct[0].purpose));
    }

    async fn a_failure_is_published_to_the_conversation_and_recorded(backend: Backend) {
        waiting(&backend).await;
        attempted(&backend, AttemptOutcome::Refused { reason: "550 no".into() }).await;
        let block = backend.inject(TurnStart, "1").await.block;
        assert!(block.contains("delivery_failed: email (message 1) - 550 no"), "{block}");
        assert_eq!(decisions(&backend).await, [Deferred, Failed]);
        assert_eq!(ledger(&backend).await[0].decided.reason.as_deref(), Some("550 no"));
    }

    async fn an_unknown_outcome_is_recorded_as_such(backend: Backend) {
        waiting(&backend).await;
        attempted(&backend, AttemptOutcome::Unknown { reason: "the connection was lost".into() }).await;
        assert_eq!(decisions(&backend).await, [Deferred, Unknown]);
    }
}

#[tokio::test]
async fn no_delivery_is_planned_on_another_channel() {
    let owl = bellwire_core::person::ChannelName::parse("owl").unwrap();
    let rules = with_email().with_channel(owl.clone(), ChannelRules::new("owl"));
    for backend in [Backend::memory_with(rules.clone()).await, Backend::sqlite_with(rules.clone()).await] {
        mail_to(&backend, "ada@example.org").await;
        let tree = ChannelChange { enabled: Some(true), target: Some(Some("a tree".into())) };
        change(&backend, SettingsChange::of_channel(owl.clone(), tree)).await.unwrap();
        let code = backend.store().claim(owl.clone(), 1).await.unwrap().remove(0);
        assert!(start(&backend, &code).await && finish(&backend, &code, AttemptOutcome::Sent).await);
        backend.store().confirm_target("ada".into(), owl.clone(), b"a hash".to_vec(), None).await.unwrap();
        quiet_now(&backend).await;
        defer(&backend, send(1)).await;
        backend.pass(QUIET_MS);
        assert!(backend.store().claim(owl.clone(), 10).await.unwrap().is_empty());
        assert_eq!(due(&backend).await.len(), 1);
    }
}

#[tokio::test]
async fn the_text_is_deleted_with_its_delivery() {
    let backend = Backend::sqlite().await;
    mail_to(&backend, "ada@example.org").await;
    quiet_now(&backend).await;
    defer(&backend, NotifyClaim { message: Some("a rare text in the attic".into()), ..send(1) }).await;
    attempted(&backend, AttemptOutcome::Sent).await;
    backend.store().read_all("ada".into(), None).await.unwrap();
    backend.pass(1_000);
    while backend.store().prune(RetentionCutoffs::before(backend.now()), 100).await.unwrap() > 0 {}
    backend.store().erase_user("nobody".into()).await.ok();
    let bytes = std::fs::read(backend.path()).unwrap();
    let found = bytes.windows(24).any(|window| window == b"a rare text in the attic");
    assert!(!found, "retention left the text");
}

#[tokio::test]
async fn a_target_of_the_allow_list_is_checked_again_when_it_is_due() {
    let listed = BTreeMap::from([("health".to_owned(), BTreeSet::from([(email(), "ada@example.org".to_owned())]))]);
    for (allowed_targets, is_sent) in [(listed, true), (BTreeMap::new(), false)] {
        let rules = PeopleRules { allowed_targets, ..with_email() };
        for backend in [Backend::memory_with(rules.clone()).await, Backend::sqlite_with(rules.clone()).await] {
            mail_to(&backend, "Ada@example.org").await;
            quiet_now(&backend).await;
            let recipient = NotifyRecipient::Person { user_id: "ada".into(), target: "Ada@example.org".into() };
            defer(&backend, NotifyClaim { on_behalf_of: Some("bob".into()), recipient, ..send(1) }).await;
            backend.pass(QUIET_MS);
            match is_sent {
                true => assert_eq!(due(&backend).await.len(), 1),
                false => assert_eq!(skipped(&backend).await, "the address is no longer allowed to the origin"),
            }
        }
    }
}

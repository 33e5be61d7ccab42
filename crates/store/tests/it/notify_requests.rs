//! A `notify` request is claimed once, attempted once, and answered with its first answer.

use bellwire_core::notify::{ErrorClass, Intent, NotifyError, UNKNOWN_OUTCOME};
use bellwire_core::person::{ChannelChange, ChannelName, PersonSettings, QuietChange, SettingsChange};
use bellwire_store::{
    Claimant, DeliveryState, InboxItem, InboxQuery, InboxState, LedgerDecision, LedgerEntry, LedgerQuery, NotifyAnswer,
    NotifyClaim, NotifyClaimed, NotifyEnd, NotifyEnding, NotifyKey, NotifyRecipient, RetentionCutoffs, SentFrom,
    SettingsRequest,
};
use uuid::Uuid;

use crate::backends::{Backend, on_every_store};
use crate::outbox::mail_to;

pub(crate) const ADDRESS: &str = "ada@example.org";
const HOUR_MS: i64 = 60 * 60 * 1000;

pub(crate) fn key(number: u8) -> NotifyKey {
    [number; 32]
}

/// A message to Ada's address.
pub(crate) fn send(number: u8) -> NotifyClaim {
    NotifyClaim {
        key: key(number),
        request_id: Uuid::from_u128(number.into()),
        origin: "health".into(),
        intent: Intent::Send,
        channel: ChannelName::parse("email").unwrap(),
        recipient: NotifyRecipient::Person { user_id: "ada".into(), target: ADDRESS.into() },
        on_behalf_of: Some("ada".into()),
        claimant: Claimant::Tool,
        answer_key: None,
        chosen: None,
        conversation_id: Some("chat".into()),
        correlation_id: None,
        message: Some(format!("message {number}")),
        subject: Some("Subject".into()),
    }
}

pub(crate) fn reply(number: u8, message: u8) -> NotifyClaim {
    NotifyClaim { intent: Intent::Reply, answer_key: Some(key(message)), ..send(number) }
}

/// A message to an address that is nobody's.
fn listed(number: u8, target: u8) -> NotifyClaim {
    let recipient = NotifyRecipient::Listed { limit_key: key(target) };
    NotifyClaim { recipient, on_behalf_of: None, ..send(number) }
}

pub(crate) async fn claim(backend: &Backend, claim: NotifyClaim) -> NotifyClaimed {
    backend.store().claim_notify(claim).await.unwrap()
}

pub(crate) async fn mine(backend: &Backend, asked: NotifyClaim) -> i64 {
    match claim(backend, asked).await {
        NotifyClaimed::Mine { fence, .. } => fence,
        other => panic!("not ours: {other:?}"),
    }
}

pub(crate) async fn ended(backend: &Backend, asked: NotifyClaim) -> NotifyAnswer {
    match claim(backend, asked).await {
        NotifyClaimed::Ended(answer) => answer,
        other => panic!("not ended: {other:?}"),
    }
}

async fn refused(backend: &Backend, asked: NotifyClaim) -> NotifyError {
    match claim(backend, asked).await {
        NotifyClaimed::Refused(error) => error,
        other => panic!("not refused: {other:?}"),
    }
}

pub(crate) async fn start(backend: &Backend, number: u8, fence: i64) -> bool {
    backend.store().start_notify(key(number), fence, SentFrom::Here).await.unwrap()
}

pub(crate) async fn end(backend: &Backend, number: u8, fence: i64, ending: NotifyEnding) -> Option<NotifyAnswer> {
    let end = NotifyEnd {
        key: key(number),
        fence,
        ending,
        duration_ms: 12,
        further_parts: Vec::new(),
        unreachable_target: None,
    };
    backend.store().end_notify(end).await.unwrap()
}

pub(crate) fn delivered() -> NotifyEnding {
    NotifyEnding::Delivered { delivery_id: "<1@example.org>".into() }
}

pub(crate) fn failed(class: ErrorClass) -> NotifyEnding {
    NotifyEnding::failed(NotifyError::new(class, "the server is busy").retry_after(Some(7)), None)
}

/// Claims, starts and ends a request.
async fn attempt(backend: &Backend, asked: NotifyClaim, ending: NotifyEnding) -> NotifyAnswer {
    let number = asked.key[0];
    let fence = mine(backend, asked).await;
    assert!(start(backend, number, fence).await);
    end(backend, number, fence, ending).await.expect("it is the newest claim")
}

pub(crate) async fn inbox(backend: &Backend) -> Vec<InboxItem> {
    let query = InboxQuery { state: InboxState::All, item_type: None, before: None, limit: 100 };
    backend.store().inbox("ada".into(), query).await.unwrap().0
}

pub(crate) async fn ledger(backend: &Backend) -> Vec<LedgerEntry> {
    let query = LedgerQuery { limit: 100, ..LedgerQuery::default() };
    backend.store().ledger(query).await.unwrap().0
}

pub(crate) async fn decisions(backend: &Backend) -> Vec<LedgerDecision> {
    let mut entries: Vec<_> = ledger(backend).await.into_iter().map(|entry| entry.decided.decision).collect();
    entries.reverse();
    entries
}

async fn change(backend: &Backend, change: SettingsChange) -> PersonSettings {
    backend.store().change_settings(SettingsRequest { user_id: "ada".into(), change }).await.unwrap()
}

pub(crate) async fn quiet_now(backend: &Backend) {
    let part = |text: &str| Some(text.to_owned());
    let hours = QuietChange { start: part("15:00"), end: part("17:00"), timezone: part("UTC") };
    change(backend, SettingsChange { quiet_hours: Some(Some(hours)), ..SettingsChange::default() }).await;
}

fn json(answer: &NotifyAnswer) -> String {
    serde_json::to_string(answer).unwrap()
}

on_every_store! {
    async fn of_two_at_once_one_is_attempted_and_the_other_gets_its_answer(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        let store = backend.store();
        let (one, two) = tokio::join!(store.claim_notify(send(1)), store.claim_notify(send(1)));
        let (one, two) = (one.unwrap(), two.unwrap());
        let NotifyClaimed::Mine { fence, notification_id, .. } = one else { panic!("{one:?}") };
        assert_eq!(two, NotifyClaimed::InFlight);
        assert_eq!(store.notify_answer(key(1)).await.unwrap(), None);
        let mut bell = store.notify_changes();
        bell.mark_unchanged();
        assert!(start(&backend, 1, fence).await);
        assert_eq!(claim(&backend, send(1)).await, NotifyClaimed::InFlight);
        assert!(!bell.has_changed().unwrap(), "nothing has ended");
        let first = end(&backend, 1, fence, delivered()).await.unwrap();
        assert!(bell.has_changed().unwrap());
        assert_eq!((first.notification_id, first.duration_ms), (notification_id, 12));
        assert_eq!(store.notify_answer(key(1)).await.unwrap(), Some(first.clone()));
        assert_eq!(ended(&backend, send(1)).await, first);
        assert_eq!(inbox(&backend).await.len(), 1);
        assert_eq!(decisions(&backend).await, [LedgerDecision::Delivered]);
    }

    async fn a_final_answer_is_repeated_byte_for_byte_for_a_day(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        let partial = NotifyError::new(ErrorClass::InternalError, "2 of 3 parts delivered");
        let endings = [
            delivered(),
            failed(ErrorClass::ValidationError),
            NotifyEnding::failed(partial, Some("7".into())),
            NotifyEnding::failed(NotifyError::unknown_outcome("the connection was lost"), None),
        ];
        let mut first = Vec::new();
        for (number, ending) in (1..).zip(endings) {
            first.push(json(&attempt(&backend, send(number), ending).await));
        }
        backend.pass(23 * HOUR_MS);
        if backend.is_durable() {
            backend.restart().await;
        }
        for (number, first) in (1..).zip(&first) {
            assert_eq!(json(&ended(&backend, send(number)).await), *first);
        }
        assert_eq!(inbox(&backend).await.len(), 4);
        backend.pass(HOUR_MS);
        assert_eq!(backend.store().notify_answer(key(1)).await.unwrap(), None);
        let fence = mine(&backend, send(1)).await;
        assert_eq!(fence, 2, "an older attempt must not end the new one");
    }

    async fn a_failure_that_can_be_retried_releases_the_key_and_adds_no_second_inbox_item(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        for class in [ErrorClass::TargetUnavailable, ErrorClass::Timeout, ErrorClass::OverloadRejected] {
            let answer = attempt(&backend, send(1), failed(class)).await;
            assert_eq!(answer.ending, failed(class));
            assert_eq!(backend.store().notify_answer(key(1)).await.unwrap(), Some(answer), "for those who wait");
        }
        let fence = mine(&backend, send(1)).await;
        assert_eq!(fence, 4);
        assert_eq!(end(&backend, 1, 3, delivered()).await, None, "a newer claim is in flight");
        assert!(!start(&backend, 1, 3).await);
        assert!(start(&backend, 1, 4).await);
        let last = end(&backend, 1, 4, delivered()).await.unwrap();
        assert_eq!(end(&backend, 1, 3, failed(ErrorClass::Timeout)).await, Some(last), "it has ended");
        assert_eq!(inbox(&backend).await.len(), 1);
        use LedgerDecision::{Delivered, Failed};
        assert_eq!(decisions(&backend).await, [Failed, Failed, Failed, Delivered]);
    }

    async fn a_crash_between_start_and_outcome_is_unknown_and_final(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        let fence = mine(&backend, send(1)).await;
        assert!(start(&backend, 1, fence).await);
        assert_eq!(claim(&backend, send(1)).await, NotifyClaimed::InFlight, "its lease is still valid");
        match backend.is_durable() {
            // The process that made the attempt is gone: nobody will report an outcome.
            true => backend.restart().await,
            false => backend.pass(16 * 60_000),
        }
        let answer = ended(&backend, send(1)).await;
        let NotifyEnding::Failed { class, message, retryable, .. } = &answer.ending else { panic!("{answer:?}") };
        assert_eq!((*class, *retryable), (ErrorClass::Timeout, false));
        assert!(message.starts_with(UNKNOWN_OUTCOME), "{message}");
        assert_eq!(end(&backend, 1, fence, delivered()).await, Some(answer.clone()), "the outcome comes too late");
        assert_eq!(ended(&backend, send(1)).await, answer);
        assert_eq!(decisions(&backend).await, [LedgerDecision::Unknown]);
    }

    async fn leases_that_have_ended_are_settled_without_a_repeat_of_the_call(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        for number in [1, 2] {
            assert_eq!(mine(&backend, send(number)).await, 1);
        }
        assert!(start(&backend, 1, 1).await);
        backend.pass(61_000);
        backend.store().tick().await.unwrap();
        assert!(!start(&backend, 2, 1).await, "its claim has expired");
        assert_eq!(mine(&backend, send(2)).await, 2, "nothing was sent, so it may be tried again");
        assert_eq!(claim(&backend, send(1)).await, NotifyClaimed::InFlight);
        backend.pass(16 * 60_000);
        backend.store().tick().await.unwrap();
        let (failed, unknown) = (LedgerDecision::Failed, LedgerDecision::Unknown);
        assert_eq!(decisions(&backend).await, [failed, failed, unknown], "both claims of the second, then the first");
        assert!(backend.store().notify_answer(key(1)).await.unwrap().is_some());
        assert_eq!(inbox(&backend).await.len(), 2);
    }

    async fn a_claim_whose_caller_stopped_is_in_the_ledger_even_if_a_repeat_takes_it_over(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        let first = mine(&backend, send(1)).await;
        backend.pass(61_000);
        let second = mine(&backend, send(1)).await;
        assert_eq!(end(&backend, 1, first, failed(ErrorClass::OverloadRejected)).await, None, "it is too late");
        assert!(start(&backend, 1, second).await);
        end(&backend, 1, second, delivered()).await.unwrap();
        assert_eq!(decisions(&backend).await, [LedgerDecision::Failed, LedgerDecision::Delivered]);
        assert_eq!(inbox(&backend).await.len(), 1);
    }

    async fn only_a_confirmed_target_that_is_switched_on_and_not_muted_is_used(backend: Backend) {
        let none = refused(&backend, send(1)).await;
        assert_eq!((none.class, none.retryable), (ErrorClass::ValidationError, false));
        mail_to(&backend, ADDRESS).await;
        let other = NotifyRecipient::Person { user_id: "ada".into(), target: "eve@example.org".into() };
        let changed = refused(&backend, NotifyClaim { recipient: other, ..send(1) }).await;
        assert!(changed.message.contains("has changed"), "{changed:?}");
        let muted = SettingsChange { muted_origins: Some(vec!["health".into()]), ..SettingsChange::default() };
        change(&backend, muted).await;
        assert_eq!(refused(&backend, send(1)).await.message, "The recipient has muted 'health'");
        assert_eq!(mine(&backend, reply(2, 200)).await, 1, "a reply ignores mutes");
        off(&backend).await;
        assert_eq!(refused(&backend, send(1)).await.message, "The recipient has switched email off");
        assert_eq!(refused(&backend, reply(3, 200)).await.message, "The recipient has switched email off");
        assert_eq!(inbox(&backend).await.len(), 0);
        assert_eq!(decisions(&backend).await, [LedgerDecision::Refused; 5]);
        let reasons: Vec<_> = ledger(&backend).await.into_iter().filter_map(|entry| entry.decided.reason).collect();
        assert!(reasons.iter().all(|reason| !reason.contains('@') && !reason.contains("message 1")), "{reasons:?}");
    }

    async fn quiet_hours_defer_a_send_and_nothing_else(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        quiet_now(&backend).await;
        let answer = ended(&backend, send(1)).await;
        let NotifyEnding::Deferred { deliver_at, .. } = answer.ending else { panic!("{answer:?}") };
        assert_eq!(deliver_at.clock(), "17:00:00");
        assert_eq!(json(&ended(&backend, send(1)).await), json(&answer));
        let items = inbox(&backend).await;
        assert_eq!(items.len(), 1);
        assert_eq!((items[0].message.as_str(), items[0].title.as_deref()), ("message 1", Some("Subject")));
        assert_eq!(Some(items[0].id), answer.notification_id);
        let waiting = backend.store().deliveries(Some("ada".into()), Some(DeliveryState::Waiting), None, 10).await;
        let waiting = waiting.unwrap().0;
        assert_eq!(waiting.len(), 1, "{waiting:?}");
        assert_eq!((waiting[0].not_before, waiting[0].target.as_str()), (deliver_at, ADDRESS));
        assert_eq!(mine(&backend, reply(2, 200)).await, 1, "a reply is never held");
        let refused = refused(&backend, NotifyClaim { claimant: Claimant::Messenger, ..send(3) }).await;
        let until = deliver_at.millis_since(backend.now()) / 1000;
        assert_eq!((refused.class, refused.retry_after_seconds), (ErrorClass::OverloadRejected, Some(until)));
        assert_eq!(decisions(&backend).await, [LedgerDecision::Deferred, LedgerDecision::Refused]);
    }

    async fn a_send_adds_an_inbox_item_and_no_delivery_within_the_hourly_limit(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        for number in 1..=5 {
            attempt(&backend, send(number), delivered()).await;
            attempt(&backend, reply(100 + number, 200), delivered()).await;
        }
        let items = inbox(&backend).await;
        assert_eq!(items.len(), 5, "replies add none");
        assert!(items.iter().all(|item| item.origin == "health" && item.conversation_id.as_deref() == Some("chat")));
        let all = backend.store().deliveries(Some("ada".into()), Some(DeliveryState::Waiting), None, 10).await;
        assert_eq!(all.unwrap().0.len(), 0);
        backend.pass(1_000);
        let limited = refused(&backend, send(6)).await;
        assert_eq!((limited.class, limited.retryable), (ErrorClass::OverloadRejected, true));
        assert_eq!(limited.retry_after_seconds, Some(3_599));
        backend.pass(HOUR_MS - 1_000);
        assert_eq!(mine(&backend, send(6)).await, 1);
    }

    async fn a_channel_that_cannot_reach_the_person_is_switched_off_and_the_person_is_told(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        let fence = mine(&backend, send(1)).await;
        assert!(start(&backend, 1, fence).await);
        let (ending, unreachable_target) = (failed(ErrorClass::ValidationError), Some(ADDRESS.to_owned()));
        let end = NotifyEnd { key: key(1), fence, ending, duration_ms: 1, further_parts: Vec::new(), unreachable_target };
        backend.store().end_notify(end).await.unwrap();
        assert!(!backend.store().settings("ada".into()).await.unwrap().channel("email").enabled);
        let items = inbox(&backend).await;
        assert!(items[0].message.contains("is now switched off in your settings"), "{items:?}");
        assert_eq!(refused(&backend, send(2)).await.message, "The recipient has switched email off");
    }

    async fn another_persons_conversation_is_not_shown_to_the_recipient(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        mine(&backend, NotifyClaim { on_behalf_of: Some("bob".into()), ..send(1) }).await;
        assert_eq!(inbox(&backend).await[0].conversation_id, None);
    }

    async fn a_target_that_is_nobodys_has_the_hourly_limit_of_a_person(backend: Backend) {
        for number in 1..=5 {
            attempt(&backend, listed(number, 200), delivered()).await;
            backend.pass(1_000);
        }
        let limited = refused(&backend, listed(6, 200)).await;
        assert_eq!((limited.class, limited.retry_after_seconds), (ErrorClass::OverloadRejected, Some(3_595)));
        assert_eq!(mine(&backend, listed(7, 201)).await, 1, "each target has its own");
        backend.pass(HOUR_MS - 5_000);
        let fence = mine(&backend, listed(6, 200)).await;
        assert_eq!(fence, 1);
        assert!(matches!(claim(&backend, listed(8, 200)).await, NotifyClaimed::Refused(_)));
        let entries = ledger(&backend).await;
        assert!(entries.iter().all(|entry| entry.decided.user_id.is_none() && entry.decided.notification_id.is_none()));
    }

    async fn targets_at_once_cannot_exceed_their_limit(backend: Backend) {
        let mut claims = tokio::task::JoinSet::new();
        for number in 1..=20 {
            let store = backend.store();
            claims.spawn(async move { store.claim_notify(listed(number, 200)).await.unwrap() });
        }
        let claimed = claims.join_all().await;
        let mine = claimed.iter().filter(|claimed| matches!(claimed, NotifyClaimed::Mine { .. })).count();
        assert_eq!(mine, 5);
    }

    async fn retries_of_one_answer_count_once(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        for _ in 1..=25 {
            attempt(&backend, reply(1, 200), failed(ErrorClass::TargetUnavailable)).await;
        }
        assert_eq!(mine(&backend, reply(2, 200)).await, 1, "19 answers are left");
    }

    async fn a_message_has_at_most_twenty_answers(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        for number in 1..=20 {
            mine(&backend, reply(number, 200)).await;
        }
        if backend.is_durable() {
            backend.restart().await;
        }
        let over = refused(&backend, NotifyClaim { intent: Intent::React, ..reply(21, 200) }).await;
        assert!(over.message.starts_with("This message has had 20 replies and reactions"), "{over:?}");
        assert_eq!(mine(&backend, reply(21, 201)).await, 1, "another message has its own");
    }

    async fn the_people_with_a_target_are_found_by_it(backend: Backend) {
        let store = backend.store();
        let found = async |target: &str| store.people_with_target("email".into(), target.into()).await.unwrap();
        assert_eq!(found(ADDRESS).await, [""; 0]);
        mail_to(&backend, "Ada@Example.org").await;
        assert_eq!(found(" ada@example.ORG ").await, ["ada"]);
        assert_eq!(store.people_with_target("telegram".into(), ADDRESS.into()).await.unwrap(), [""; 0]);
        mail_to(&backend, "countess@example.org").await;
        assert_eq!((found(ADDRESS).await, found("countess@example.org").await), (vec![], vec!["ada".to_owned()]));
    }

    async fn requests_are_erased_with_their_recipient_even_during_an_attempt(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        attempt(&backend, send(1), delivered()).await;
        let fence = mine(&backend, send(2)).await;
        assert!(start(&backend, 2, fence).await);
        mine(&backend, NotifyClaim { on_behalf_of: Some("ada".into()), ..listed(3, 200) }).await;
        backend.store().erase_user("ada".into()).await.unwrap();
        let answer = end(&backend, 2, fence, delivered()).await;
        assert_eq!(answer.map(|answer| answer.ending), Some(delivered()), "the caller gets the truth");
        for number in 1..=3 {
            assert_eq!(backend.store().notify_answer(key(number)).await.unwrap(), None);
        }
        assert_eq!(ledger(&backend).await, []);
        assert_eq!(backend.store().people_with_target("email".into(), ADDRESS.into()).await.unwrap(), [""; 0]);
        let sums = backend.store().ledger_sums(None, None, backend.now()).await.unwrap();
        assert_eq!(sums[0].count(LedgerDecision::Delivered), 1, "counts name no person");
    }

    async fn old_requests_and_decisions_are_deleted(backend: Backend) {
        mail_to(&backend, ADDRESS).await;
        attempt(&backend, send(1), delivered()).await;
        mine(&backend, reply(2, 200)).await;
        backend.pass(24 * HOUR_MS + 1);
        let day = RetentionCutoffs::before(bellwire_core::Time::ZERO);
        assert!(backend.store().prune(day, 1_000).await.unwrap() >= 1);
        assert_eq!(backend.store().notify_answer(key(1)).await.unwrap(), None);
        assert_eq!(ledger(&backend).await.len(), 1, "the ledger is kept for 90 days");
        backend.pass(90 * 24 * HOUR_MS);
        backend.store().prune(day, 1_000).await.unwrap();
        assert_eq!(ledger(&backend).await, []);
        let sums = backend.store().ledger_sums(None, None, bellwire_core::Time::ZERO).await.unwrap();
        assert_eq!(sums, []);
    }
}

async fn off(backend: &Backend) {
    let change_off = ChannelChange { enabled: Some(false), ..ChannelChange::default() };
    change(backend, SettingsChange::of_channel(ChannelName::parse("email").unwrap(), change_off)).await;
}

//! Messages with their own text, on one channel: held by quiet hours, sent alone, and checked again when they are due.

use std::collections::{BTreeMap, BTreeSet};

use bellwire_core::InjectionPoint::TurnStart;
use bellwire_core::person::{ChannelChange, MESSAGE_MAX, QuietChange, SettingsChange};
use bellwire_store::{
    AttemptOutcome, Caller, ChannelRules, DeliveryState, DirectDraft, DirectMessage, DirectResult, Hold, InboxItemKind,
    InboxState, PeopleRules, Purpose, RetentionCutoffs,
};

use crate::backends::{Backend, email, on_every_store, with_email};
use crate::notify::{inbox, message, told};
use crate::outbox::{claim, finish, mail_to, start};
use crate::settings::change;

const ORIGIN: &str = "health";

fn text() -> String {
    format!("{} the end", "word ".repeat(200))
}

fn draft(text: &str) -> DirectDraft {
    DirectDraft {
        caller: Caller::user("ada"),
        user_id: "ada".into(),
        conversation_id: Some("chat".into()),
        correlation_id: None,
        channel: email(),
        message: DirectMessage {
            origin: ORIGIN.into(),
            subject: Some("Results".into()),
            message: text.to_owned(),
            needs_allowance: false,
        },
        idempotency_key: None,
    }
}

async fn plan(backend: &Backend, draft: DirectDraft) -> DirectResult {
    backend.store().plan_direct(draft).await.unwrap()
}

/// Quiet hours from 15:00 to 16:00; the tests begin at 15:30.
async fn quiet(backend: &Backend) {
    let part = |text: &str| Some(text.to_owned());
    let hours = QuietChange { start: part("15:00"), end: part("16:00"), timezone: part("UTC") };
    change(backend, SettingsChange { quiet_hours: Some(Some(hours)), ..SettingsChange::default() }).await.unwrap();
}

fn half_an_hour() -> i64 {
    30 * 60_000
}

on_every_store! {
    async fn it_waits_for_the_end_of_quiet_hours_and_is_sent_alone_and_whole(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        quiet(&backend).await;
        told(&backend, message("news")).await;
        let DirectResult::Planned { id, deliver_at } = plan(&backend, draft(&text())).await else { panic!("planned") };
        told(&backend, message("more news")).await;
        let waiting = backend.store().deliveries(Some("ada".into()), Some(DeliveryState::Waiting), None, 10).await.unwrap().0;
        let direct = waiting.iter().find(|one| one.content.notification_id() == Some(id)).unwrap();
        assert_eq!((direct.held_by, direct.not_before), (Some(Hold::QuietHours), deliver_at));
        let item = inbox(&backend, InboxState::All).await.into_iter().find(|item| item.id == id).unwrap();
        assert_eq!((item.kind, item.origin.as_str(), item.title.as_deref()), (InboxItemKind::Message, ORIGIN, Some("Results")));
        assert_eq!(item.message.chars().count(), MESSAGE_MAX, "the inbox shows the beginning");
        assert!(item.message.ends_with('…') && text().starts_with(item.message.trim_end_matches('…')));
        assert!(backend.store().claim(email(), 10).await.unwrap().is_empty());
        if backend.is_durable() {
            backend.restart().await;
        }
        backend.pass(half_an_hour());
        let claims = backend.store().claim(email(), 10).await.unwrap();
        assert_eq!(claims.len(), 2, "a digest and the message: {claims:?}");
        let direct = claims.iter().find(|claim| matches!(claim.purpose, Purpose::Direct(..))).unwrap();
        let Purpose::Direct(item, direct_message) = &direct.purpose else { panic!("{direct:?}") };
        assert_eq!((item.id, direct_message), (id, &draft(&text()).message));
        for other in claims.iter().filter(|claim| claim.message_id != direct.message_id) {
            assert!(start(&backend, other).await && finish(&backend, other, AttemptOutcome::Sent).await);
        }
        // A retry sends the same message again.
        assert!(start(&backend, direct).await);
        let later = AttemptOutcome::TryAgain { reason: "busy".into(), retry_after_ms: Some(1) };
        assert!(finish(&backend, direct, later).await);
        backend.pass(600_000);
        let again = claim(&backend).await;
        assert_eq!((again.message_id, &again.purpose), (direct.message_id, &direct.purpose));
    }

    async fn two_messages_never_share_one(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        for text in ["one", "two"] {
            plan(&backend, draft(text)).await;
        }
        let claims = backend.store().claim(email(), 10).await.unwrap();
        assert_eq!(claims.len(), 2, "{claims:?}");
        assert_ne!(claims[0].message_id, claims[1].message_id);
    }

    async fn it_counts_against_the_hourly_limit_and_a_repeat_gets_the_first_answer(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        let key = bellwire_store::IdempotencyKey {
            token_id: "t".into(),
            route: "r".into(),
            key: "k".into(),
            content: [7; 32],
        };
        let keyed = || DirectDraft { idempotency_key: Some(key.clone()), ..draft("one") };
        let first = plan(&backend, keyed()).await;
        assert!(matches!(first, DirectResult::Planned { .. }));
        assert_eq!(plan(&backend, keyed()).await, first);
        for number in 2..=5 {
            plan(&backend, draft(&number.to_string())).await;
        }
        assert_eq!(plan(&backend, draft("six")).await, DirectResult::Limited { retry_after_seconds: 3_600 });
        assert_eq!(inbox(&backend, InboxState::All).await.len(), 5);
    }

    async fn it_is_refused_where_the_person_does_not_want_it(backend: Backend) {
        let off = DirectResult::Refused { reason: "the channel is off, or its address is not confirmed".into() };
        assert_eq!(plan(&backend, draft("x")).await, off);
        mail_to(&backend, "ada@example.org").await;
        let muted = SettingsChange { muted_origins: Some(vec![ORIGIN.into()]), ..SettingsChange::default() };
        change(&backend, muted).await.unwrap();
        assert_eq!(plan(&backend, draft("x")).await, DirectResult::Refused { reason: "the origin is muted".into() });
        assert!(inbox(&backend, InboxState::All).await.is_empty(), "a refusal leaves nothing");
    }

    async fn what_is_no_longer_wanted_when_it_is_due_is_skipped_with_the_reason(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        let muted = |origins: &[&str]| SettingsChange {
            muted_origins: Some(origins.iter().map(|origin| (*origin).to_owned()).collect()),
            ..SettingsChange::default()
        };
        let switched = |on: bool| {
            SettingsChange::of_channel(email(), ChannelChange { enabled: Some(on), target: None })
        };
        for case in ["read", "muted", "off"] {
            let DirectResult::Planned { id, .. } = plan(&backend, draft(case)).await else { panic!("planned") };
            let (undo, reason) = match case {
                "read" => {
                    backend.store().mark("ada".into(), id, true).await.unwrap();
                    (SettingsChange::default(), "it was read meanwhile")
                }
                "muted" => {
                    change(&backend, muted(&[ORIGIN])).await.unwrap();
                    (muted(&[]), "the origin is muted")
                }
                _ => {
                    change(&backend, switched(false)).await.unwrap();
                    (switched(true), "the channel is switched off")
                }
            };
            assert!(backend.store().claim(email(), 10).await.unwrap().is_empty(), "{case}");
            let newest = backend.store().deliveries(Some("ada".into()), None, None, 1).await.unwrap().0.remove(0);
            assert_eq!((newest.state, newest.reason.as_deref()), (DeliveryState::Skipped, Some(reason)), "{case}");
            change(&backend, undo).await.unwrap();
        }
    }

    async fn a_failure_is_told_to_the_person_and_to_the_conversation(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        plan(&backend, draft("the beginning of a long story")).await;
        let attempt = claim(&backend).await;
        assert!(start(&backend, &attempt).await);
        assert!(finish(&backend, &attempt, AttemptOutcome::Refused { reason: "550 no".into() }).await);
        let note = inbox(&backend, InboxState::All).await.into_iter().find(|item| item.kind == InboxItemKind::Note);
        assert!(note.is_some_and(|note| note.message.contains("could not be delivered")));
        let block = backend.inject(TurnStart, "1").await.block;
        assert!(block.contains("delivery_failed: email (the beginning of a long story) - 550 no"), "{block}");
    }

    async fn it_can_be_cancelled(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        quiet(&backend).await;
        plan(&backend, draft("x")).await;
        let waiting = backend.store().deliveries(Some("ada".into()), None, None, 1).await.unwrap().0.remove(0);
        let cancelled = backend.store().cancel_delivery(Some("ada".into()), waiting.id, None).await.unwrap();
        assert_eq!(cancelled.state, DeliveryState::Cancelled);
        backend.pass(half_an_hour());
        assert!(backend.store().claim(email(), 10).await.unwrap().is_empty());
        // It can be sent after all for as long as it is kept.
        backend.store().retry_delivery(Some("ada".into()), waiting.id, None).await.unwrap();
        assert!(matches!(claim(&backend).await.purpose, Purpose::Direct(..)));
    }
}

#[tokio::test]
async fn a_target_that_the_operator_no_longer_allows_gets_nothing() {
    let listed = BTreeMap::from([(ORIGIN.to_owned(), BTreeSet::from([(email(), "ada@example.org".to_owned())]))]);
    for (allowed_targets, is_sent) in [(listed, true), (BTreeMap::new(), false)] {
        let rules = PeopleRules { allowed_targets, ..with_email() };
        for backend in [Backend::memory_with(rules.clone()).await, Backend::sqlite_with(rules.clone()).await] {
            mail_to(&backend, "ada@example.org").await;
            let message = DirectMessage { needs_allowance: true, ..draft("x").message };
            plan(&backend, DirectDraft { message, ..draft("x") }).await;
            assert_eq!(backend.store().claim(email(), 10).await.unwrap().len(), usize::from(is_sent));
            let newest = backend.store().deliveries(Some("ada".into()), None, None, 1).await.unwrap().0.remove(0);
            let reason = (!is_sent).then_some("the address is no longer allowed to the origin");
            assert_eq!(newest.reason.as_deref(), reason);
        }
    }
}

#[tokio::test]
async fn no_delivery_is_planned_on_another_channel() {
    let owl = bellwire_core::person::ChannelName::parse("owl").unwrap();
    let rules = with_email().with_channel(owl.clone(), ChannelRules { sends_codes: true, ..ChannelRules::new("owl") });
    for backend in [Backend::memory_with(rules.clone()).await, Backend::sqlite_with(rules.clone()).await] {
        mail_to(&backend, "ada@example.org").await;
        let tree = ChannelChange { enabled: Some(true), target: Some(Some("a tree".into())) };
        change(&backend, SettingsChange::of_channel(owl.clone(), tree)).await.unwrap();
        let code = backend.store().claim(owl.clone(), 1).await.unwrap().remove(0);
        assert!(start(&backend, &code).await && finish(&backend, &code, AttemptOutcome::Sent).await);
        backend.store().confirm_target("ada".into(), owl.clone(), b"a hash".to_vec(), None).await.unwrap();
        plan(&backend, draft("x")).await;
        assert!(backend.store().claim(owl.clone(), 10).await.unwrap().is_empty());
        assert_eq!(backend.store().claim(email(), 10).await.unwrap().len(), 1);
    }
}

#[tokio::test]
async fn the_text_is_deleted_with_its_delivery() {
    let backend = Backend::sqlite().await;
    mail_to(&backend, "ada@example.org").await;
    plan(&backend, draft("a rare text in the attic")).await;
    let attempt = claim(&backend).await;
    assert!(start(&backend, &attempt).await && finish(&backend, &attempt, AttemptOutcome::Sent).await);
    backend.store().read_all("ada".into(), None).await.unwrap();
    backend.pass(1_000);
    while backend.store().prune(RetentionCutoffs::before(backend.now()), 100).await.unwrap() > 0 {}
    backend.store().erase_user("nobody".into()).await.ok();
    let bytes = std::fs::read(backend.path()).unwrap();
    let found = bytes.windows(24).any(|window| window == b"a rare text in the attic");
    assert!(!found, "retention left the text");
}

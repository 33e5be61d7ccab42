//! Several channels: each is planned, grouped and claimed on its own.

use std::collections::BTreeMap;

use bellwire_core::InjectionPoint::TurnStart;
use bellwire_core::person::{ChannelChange, ChannelName, ChannelSettings, QuietChange, SettingsChange};
use bellwire_store::{
    AttemptEnd, AttemptOutcome, AttemptStart, ChannelRules, Claim, Delivery, DeliveryState, Grouping, InboxItemKind,
    InboxState, NotificationDraft, PeopleRules, Purpose, SettingsRequest, WaitingDeliveries,
};
use serde_json::json;
use sqlx::ConnectOptions as _;
use sqlx::Connection as _;
use sqlx::sqlite::SqliteConnectOptions;

use crate::backends::{Backend, email, with_email};
use crate::notify::{inbox, message, toast, told};

pub(crate) fn pigeon() -> ChannelName {
    ChannelName::parse("pigeon").unwrap()
}

/// Stores with two channels; pigeons carry one conversation at a time.
pub(crate) async fn stores() -> [Backend; 2] {
    let rules = PeopleRules { notifications_per_hour: 10_000, ..with_email() };
    let by_conversation = ChannelRules { grouping: Grouping::ByConversation, ..ChannelRules::new("Pigeon") };
    let rules = rules.with_channel(pigeon(), by_conversation);
    [Backend::memory_with(rules.clone()).await, Backend::sqlite_with(rules).await]
}

pub(crate) async fn change(backend: &Backend, user: &str, change: SettingsChange) {
    backend.store().change_settings(SettingsRequest { user_id: user.into(), change }).await.unwrap();
}

pub(crate) async fn set_target(backend: &Backend, user: &str, channel: ChannelName, target: &str) {
    let wanted = ChannelChange { enabled: Some(true), target: Some(Some(target.to_owned())) };
    change(backend, user, SettingsChange::of_channel(channel, wanted)).await;
}

/// This person has proven that the target is theirs.
pub(crate) async fn reach(backend: &Backend, user: &str, channel: ChannelName, target: &str) {
    set_target(backend, user, channel.clone(), target).await;
    let claim = backend.store().claim(channel.clone(), 1).await.unwrap().remove(0);
    assert_eq!((claim.user_id.as_str(), claim.target.as_str(), &claim.purpose), (user, target, &Purpose::Confirmation));
    send(backend, &claim).await;
    let settings = backend.store().confirm_target(user.into(), channel.clone(), b"code".to_vec(), None).await.unwrap();
    assert_eq!(settings.usable_target(channel.as_str()), Some(target));
}

pub(crate) async fn start(backend: &Backend, claim: &Claim) {
    let code = (claim.purpose == Purpose::Confirmation).then(|| b"code".to_vec());
    let start = AttemptStart { message_id: claim.message_id, fence: claim.fence, code };
    assert!(backend.store().start(start).await.unwrap());
}

pub(crate) async fn end(backend: &Backend, claim: &Claim, outcome: AttemptOutcome) {
    let end = AttemptEnd { message_id: claim.message_id, fence: claim.fence, outcome, jitter: 0 };
    assert!(backend.store().finish(end).await.unwrap());
}

async fn send(backend: &Backend, claim: &Claim) {
    start(backend, claim).await;
    end(backend, claim, AttemptOutcome::Sent).await;
}

fn texts(claim: &Claim) -> Vec<&str> {
    match &claim.purpose {
        Purpose::Notifications(items) => items.iter().map(|item| item.message.as_str()).collect(),
        other => panic!("{other:?}"),
    }
}

async fn deliveries(backend: &Backend) -> Vec<Delivery> {
    let all = backend.store().deliveries(Some("ada".into()), None, None, 100).await.unwrap().0;
    all.into_iter().filter(|one| one.content.notification_id().is_some()).collect()
}

fn of_user(user: &str, text: &str) -> NotificationDraft {
    NotificationDraft { caller: bellwire_store::Caller::user(user), user_id: user.into(), ..message(text) }
}

#[tokio::test]
async fn a_notification_is_planned_once_on_each_channel_that_is_on_and_verified() {
    for backend in stores().await {
        reach(&backend, "ada", email(), "ada@example.org").await;
        set_target(&backend, "ada", pigeon(), "roof 1").await;
        told(&backend, message("one")).await;
        assert_eq!(deliveries(&backend).await.len(), 1, "the roof is not verified");
        let code = backend.store().claim(pigeon(), 1).await.unwrap().remove(0);
        send(&backend, &code).await;
        let wrong_channel = backend.store().confirm_target("ada".into(), email(), b"code".to_vec(), None).await;
        assert!(wrong_channel.is_err(), "the code of one channel verifies no other");
        backend.store().confirm_target("ada".into(), pigeon(), b"code".to_vec(), None).await.unwrap();
        told(&backend, message("two")).await;
        let planned = deliveries(&backend).await;
        let mut planned: Vec<_> = planned.iter().map(|one| (one.channel.as_str(), one.target.as_str())).collect();
        planned.sort_unstable();
        let expected = [("email", "ada@example.org"), ("email", "ada@example.org"), ("pigeon", "roof 1")];
        assert_eq!(planned, expected);
        let off = ChannelChange { enabled: Some(false), target: None };
        change(&backend, "ada", SettingsChange::of_channel(email(), off)).await;
        told(&backend, message("three")).await;
        assert_eq!(deliveries(&backend).await.len(), 4, "only the pigeon carries it");
    }
}

#[tokio::test]
async fn a_backlog_and_an_outage_of_one_channel_do_not_delay_another() {
    for backend in stores().await {
        for user in ["ada", "bob"] {
            reach(&backend, user, email(), &format!("{user}@example.org")).await;
            reach(&backend, user, pigeon(), &format!("roof of {user}")).await;
        }
        for number in 0..300 {
            told(&backend, message(&format!("{number:03}"))).await;
        }
        let waiting = backend.store().outbox().await.unwrap();
        let channels: Vec<_> = waiting.iter().map(|one| (one.channel.as_str(), one.count)).collect();
        assert_eq!(channels, [("email", 300), ("pigeon", 300)]);
        // Mail hangs: Ada's message is claimed and never ends.
        let hanging = backend.store().claim(email(), 1).await.unwrap().remove(0);
        start(&backend, &hanging).await;
        told(&backend, of_user("bob", "for Bob")).await;
        // Ada has a message in flight, but not by pigeon: she is not put behind Bob there.
        let first = backend.store().claim(pigeon(), 1).await.unwrap().remove(0);
        assert_eq!((first.user_id.as_str(), texts(&first).len()), ("ada", 300));
        send(&backend, &first).await;
        let second = backend.store().claim(pigeon(), 10).await.unwrap();
        assert_eq!(second.iter().map(|one| one.user_id.as_str()).collect::<Vec<_>>(), ["bob"]);
        assert!(second.iter().all(|claim| claim.channel == pigeon()));
        let mail = backend.store().claim(email(), 10).await.unwrap();
        assert_eq!(mail.iter().map(|one| one.user_id.as_str()).collect::<Vec<_>>(), ["bob"]);
    }
}

#[tokio::test]
async fn a_changed_target_never_gets_what_was_planned_for_the_old_one() {
    for backend in stores().await {
        reach(&backend, "ada", email(), "old@example.org").await;
        told(&backend, message("for the old address")).await;
        let tried = backend.store().claim(email(), 1).await.unwrap().remove(0);
        start(&backend, &tried).await;
        end(&backend, &tried, AttemptOutcome::TryAgain { reason: "busy".into(), retry_after_ms: Some(1) }).await;
        told(&backend, message("also for the old address")).await;
        reach(&backend, "ada", email(), "new@example.org").await;
        told(&backend, message("for the new address")).await;
        backend.pass(600_000);
        let claims = backend.store().claim(email(), 10).await.unwrap();
        let [claim] = claims.as_slice() else { panic!("{claims:?}") };
        assert_eq!((claim.target.as_str(), texts(claim)), ("new@example.org", vec!["for the new address"]));
        let skipped = deliveries(&backend).await.into_iter().filter(|one| one.state == DeliveryState::Skipped);
        let skipped: Vec<_> = skipped.map(|one| (one.target, one.reason.unwrap_or_default())).collect();
        let old = ("old@example.org".to_owned(), "the address has changed".to_owned());
        assert_eq!(skipped, [old.clone(), old]);
    }
}

#[tokio::test]
async fn a_channel_that_groups_by_conversation_sends_one_message_for_each_and_a_toast_with_buttons_alone() {
    for backend in stores().await {
        reach(&backend, "ada", pigeon(), "roof 1").await;
        let night = |text: &str| Some(text.to_owned());
        let quiet = QuietChange { start: night("15:00"), end: night("16:00"), timezone: night("UTC") };
        change(&backend, "ada", SettingsChange { quiet_hours: Some(Some(quiet)), ..SettingsChange::default() }).await;
        let of = |conversation: &str, draft: NotificationDraft| NotificationDraft {
            conversation_id: Some(conversation.to_owned()),
            ..draft
        };
        let buttons = json!({
            "message": "choose", "severity": "info", "actions": [{"action": "prompt", "label": "Yes", "prompt": "yes"}],
        });
        told(&backend, of("chat", message("1"))).await;
        told(&backend, of("other", message("2"))).await;
        told(&backend, of("chat", toast(buttons))).await;
        told(&backend, of("chat", message("3"))).await;
        assert!(backend.store().claim(pigeon(), 10).await.unwrap().is_empty(), "quiet hours hold it");
        change(&backend, "ada", SettingsChange { quiet_hours: Some(None), ..SettingsChange::default() }).await;
        let one = backend.store().claim(pigeon(), 1).await.unwrap();
        assert_eq!(one.iter().map(texts).collect::<Vec<_>>(), [["1", "3"]], "no more than asked for");
        let rest = backend.store().claim(pigeon(), 10).await.unwrap();
        assert_eq!(rest.iter().map(texts).collect::<Vec<_>>(), [["2"], ["choose"]]);
        assert!(rest[0].message_id != rest[1].message_id);
        // A retry sends the same message again.
        start(&backend, &one[0]).await;
        end(&backend, &one[0], AttemptOutcome::TryAgain { reason: "rain".into(), retry_after_ms: Some(1) }).await;
        backend.pass(60_000 * 10);
        let again = backend.store().claim(pigeon(), 1).await.unwrap().remove(0);
        assert_eq!((again.message_id, texts(&again)), (one[0].message_id, vec!["1", "3"]));
    }
}

#[tokio::test]
async fn an_unreachable_target_switches_its_channel_off_and_the_person_and_the_agent_are_told() {
    for backend in stores().await {
        reach(&backend, "ada", email(), "ada@example.org").await;
        reach(&backend, "ada", pigeon(), "roof 1").await;
        told(&backend, message("news")).await;
        let claim = backend.store().claim(email(), 1).await.unwrap().remove(0);
        start(&backend, &claim).await;
        told(&backend, message("more news")).await;
        end(&backend, &claim, AttemptOutcome::Unreachable { reason: "no such mailbox".into() }).await;
        let settings = backend.store().settings("ada".into()).await.unwrap();
        let off = ChannelSettings { enabled: false, target: Some("ada@example.org".into()), verified: true };
        assert_eq!(settings.channel("email"), off);
        assert_eq!(settings.usable_target("pigeon"), Some("roof 1"), "the other channel stays on");
        let note = inbox(&backend, InboxState::All).await.into_iter().find(|item| item.kind == InboxItemKind::Note);
        let expected = "A message to you by email could not be delivered, and email is now switched off in your \
                        settings (ada@example.org): no such mailbox";
        assert_eq!(note.map(|note| note.message).as_deref(), Some(expected));
        let block = backend.inject(TurnStart, "1").await.block;
        assert!(block.contains("delivery_failed: email") && block.contains("no such mailbox"), "{block}");
        assert!(!block.contains("ada@example.org"), "an agent sees no address: {block}");
        // What already waited is not sent, and nothing more is planned there.
        assert!(backend.store().claim(email(), 10).await.unwrap().is_empty());
        told(&backend, message("even more")).await;
        let mails = deliveries(&backend).await.into_iter().filter(|one| one.channel == email());
        let states: Vec<_> = mails.map(|one| (one.state, one.reason.unwrap_or_default())).collect();
        let expected = [
            (DeliveryState::Skipped, "the channel is switched off".to_owned()),
            (DeliveryState::Failed, "no such mailbox".to_owned()),
        ];
        assert_eq!(states, expected);
    }
}

#[tokio::test]
async fn a_target_that_was_changed_meanwhile_stays_on_when_the_old_one_is_unreachable() {
    for backend in stores().await {
        reach(&backend, "ada", email(), "old@example.org").await;
        told(&backend, message("news")).await;
        let claim = backend.store().claim(email(), 1).await.unwrap().remove(0);
        start(&backend, &claim).await;
        reach(&backend, "ada", email(), "new@example.org").await;
        end(&backend, &claim, AttemptOutcome::Unreachable { reason: "no such mailbox".into() }).await;
        let settings = backend.store().settings("ada".into()).await.unwrap();
        assert_eq!(settings.usable_target("email"), Some("new@example.org"));
        let note = inbox(&backend, InboxState::All).await.into_iter().find(|item| item.kind == InboxItemKind::Note);
        let expected = "A message to you by email could not be delivered (old@example.org): no such mailbox";
        assert_eq!(note.map(|note| note.message).as_deref(), Some(expected));
    }
}

#[tokio::test]
async fn nothing_is_planned_or_claimed_on_a_channel_that_is_not_configured() {
    let owl = ChannelName::parse("owl").unwrap();
    for backend in stores().await {
        set_target(&backend, "ada", owl.clone(), "a tree").await;
        told(&backend, message("news")).await;
        assert!(backend.store().claim(owl.clone(), 10).await.unwrap().is_empty(), "not even a code");
        assert_eq!(backend.store().outbox().await.unwrap(), Vec::<WaitingDeliveries>::new());
    }
}

#[tokio::test]
async fn settings_and_codes_that_an_older_version_stored_are_still_there() {
    let mut backend = Backend::sqlite().await;
    crate::settings::change(&backend, SettingsChange { muted_origins: Some(vec!["x".into()]), ..Default::default() })
        .await
        .unwrap();
    backend.close().await;
    let older = r#"{"disabled_subscribers":[],"muted_origins":["butler"],
        "email":{"enabled":true,"address":"ada@example.org","confirmed":true},
        "telegram":{"enabled":false,"chat_id":77,"paired":true},"quiet_hours":null,"toasts":{"enabled":true}}"#;
    let mut file = SqliteConnectOptions::new().filename(backend.path()).connect().await.unwrap();
    sqlx::query("UPDATE user_settings SET settings_json = $1").bind(older).execute(&mut file).await.unwrap();
    file.close().await.unwrap();
    backend.open().await;
    let settings = backend.store().settings("ada".into()).await.unwrap();
    let channel = |enabled, target: &str| ChannelSettings { enabled, target: Some(target.into()), verified: true };
    let telegram = ChannelName::parse("telegram").unwrap();
    let expected = BTreeMap::from([(email(), channel(true, "ada@example.org")), (telegram, channel(false, "77"))]);
    assert_eq!((settings.channels, settings.muted_origins), (expected, vec!["butler".to_owned()]));
    // What is changed is stored in the new form, with everything else.
    let unmuted = SettingsChange { muted_origins: Some(Vec::new()), ..SettingsChange::default() };
    crate::settings::change(&backend, unmuted).await.unwrap();
    backend.restart().await;
    told(&backend, message("news")).await;
    assert_eq!(deliveries(&backend).await[0].target, "ada@example.org");
}

//! Deliveries: planned with the notification, sent once, and their outcome is recorded.

use bellwire_core::InjectionPoint::TurnStart;
use bellwire_core::person::{QuietChange, SettingsChange};
use bellwire_core::{NotificationId, Time};
use bellwire_store::{
    AttemptEnd, AttemptOutcome, AttemptStart, Claim, ConversationDetails, Delivery, DeliveryState, ErrorKind, Hold,
    InboxItemKind, InboxState, NotificationDraft, Purpose, WaitingDeliveries,
};

use crate::backends::{Backend, email, email_address, email_to, on_every_store};
use crate::notify::{inbox, message, told};
use crate::settings::change;

const CODE: &[u8] = b"a hash";

/// Ada reads mail at this address, and has shown that she does.
pub(crate) async fn mail_to(backend: &Backend, address: &str) {
    let wanted = SettingsChange { channels: email_to(address), ..SettingsChange::default() };
    change(backend, wanted).await.unwrap();
    let claim = claim(backend).await;
    assert_eq!((claim.target.as_str(), &claim.purpose), (address, &Purpose::Confirmation));
    assert!(start(backend, &claim).await);
    assert!(finish(backend, &claim, AttemptOutcome::Sent).await);
    let settings = backend.store().confirm_target("ada".into(), email(), CODE.to_vec(), None).await.unwrap();
    assert!(settings.channel("email").verified);
}

async fn quiet(backend: &Backend, start: &str, end: &str, timezone: &str) {
    let part = |text: &str| Some(text.to_owned());
    let hours = QuietChange { start: part(start), end: part(end), timezone: part(timezone) };
    change(backend, SettingsChange { quiet_hours: Some(Some(hours)), ..SettingsChange::default() }).await.unwrap();
}

async fn claims(backend: &Backend) -> Vec<Claim> {
    backend.store().claim(email(), 10).await.unwrap()
}

pub(crate) async fn claim(backend: &Backend) -> Claim {
    let mut claims = claims(backend).await;
    assert_eq!(claims.len(), 1, "{claims:?}");
    claims.remove(0)
}

pub(crate) async fn start(backend: &Backend, claim: &Claim) -> bool {
    let code = (claim.purpose == Purpose::Confirmation).then(|| CODE.to_vec());
    backend.store().start(AttemptStart { message_id: claim.message_id, fence: claim.fence, code }).await.unwrap()
}

pub(crate) async fn finish(backend: &Backend, claim: &Claim, outcome: AttemptOutcome) -> bool {
    let finish = AttemptEnd { message_id: claim.message_id, fence: claim.fence, outcome, jitter: 0 };
    backend.store().finish(finish).await.unwrap()
}

fn texts(claim: &Claim) -> Vec<&str> {
    match &claim.purpose {
        Purpose::Notifications(items) => items.iter().map(|item| item.message.as_str()).collect(),
        Purpose::Direct(..) | Purpose::Confirmation => Vec::new(),
    }
}

async fn deliveries(backend: &Backend) -> Vec<Delivery> {
    let all = backend.store().deliveries(Some("ada".into()), None, None, 100).await.unwrap().0;
    all.into_iter().filter(|one| one.content.notification_id().is_some()).collect()
}

pub(crate) async fn only(backend: &Backend) -> Delivery {
    let mut all = deliveries(backend).await;
    assert_eq!(all.len(), 1, "{all:?}");
    all.remove(0)
}

on_every_store! {
    async fn mail_is_planned_only_where_it_is_wanted_and_the_address_is_confirmed(backend: Backend) {
        told(&backend, message("before")).await;
        let wanted = SettingsChange {
            channels: email_to("ada@example.org"),
            ..SettingsChange::default()
        };
        change(&backend, wanted).await.unwrap();
        told(&backend, message("not confirmed")).await;
        assert!(deliveries(&backend).await.is_empty());
        backend.pass(1);
        mail_to(&backend, "ada@example.net").await;
        told(&backend, message("confirmed")).await;
        assert_eq!(only(&backend).await.target, "ada@example.net");
        let muted = SettingsChange { muted_origins: Some(vec!["butler".into()]), ..SettingsChange::default() };
        change(&backend, muted).await.unwrap();
        told(&backend, message("muted")).await;
        assert_eq!(deliveries(&backend).await.len(), 1);
    }

    async fn a_mail_that_is_sent_is_not_claimed_again(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        told(&backend, message("news")).await;
        let claim = claim(&backend).await;
        assert_eq!(texts(&claim), ["news"]);
        assert!(claims(&backend).await.is_empty(), "it is claimed");
        assert!(start(&backend, &claim).await);
        assert!(claims(&backend).await.is_empty(), "it is tried");
        assert!(finish(&backend, &claim, AttemptOutcome::Sent).await);
        assert!(!finish(&backend, &claim, AttemptOutcome::Unknown { reason: "late".into() }).await);
        assert!(claims(&backend).await.is_empty());
        let sent = only(&backend).await;
        assert_eq!((sent.state, sent.attempts), (DeliveryState::Sent, 1));
    }

    async fn two_workers_never_both_send_a_mail(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        told(&backend, message("news")).await;
        let slow = claim(&backend).await;
        backend.pass(60_000);
        if backend.is_durable() {
            backend.restart().await;
        }
        let quick = claim(&backend).await;
        assert_eq!((quick.message_id, quick.fence), (slow.message_id, slow.fence + 1), "the same mail, a later claim");
        assert!(!start(&backend, &slow).await, "the first worker is too late");
        assert!(start(&backend, &quick).await);
        assert!(!finish(&backend, &slow, AttemptOutcome::Refused { reason: "no".into() }).await);
        assert!(finish(&backend, &quick, AttemptOutcome::Sent).await);
        assert_eq!(only(&backend).await.state, DeliveryState::Sent);
    }

    async fn an_attempt_that_was_given_up_may_have_been_sent_and_is_never_sent_again(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        told(&backend, message("news")).await;
        let claim = claim(&backend).await;
        assert!(start(&backend, &claim).await);
        if backend.is_durable() {
            backend.restart().await;
        }
        backend.pass(15 * 60_000);
        assert!(claims(&backend).await.is_empty());
        assert_eq!(only(&backend).await.state, DeliveryState::Unknown);
        let note = inbox(&backend, InboxState::Unread).await.remove(0);
        assert_eq!(note.kind, InboxItemKind::Note);
        assert!(note.message.contains("may not have arrived"), "{}", note.message);
        assert!(!finish(&backend, &claim, AttemptOutcome::Sent).await);
        assert!(claims(&backend).await.is_empty(), "what the hub says of itself is not mailed");
    }

    async fn an_attempt_that_the_hubs_stop_interrupted_before_sending_is_made_again(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        told(&backend, message("first")).await;
        told(&backend, message("second")).await;
        let interrupted = claim(&backend).await;
        assert!(start(&backend, &interrupted).await);
        assert!(finish(&backend, &interrupted, AttemptOutcome::Interrupted).await);
        let deliveries = backend.store().deliveries(None, None, None, 10).await.unwrap().0;
        let waits = |one: &bellwire_store::Delivery| {
            (one.state, one.attempts, one.reason.as_deref()) == (DeliveryState::Waiting, 0, None)
        };
        assert!(deliveries.iter().filter(|one| one.content.notification_id().is_some()).all(waits), "{deliveries:#?}");
        assert!(inbox(&backend, InboxState::Unread).await.iter().all(|item| item.kind != InboxItemKind::Note));
        if backend.is_durable() {
            backend.restart().await;
        }
        let again = claim(&backend).await;
        assert_eq!((again.message_id, texts(&again)), (interrupted.message_id, texts(&interrupted)));
        assert!(!finish(&backend, &interrupted, AttemptOutcome::Sent).await, "its fence is old");
    }

    async fn the_rest_of_a_message_goes_out_later_with_the_progress_of_the_first_attempt(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        told(&backend, message("long")).await;
        let first = claim(&backend).await;
        assert!(start(&backend, &first).await);
        let reason = "1 of 3 parts were delivered: busy".to_owned();
        let rest = Box::new(AttemptOutcome::TryAgain { reason, retry_after_ms: Some(60_000) });
        let partial = AttemptOutcome::Partial { sent: Vec::new(), progress: Some("1 of it".into()), rest };
        assert!(finish(&backend, &first, partial).await);
        let waiting = only(&backend).await;
        assert_eq!((waiting.state, waiting.attempts), (DeliveryState::Waiting, 1));
        assert!(waiting.reason.as_deref().is_some_and(|reason| reason.starts_with("1 of 3")), "{waiting:?}");
        if backend.is_durable() {
            backend.restart().await;
        }
        backend.pass(80_000);
        let second = claim(&backend).await;
        assert_eq!((second.message_id, second.progress.as_deref()), (first.message_id, Some("1 of it")));
        assert!(start(&backend, &second).await);
        let busy = AttemptOutcome::TryAgain { reason: "busy".into(), retry_after_ms: None };
        assert!(finish(&backend, &second, busy).await);
        backend.pass(3_600_000);
        let third = claim(&backend).await;
        assert_eq!(third.progress.as_deref(), Some("1 of it"), "a failed attempt has sent nothing more");
        assert!(start(&backend, &third).await);
        assert!(finish(&backend, &third, AttemptOutcome::Refused { reason: "no".into() }).await);
        let id = only(&backend).await.id;
        backend.store().retry_delivery(None, id, None).await.unwrap();
        assert_eq!(claim(&backend).await.progress, None, "a person who asks for a retry gets the whole message");
    }

    async fn what_was_sent_of_a_group_is_done_whatever_becomes_of_the_rest(backend: Backend) {
        use AttemptOutcome::{Refused, Sent, TryAgain, Unknown};
        use DeliveryState::{Failed, Waiting};
        mail_to(&backend, "ada@example.org").await;
        let no = || "no".to_owned();
        for (rest, state) in [
            (TryAgain { reason: no(), retry_after_ms: None }, Waiting),
            (Refused { reason: no() }, Failed),
            (Unknown { reason: no() }, DeliveryState::Unknown),
            (Sent, DeliveryState::Sent),
        ] {
            // The hourly limit of the test's store.
            backend.pass(3_600_000);
            for text in ["one", "two", "three"] {
                told(&backend, message(text)).await;
            }
            let first = claim(&backend).await;
            let Purpose::Notifications(items) = &first.purpose else { panic!("{first:?}") };
            let sent = vec![items[0].id, items[2].id];
            assert!(start(&backend, &first).await);
            let (progress, rest) = (None, Box::new(rest));
            let partial = AttemptOutcome::Partial { sent: sent.clone(), progress, rest };
            assert!(finish(&backend, &first, partial.clone()).await);
            assert!(!finish(&backend, &first, partial).await, "it has ended");
            let deliveries = backend.store().deliveries(None, None, None, 3).await.unwrap().0;
            for one in &deliveries {
                let is_sent = one.content.notification_id().is_some_and(|id| sent.contains(&id));
                assert_eq!(one.state, if is_sent { DeliveryState::Sent } else { state }, "{deliveries:#?}");
            }
            if state == Waiting {
                backend.pass(3_600_000);
                let second = claim(&backend).await;
                assert_eq!((second.message_id, texts(&second)), (first.message_id, vec!["two"]));
                assert!(start(&backend, &second).await);
                assert!(finish(&backend, &second, Sent).await);
            }
        }
    }

    async fn a_claim_that_was_not_started_is_given_back_only_by_its_own_fence(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        told(&backend, message("news")).await;
        let first = claim(&backend).await;
        let not_started = || AttemptOutcome::NotStarted { reason: "busy".into(), retry_after_ms: 3_000 };
        assert!(finish(&backend, &first, not_started()).await);
        assert_eq!((only(&backend).await.state, only(&backend).await.attempts), (DeliveryState::Waiting, 0));
        assert!(claims(&backend).await.is_empty(), "it waits for three seconds");
        backend.pass(3_000);
        let second = claim(&backend).await;
        assert!(!finish(&backend, &first, not_started()).await, "its fence is old");
        assert!(start(&backend, &second).await);
        assert!(!finish(&backend, &second, not_started()).await, "it was started");
        assert!(finish(&backend, &second, AttemptOutcome::Sent).await);
    }

    async fn an_unknown_delivery_is_retried_with_its_mail_id_unless_it_was_a_digest(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        let silence = || AttemptOutcome::Unknown { reason: "silence".into() };
        let lost = |mail: Claim, outcome: AttemptOutcome| {
            let backend = &backend;
            async move {
                assert!(start(backend, &mail).await);
                assert!(finish(backend, &mail, outcome).await);
                mail.message_id
            }
        };
        told(&backend, message("alone")).await;
        let alone = lost(claim(&backend).await, silence()).await;
        let id = only(&backend).await.id;
        backend.store().retry_delivery(None, id, None).await.unwrap();
        assert_eq!(lost(claim(&backend).await, AttemptOutcome::Refused { reason: "no".into() }).await, alone, "a copy is known as one");
        backend.store().retry_delivery(None, id, None).await.unwrap();
        assert_ne!(lost(claim(&backend).await, AttemptOutcome::Sent).await, alone, "what was refused is sent anew");

        told(&backend, message("first")).await;
        told(&backend, message("second")).await;
        let both = lost(claim(&backend).await, silence()).await;
        let unknown = backend.store().deliveries(None, Some(DeliveryState::Unknown), None, 10).await.unwrap().0;
        assert_eq!(unknown.len(), 2);
        backend.store().retry_delivery(None, unknown[0].id, None).await.unwrap();
        let one = claim(&backend).await;
        assert_eq!(texts(&one).len(), 1);
        assert_ne!(one.message_id, both, "the same name must not stand for another text");
    }

    async fn a_mail_has_the_titles_of_its_conversations(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        let caller = bellwire_store::Caller::user("ada");
        backend.store().put_conversation(caller, "chat".into(), "ada".into(), ConversationDetails::titled("Trip to Rome")).await.unwrap();
        told(&backend, message("news")).await;
        told(&backend, NotificationDraft { conversation_id: None, ..message("from nowhere") }).await;
        let titles = claim(&backend).await.titles;
        assert_eq!(titles.into_iter().collect::<Vec<_>>(), [("chat".to_owned(), "Trip to Rome".to_owned())]);
    }

    async fn a_single_failure_is_tried_again_and_the_mail_keeps_its_id(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        told(&backend, message("news")).await;
        let first = claim(&backend).await;
        assert!(start(&backend, &first).await);
        let again = || AttemptOutcome::TryAgain { reason: "busy".into(), retry_after_ms: None };
        assert!(finish(&backend, &first, again()).await);
        assert!(claims(&backend).await.is_empty(), "not at once");
        told(&backend, message("meanwhile")).await;
        backend.pass(5_000);
        let both = claims(&backend).await;
        assert_eq!(both.len(), 2, "what was tried stays as it was: {both:?}");
        let second = both.iter().find(|claim| claim.message_id == first.message_id).unwrap();
        assert_eq!((texts(second), second.created_at), (vec!["news"], first.created_at));
        assert!(start(&backend, second).await);
        assert!(finish(&backend, second, AttemptOutcome::TryAgain { reason: "busy".into(), retry_after_ms: Some(3_600_000) }).await);
        backend.pass(3_599_999);
        assert!(claims(&backend).await.iter().all(|claim| claim.message_id != first.message_id), "as long as it was asked to");
        backend.pass(1);
        assert!(claims(&backend).await.iter().any(|claim| claim.message_id == first.message_id));
    }

    async fn a_refused_delivery_fails_and_is_reported_to_person_and_agent(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        told(&backend, message("news")).await;
        let claim_one = claim(&backend).await;
        assert!(start(&backend, &claim_one).await);
        backend.pass(1);
        assert!(finish(&backend, &claim_one, AttemptOutcome::Refused { reason: "550 no such user".into() }).await);
        let dead = only(&backend).await;
        assert_eq!((dead.state, dead.reason.as_deref()), (DeliveryState::Failed, Some("550 no such user")));
        let listed = backend.store().deliveries(None, Some(DeliveryState::Failed), None, 10).await.unwrap().0;
        assert_eq!(listed, std::slice::from_ref(&dead));
        let note = inbox(&backend, InboxState::Unread).await.remove(0);
        assert_eq!((note.kind, note.origin.as_str()), (InboxItemKind::Note, "bellwire"));
        assert!(note.message.contains("550 no such user"), "{}", note.message);
        let block = backend.inject(TurnStart, "c1").await.block;
        assert!(block.contains("delivery_failed: email") && block.contains("550 no such user"), "{block}");

        assert_eq!(backend.store().retry_delivery(Some("bob".into()), dead.id, None).await.unwrap_err().kind, ErrorKind::NotFound);
        let again = backend.store().retry_delivery(Some("ada".into()), dead.id, None).await.unwrap();
        assert_eq!((again.state, again.attempts), (DeliveryState::Waiting, 0));
        assert_eq!(backend.store().retry_delivery(None, dead.id, None).await.unwrap_err().kind, ErrorKind::Conflict);
        let cancelled = backend.store().cancel_delivery(None, dead.id, None).await.unwrap();
        assert_eq!(cancelled.state, DeliveryState::Cancelled);
        assert!(claims(&backend).await.is_empty());
    }

    async fn after_ten_attempts_it_is_given_up(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        told(&backend, message("news")).await;
        for _ in 0..10 {
            let claim = claim(&backend).await;
            assert!(start(&backend, &claim).await);
            finish(&backend, &claim, AttemptOutcome::TryAgain { reason: "busy".into(), retry_after_ms: None }).await;
            backend.pass(7 * 3_600_000);
        }
        let dead = only(&backend).await;
        assert_eq!((dead.state, dead.attempts), (DeliveryState::Failed, 10));
        assert_eq!(dead.reason.as_deref(), Some("given up after 10 attempts: busy"));
    }

    async fn deferred_mail_is_not_sent_once_it_was_read_dismissed_or_is_no_longer_wanted(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        let names = ["read", "dismissed", "muted", "stays"];
        let mut ids = Vec::new();
        for name in names {
            let origin = if name == "muted" { "gardener" } else { "butler" };
            ids.push(told(&backend, NotificationDraft { origin: origin.into(), ..message(name) }).await);
        }
        let store = backend.store();
        store.mark("ada".into(), ids[0], true).await.unwrap();
        store.dismiss("ada".into(), ids[1]).await.unwrap();
        let muted = SettingsChange { muted_origins: Some(vec!["gardener".into()]), ..SettingsChange::default() };
        change(&backend, muted).await.unwrap();
        assert_eq!(texts(&claim(&backend).await), ["stays"]);
        let skipped = store.deliveries(None, Some(DeliveryState::Skipped), None, 10).await.unwrap().0;
        let mut reasons: Vec<_> = skipped.into_iter().filter_map(|one| one.reason).collect();
        reasons.sort();
        assert_eq!(reasons, ["it was dismissed meanwhile", "it was read meanwhile", "the origin is muted"]);
    }

    async fn a_changed_address_gets_nothing_that_was_meant_for_the_old_one(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        told(&backend, message("for the old address")).await;
        let moved = SettingsChange { channels: email_address("ada@example.net"), ..SettingsChange::default() };
        change(&backend, moved).await.unwrap();
        let claims = claims(&backend).await;
        assert!(claims.iter().all(|claim| claim.purpose == Purpose::Confirmation), "{claims:?}");
        assert_eq!(only(&backend).await.reason.as_deref(), Some("the address has changed"));
    }

    async fn deliveries_held_by_quiet_hours_go_as_one_digest(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        // The clock stands at 15:30 UTC.
        quiet(&backend, "15:00", "16:00", "UTC").await;
        told(&backend, message("first")).await;
        backend.pass(60_000);
        told(&backend, message("second")).await;
        assert_eq!(inbox(&backend, InboxState::Unread).await.len(), 2, "the inbox is never held");
        backend.pass(29 * 60_000 - 1);
        assert!(claims(&backend).await.is_empty());
        assert_eq!(deliveries(&backend).await[0].held_by, Some(Hold::QuietHours));
        backend.pass(1);
        let digest = claim(&backend).await;
        assert_eq!(texts(&digest), ["first", "second"]);
        start(&backend, &digest).await;
        finish(&backend, &digest, AttemptOutcome::Sent).await;
        let sent = deliveries(&backend).await;
        assert!(sent.iter().all(|one| one.held_by == Some(Hold::QuietHours)), "why it was sent so late: {sent:?}");
    }

    async fn a_failed_attempt_is_not_held_by_quiet_hours_any_more(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        quiet(&backend, "15:00", "15:31", "UTC").await;
        told(&backend, message("news")).await;
        backend.pass(60_000);
        let claim = claim(&backend).await;
        start(&backend, &claim).await;
        let later = AttemptOutcome::TryAgain { reason: "the server is busy".into(), retry_after_ms: None };
        finish(&backend, &claim, later).await;
        let waits = only(&backend).await;
        assert_eq!((waits.state, waits.held_by), (DeliveryState::Waiting, None));
    }

    async fn the_origins_and_titles_of_notifications_are_read_together(backend: Backend) {
        let short = told(&backend, message("first")).await;
        let long = told(&backend, message(&format!("two\nlines {}", "ü".repeat(100)))).await;
        let of = async |user: &str, ids: &[NotificationId]| {
            let items = ids.iter().map(|id| (user.to_owned(), *id)).collect();
            let mut found = backend.store().headings(items).await.unwrap();
            found.sort_by_key(|one| one.id);
            found.into_iter().map(|one| (one.id, one.origin, one.title)).collect::<Vec<_>>()
        };
        let cut = format!("two lines {}...", "ü".repeat(70));
        let titles = [(short, "butler".to_owned(), "first".to_owned()), (long, "butler".to_owned(), cut)];
        assert_eq!(of("ada", &[long, short]).await, titles);
        assert_eq!(of("bob", &[long]).await, [], "nobody else's");
        assert_eq!(of("ada", &[]).await, []);
    }

    async fn the_deliveries_of_a_page_of_notifications_are_read_together(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        let first = told(&backend, message("first")).await;
        let second = told(&backend, message("second")).await;
        told(&backend, message("third")).await;
        let of = async |user: &str, ids: Vec<_>| {
            let found = backend.store().deliveries_of(user.into(), ids).await.unwrap();
            found.into_iter().map(|one| one.content.notification_id().unwrap()).collect::<Vec<_>>()
        };
        let mut found = of("ada", vec![second, first]).await;
        found.sort();
        let mut both = vec![first, second];
        both.sort();
        assert_eq!(found, both);
        assert_eq!(of("bob", vec![first]).await, [], "nobody else's");
        assert_eq!(of("ada", vec![]).await, []);
    }

    async fn a_changed_window_or_zone_plans_anew_what_is_held(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        quiet(&backend, "15:00", "16:00", "UTC").await;
        told(&backend, message("news")).await;
        quiet(&backend, "15:00", "18:00", "UTC").await;
        backend.pass(60 * 60_000);
        assert!(claims(&backend).await.is_empty(), "it is quiet for longer now");
        quiet(&backend, "15:00", "18:00", "Asia/Tokyo").await;
        assert_eq!(texts(&claim(&backend).await), ["news"], "and in Tokyo it is long over");
    }

    async fn ending_quiet_hours_lets_go_what_they_held(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        quiet(&backend, "15:00", "16:00", "UTC").await;
        told(&backend, message("news")).await;
        change(&backend, SettingsChange { quiet_hours: Some(None), ..SettingsChange::default() }).await.unwrap();
        assert_eq!(texts(&claim(&backend).await), ["news"]);
    }

    async fn a_code_confirms_once_can_be_guessed_five_times_and_not_asked_for_without_end(backend: Backend) {
        let address = |number: usize| SettingsChange {
            channels: email_address(format!("ada{number}@example.org")),
            ..SettingsChange::default()
        };
        change(&backend, address(0)).await.unwrap();
        let mail = claim(&backend).await;
        assert!(start(&backend, &mail).await);
        finish(&backend, &mail, AttemptOutcome::Sent).await;
        let store = backend.store();
        for _ in 0..5 {
            let guess = store.confirm_target("ada".into(), email(), b"wrong".to_vec(), None).await.unwrap();
            assert!(!guess.channel("email").verified);
        }
        let right = store.confirm_target("ada".into(), email(), CODE.to_vec(), None).await.unwrap_err();
        assert_eq!(right.kind, ErrorKind::Conflict, "five wrong guesses use it up");
        for number in 1..5 {
            change(&backend, address(number)).await.unwrap();
        }
        assert_eq!(change(&backend, address(6)).await.unwrap_err().kind, ErrorKind::Full);
        backend.pass(3_600_000);
        change(&backend, address(7)).await.unwrap();
    }

    async fn an_old_mail_unsubscribes_its_own_address_and_no_other(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        let store = backend.store();
        store.unsubscribe("ada".into(), email(), "old@example.org".into()).await.unwrap();
        assert!(store.settings("ada".into()).await.unwrap().channel("email").enabled);
        store.unsubscribe("ada".into(), email(), "ada@example.org".into()).await.unwrap();
        store.unsubscribe("ada".into(), email(), "ada@example.org".into()).await.unwrap();
        assert!(!store.settings("ada".into()).await.unwrap().channel("email").enabled);
        told(&backend, message("news")).await;
        assert!(deliveries(&backend).await.is_empty());
    }

    async fn the_outbox_tells_its_age(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        assert_eq!(backend.store().outbox().await.unwrap(), []);
        assert_eq!(backend.store().oldest_delivery(email()).await.unwrap(), None);
        let at: Time = backend.now();
        told(&backend, message("news")).await;
        backend.pass(60_000);
        let waiting = WaitingDeliveries { channel: email(), count: 1, oldest: at };
        assert_eq!(backend.store().outbox().await.unwrap(), [waiting]);
        assert_eq!(backend.store().oldest_delivery(email()).await.unwrap(), Some(at));
    }

    async fn an_erased_person_is_sent_nothing_more(backend: Backend) {
        mail_to(&backend, "ada@example.org").await;
        told(&backend, message("news")).await;
        backend.store().erase_user("ada".into()).await.unwrap();
        assert!(claims(&backend).await.is_empty());
        assert!(backend.store().deliveries(None, None, None, 10).await.unwrap().0.is_empty());
        assert_eq!(backend.store().settings("ada".into()).await.unwrap(), Default::default());
    }
}

#[tokio::test]
async fn opening_the_store_ends_the_leases_of_the_previous_process() {
    let mut backend = Backend::sqlite().await;
    mail_to(&backend, "ada@example.org").await;
    told(&backend, message("claimed")).await;
    let before = claim(&backend).await;
    backend.restart().await;
    let again = claim(&backend).await;
    assert_eq!((again.message_id, again.fence), (before.message_id, before.fence + 1), "it goes back at once");
    assert!(start(&backend, &again).await);
    backend.restart().await;
    assert!(claims(&backend).await.is_empty(), "it may have been sent");
    assert_eq!(only(&backend).await.state, DeliveryState::Unknown, "and that is known at once");
    assert!(!finish(&backend, &again, AttemptOutcome::Sent).await);
}

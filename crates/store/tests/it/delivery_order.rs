//! The order in which deliveries are claimed, and that a retry sends the same mail.

use bellwire_core::person::{MessageType, QuietChange, SettingsChange};
use bellwire_store::{
    AttemptEnd, AttemptOutcome, AttemptStart, Caller, Claim, DeliveryState, NotificationContent, NotificationDraft,
    PeopleRules, Purpose, SendResult, SettingsRequest,
};

use crate::backends::{Backend, email, email_to, with_email};

const MANY: usize = 100;

/// Stores where people may be told as much as there is to tell.
async fn stores() -> [Backend; 2] {
    let rules = PeopleRules { notifications_per_hour: 10_000, ..with_email() };
    [Backend::memory_with(rules.clone()).await, Backend::sqlite_with(rules).await]
}

async fn change(backend: &Backend, user: &str, change: SettingsChange) {
    backend.store().change_settings(SettingsRequest { user_id: user.into(), change }).await.unwrap();
}

/// This person reads mail.
pub(crate) async fn mails(backend: &Backend, user: &str) {
    let wanted = SettingsChange { channels: email_to(format!("{user}@example.org")), ..SettingsChange::default() };
    change(backend, user, wanted).await;
    let claim = one(backend).await;
    assert_eq!((claim.user_id.as_str(), &claim.purpose), (user, &Purpose::Confirmation));
    start(backend, &claim).await;
    assert!(finish(backend, &claim, AttemptOutcome::Sent).await);
    assert!(
        backend
            .store()
            .confirm_target(user.into(), email(), b"code".to_vec(), None)
            .await
            .unwrap()
            .channel("email")
            .verified
    );
}

pub(crate) async fn tell(backend: &Backend, user: &str, text: &str) {
    let draft = NotificationDraft {
        caller: Caller::user(user),
        user_id: user.into(),
        origin: "butler".into(),
        conversation_id: Some("chat".into()),
        correlation_id: None,
        content: NotificationContent::Message { kind: MessageType::Info, message: text.to_owned() },
        idempotency_key: None,
    };
    assert!(matches!(backend.store().send(draft).await.unwrap(), SendResult::Stored { .. }));
}

/// Claims one mail.
async fn one(backend: &Backend) -> Claim {
    let mut claims = backend.store().claim(email(), 1).await.unwrap();
    assert_eq!(claims.len(), 1);
    claims.remove(0)
}

async fn start(backend: &Backend, claim: &Claim) {
    let code = (claim.purpose == Purpose::Confirmation).then(|| b"code".to_vec());
    let mail = AttemptStart { message_id: claim.message_id, fence: claim.fence, code };
    assert!(backend.store().start(mail).await.unwrap());
}

async fn finish(backend: &Backend, claim: &Claim, outcome: AttemptOutcome) -> bool {
    let finish = AttemptEnd { message_id: claim.message_id, fence: claim.fence, outcome, jitter: 0 };
    backend.store().finish(finish).await.unwrap()
}

/// Its attempt fails, and may be made again.
async fn defer(backend: &Backend, claim: &Claim) {
    start(backend, claim).await;
    assert!(
        finish(backend, claim, AttemptOutcome::TryAgain { reason: "451 greylisted".into(), retry_after_ms: None })
            .await
    );
}

fn texts(claim: &Claim) -> Vec<&str> {
    match &claim.purpose {
        Purpose::Notifications(items) => items.iter().map(|item| item.message.as_str()).collect(),
        Purpose::Direct(..) | Purpose::Confirmation => Vec::new(),
    }
}

async fn in_state(backend: &Backend, state: DeliveryState) -> usize {
    let all = backend.store().deliveries(None, Some(state), None, 1_000).await.unwrap().0;
    all.into_iter().filter(|one| one.content.notification_id().is_some()).count()
}

#[tokio::test]
async fn a_digest_that_is_tried_again_carries_all_that_it_carried() {
    for backend in stores().await {
        mails(&backend, "ada").await;
        let part = |text: &str| Some(text.to_owned());
        // The clock stands at 15:30 UTC.
        let hours = QuietChange { start: part("15:00"), end: part("16:00"), timezone: part("UTC") };
        change(&backend, "ada", SettingsChange { quiet_hours: Some(Some(hours)), ..SettingsChange::default() }).await;
        for number in 0..MANY {
            tell(&backend, "ada", &format!("news {number:03}")).await;
        }
        backend.pass(30 * 60_000);
        let first = one(&backend).await;
        assert_eq!(texts(&first).len(), MANY);
        defer(&backend, &first).await;
        backend.pass(10_000);
        // Not sent and not told a second time: what is read meanwhile is left out, and nothing else.
        let read = first_item(&first);
        backend.store().mark("ada".into(), read, true).await.unwrap();
        let again = one(&backend).await;
        assert_eq!((again.message_id, again.fence), (first.message_id, first.fence + 1));
        assert_eq!(texts(&again), texts(&first)[1..]);
        assert!(backend.store().claim(email(), 10).await.unwrap().is_empty(), "no part of it is claimed besides");
        start(&backend, &again).await;
        assert!(finish(&backend, &again, AttemptOutcome::Sent).await);
        assert_eq!(in_state(&backend, DeliveryState::Sent).await, MANY - 1, "what was in the mail, and nothing else");
        assert_eq!(in_state(&backend, DeliveryState::Skipped).await, 1);
    }
}

fn first_item(claim: &Claim) -> bellwire_core::NotificationId {
    match &claim.purpose {
        Purpose::Notifications(items) => items[0].id,
        Purpose::Direct(..) | Purpose::Confirmation => panic!("it is no news"),
    }
}

#[tokio::test]
async fn the_longest_waiting_delivery_is_claimed_first() {
    for backend in stores().await {
        let people = ["zoe", "ada", "mia"];
        for person in people {
            mails(&backend, person).await;
        }
        for person in people {
            tell(&backend, person, "news").await;
            backend.pass(1_000);
        }
        for person in people {
            assert_eq!(one(&backend).await.user_id, person);
        }
    }
}

#[tokio::test]
async fn one_persons_backlog_does_not_delay_others() {
    for backend in stores().await {
        for person in ["ada", "bob", "zoe"] {
            mails(&backend, person).await;
        }
        // More mails of one person than one claim reads, all older than those of the others.
        for number in 0..MANY {
            tell(&backend, "ada", &format!("news {number}")).await;
            defer(&backend, &one(&backend).await).await;
        }
        backend.pass(60_000);
        for person in ["bob", "zoe"] {
            tell(&backend, person, "news").await;
        }
        let mut claimed = Vec::new();
        for _ in 0..4 {
            let claim = one(&backend).await;
            start(&backend, &claim).await;
            claimed.push(claim.user_id);
        }
        assert_eq!(claimed, ["ada", "bob", "zoe", "ada"], "the oldest first, then everyone in turn");
    }
}

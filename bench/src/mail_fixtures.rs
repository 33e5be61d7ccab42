//! A data folder with people whose email addresses are confirmed, and one delivery waiting for each.

use std::path::Path;
use std::sync::Arc;

use bellwire_core::person::{ChannelChange, ChannelName, MessageType, SettingsChange};
use bellwire_core::{Subscribers, Time};
use bellwire_store::{
    AttemptEnd, AttemptOutcome, AttemptStart, Caller, ChannelRules, Clock, NotificationContent, NotificationDraft,
    PeopleRules, SettingsRequest, SqliteStore, Store, StoreOptions,
};
use tokio::task::JoinSet;

/// Commands in flight at once, so that they share commits.
const CONCURRENCY: usize = 256;

/// Creates `people` users, each with a confirmed address.
pub(crate) async fn add_people(folder: &Path, people: usize) {
    let store = open(folder).await;
    each(&store, people, |store, user_id| async move {
        let change = ChannelChange { enabled: Some(true), target: Some(Some(format!("{user_id}@example.org"))) };
        let change = SettingsChange::of_channel(email(), change);
        store.change_settings(SettingsRequest { user_id, change }).await.expect("the settings are right");
    })
    .await;
    loop {
        let claims = store.claim(email(), CONCURRENCY).await.expect("the store answers");
        if claims.is_empty() {
            break;
        }
        for claim in claims {
            let mail = AttemptStart { message_id: claim.message_id, fence: claim.fence, code: Some(b"code".to_vec()) };
            assert!(store.start(mail).await.expect("the store answers"));
            let finish = AttemptEnd {
                message_id: claim.message_id,
                fence: claim.fence,
                outcome: AttemptOutcome::Sent,
                jitter: 0,
            };
            assert!(store.finish(finish).await.expect("the store answers"));
            store.confirm_target(claim.user_id, email(), b"code".to_vec(), None).await.expect("the code fits");
        }
    }
    store.close().await.expect("the store closes");
}

/// Sends each person one notification, which plans one email delivery.
pub(crate) async fn queue_mail(folder: &Path, people: usize) {
    let store = open(folder).await;
    each(&store, people, |store, user_id| async move {
        let message = "The nightly build is green again. Three tests that had failed since Tuesday pass, and the \
                       release can go out when you say so.";
        let draft = NotificationDraft {
            caller: Caller::user(&user_id),
            user_id,
            origin: "butler".to_owned(),
            conversation_id: Some("nightly".to_owned()),
            correlation_id: None,
            content: NotificationContent::Message { kind: MessageType::Info, message: message.to_owned() },
            idempotency_key: None,
        };
        store.send(draft).await.expect("the store answers");
    })
    .await;
    store.close().await.expect("the store closes");
}

fn email() -> ChannelName {
    ChannelName::parse("email").expect("a name")
}

async fn open(folder: &Path) -> Arc<dyn Store> {
    let opening = StoreOptions {
        subscribers: Arc::new(Subscribers::bundled()),
        randomness: bellwire_core::Randomness::repeatable(std::process::id().into()),
        clock: Clock::set_by(now),
        timers: false,
        observer: None,
        people: PeopleRules { notifications_per_hour: 10_000, ..PeopleRules::default() }
            .with_channel(email(), ChannelRules::new("email")),
        sizes: bellwire_store::Sizes::default(),
    };
    Arc::new(SqliteStore::open(&folder.join("bellwire.db"), opening).await.expect("the store opens"))
}

fn now() -> Time {
    let millis = std::time::UNIX_EPOCH.elapsed().map_or(0, |since| since.as_millis());
    Time::from_millis(i64::try_from(millis).unwrap_or(i64::MAX))
}

async fn each<F: Future<Output = ()> + Send + 'static>(
    store: &Arc<dyn Store>,
    people: usize,
    work: impl Fn(Arc<dyn Store>, String) -> F,
) {
    let mut working = JoinSet::new();
    for number in 0..people {
        if working.len() >= CONCURRENCY {
            working.join_next().await;
        }
        working.spawn(work(store.clone(), format!("person-{number}")));
    }
    working.join_all().await;
}

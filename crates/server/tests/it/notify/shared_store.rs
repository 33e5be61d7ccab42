//! A hub whose Switchboard runs elsewhere and whose Messenger is the hub itself: both claim requests in one store.

use std::sync::{Arc, OnceLock};

use bellwire_server::Config;
use bellwire_server::channels::{NotifyOutcome, Obstacle};
use serde_json::{Value, json};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;

use super::pager::{Pager, Script};
use super::three::{daemon_token, remote, start_switchboard};
use super::{ADAS, Scene, agent, context};
use crate::hub::TestHub;

/// Forwards connections to an address that is known later.
async fn forwarder() -> (String, Arc<OnceLock<String>>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let to = Arc::new(OnceLock::<String>::new());
    let address = to.clone();
    tokio::spawn(async move {
        while let Ok((mut from, _)) = listener.accept().await {
            let to = address.get().expect("it is known").clone();
            tokio::spawn(async move {
                let mut to = TcpStream::connect(to).await?;
                tokio::io::copy_bidirectional(&mut from, &mut to).await
            });
        }
    });
    (url, to)
}

/// The hub with its Messenger, and the Switchboard between them.
async fn circle() -> (Scene, TestHub) {
    let (url, address) = forwarder().await;
    // The Switchboard needs a token of the hub, and the hub one of the Switchboard.
    let hub = TestHub::start_with_channels(Config::default(), vec![Pager::new()]).await;
    let token = daemon_token(&hub, "switchboard").await;
    let folder = hub.stop().await;
    let switchboard = start_switchboard(&url, &token).await;
    let (remote, _file) = remote(&switchboard.base, &daemon_token(&switchboard, "hub").await);
    let pager = Pager::new();
    let config = Config { switchboard: remote, ..Config::default() };
    let hub = TestHub::start_in_with_channels(config, folder, vec![pager.clone()]).await;
    address.set(hub.base.trim_start_matches("http://").to_owned()).unwrap();
    let health = agent(&hub, "health", "ada").await;
    let ada = hub.token("user", "ada").await;
    let scene = Scene { hub, pager, health, ada };
    scene.pair("ada", &scene.ada, ADAS).await;
    (scene, switchboard)
}

fn send() -> Value {
    json!({"channel": "pager", "message": "Hello"})
}

#[tokio::test]
async fn a_messenger_with_the_hubs_own_store_sends_and_the_request_counts_once() {
    let (scene, _switchboard) = circle().await;
    let keyed = || scene.notify_as(&scene.health, send(), json!({"idempotency_key": "k"}));
    let answer = keyed().await;
    assert_eq!((&answer["status"], &answer["delivery"]["delivery_id"]), (&json!("ok"), &json!("page-1")), "{answer}");
    assert_eq!(keyed().await["delivery"], answer["delivery"]);
    assert_eq!(scene.pager.texts(), ["Hello"]);
    assert_eq!((scene.inbox().await.len(), scene.decisions().await), (1, vec!["delivered".to_owned()]));
}

#[tokio::test]
async fn a_duplicate_that_comes_while_such_a_messenger_sends_is_not_sent_again() {
    let (scene, _switchboard) = circle().await;
    let released = Arc::new(Notify::new());
    scene.pager.next(Script::Hold(released.clone()));
    let keyed = || scene.notify_as(&scene.health, send(), json!({"idempotency_key": "k"}));
    let release = async {
        scene.pager.until(1).await;
        released.notify_one();
    };
    let (one, two, ()) = tokio::join!(keyed(), keyed(), release);
    assert_eq!((&one["status"], &one["delivery"]), (&json!("ok"), &two["delivery"]), "{one} {two}");
    assert_eq!((scene.pager.texts().len(), scene.decisions().await.len()), (1, 1));
}

#[tokio::test]
async fn a_retryable_failure_of_such_a_messenger_releases_the_request_and_adds_nothing_twice() {
    let (scene, _switchboard) = circle().await;
    let (obstacle, reason) = (Obstacle::Unavailable, "busy".to_owned());
    scene.pager.next(Script::Outcome(NotifyOutcome::TryAgain { obstacle, reason, retry_after: None }));
    let keyed = || scene.notify_as(&scene.health, send(), json!({"idempotency_key": "k"}));
    assert_eq!(keyed().await["error"]["class"], "target_unavailable");
    assert_eq!(keyed().await["status"], "ok");
    assert_eq!((scene.inbox().await.len(), scene.decisions().await), (1, vec!["failed".into(), "delivered".into()]));
}

#[tokio::test]
async fn a_reply_counts_once_against_the_limit_of_its_message() {
    let (scene, _switchboard) = circle().await;
    let asked = super::wire(&context(1));
    scene.says(1).await;
    for number in 0..20 {
        let reply =
            json!({"channel": "pager", "intent": "reply", "message": number.to_string(), "request_context": asked});
        let answer = scene.notify(reply).await;
        assert_eq!(answer["status"], "ok", "{number}: {answer}");
    }
}

//! Hub, Switchboard and Messenger as three hubs, each with its own data and its own tokens, over real MCP calls.

use std::collections::BTreeSet;
use std::sync::Arc;

use bellwire_server::Config;
use bellwire_server::channels::NotifyOutcome;
use bellwire_server::config::{AllowedTarget, RemoteConfig};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::Notify;

use super::pager::{Pager, Script};
use super::peer::Peer;
use super::{ADAS, Scene, agent};
use crate::hub::TestHub;
use crate::mailed::wait_for;

/// The three hubs. People, their settings and the agents are known only to the first.
pub(super) struct Three {
    pub(super) scene: Scene,
    pub(super) switchboard: TestHub,
    pub(super) messenger: TestHub,
    /// The Messenger's pager, the only one that is used.
    pub(super) pager: Arc<Pager>,
}

/// Where a process runs, with a file for its token.
pub(super) fn remote(url: &str, token: &str) -> (RemoteConfig, tempfile::NamedTempFile) {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), format!("{token}\n")).unwrap();
    (RemoteConfig { url: Some(url.to_owned()), token_file: Some(file.path().to_owned()) }, file)
}

pub(super) async fn daemon_token(hub: &TestHub, origin: &str) -> String {
    let (status, answer) = hub.post(&hub.admin, "/v1/tokens", json!({"scope": "daemon", "origin": origin})).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
    answer["token"].as_str().unwrap().to_owned()
}

/// A Messenger that may reach Ada's pager for these origins.
pub(super) async fn start_messenger(origins: &[&str], change: impl FnOnce(&mut Config)) -> (TestHub, Arc<Pager>) {
    let pager = Pager::new();
    let mut config = Config::default();
    for origin in origins {
        let target = AllowedTarget::parse(&format!("pager:{ADAS}")).unwrap();
        config.notify.allow.insert((*origin).to_owned(), vec![target]);
    }
    config.limits.notifications_per_hour = 10_000;
    change(&mut config);
    (TestHub::start_with_channels(config, vec![pager.clone()]).await, pager)
}

/// A Switchboard that passes routes to this address.
pub(super) async fn start_switchboard(url: &str, token: &str) -> TestHub {
    let (remote, _file) = remote(url, token);
    let mut config = Config::default();
    config.messenger.remote = remote;
    TestHub::start_with_channels(config, vec![Pager::new()]).await
}

/// A hub that passes requests to this Switchboard.
pub(super) async fn start_hub(switchboard: &TestHub) -> Scene {
    start_hub_with(switchboard, |_| {}).await
}

pub(super) async fn start_hub_with(switchboard: &TestHub, change: impl FnOnce(&mut Config)) -> Scene {
    let token = daemon_token(switchboard, "hub").await;
    start_hub_as(&switchboard.base, &token, change).await
}

/// A hub that passes requests to the Switchboard at this address.
pub(super) async fn start_hub_at(url: &str, token: &str) -> Scene {
    start_hub_as(url, token, |_| {}).await
}

async fn start_hub_as(url: &str, token: &str, change: impl FnOnce(&mut Config)) -> Scene {
    let (remote, _file) = remote(url, token);
    let mut config = Config { switchboard: remote, ..storm_config() };
    change(&mut config);
    Scene::open_with(config).await
}

impl Three {
    pub(super) async fn start() -> Self {
        Self::start_for(&["health"]).await
    }

    async fn start_for(origins: &[&str]) -> Self {
        let (messenger, pager) = start_messenger(origins, |_| {}).await;
        let token = daemon_token(&messenger, "switchboard").await;
        let switchboard = start_switchboard(&messenger.base, &token).await;
        let scene = start_hub(&switchboard).await;
        Self { scene, switchboard, messenger, pager }
    }
}

pub(super) fn send(message: &str) -> Value {
    json!({"channel": "pager", "message": message, "subject": "Hi"})
}

#[tokio::test]
async fn a_message_goes_through_three_hubs_and_its_answer_comes_back() {
    let three = Three::start().await;
    let answer = three.scene.notify(send("Hello")).await;
    assert_eq!((&answer["status"], &answer["delivery"]["delivery_id"]), (&json!("ok"), &json!("page-1")), "{answer}");
    let message = three.pager.messages().remove(0);
    assert_eq!((message.origin.as_str(), message.target.target.as_str()), ("health", ADAS));
    assert_eq!((message.message.as_deref(), message.subject.as_deref()), (Some("Hello"), Some("Hi")));
    assert_eq!(three.scene.pager.messages().len(), 0, "the hub's own channel is not used");
    assert_eq!((three.scene.inbox().await.len(), three.scene.decisions().await), (1, vec!["delivered".to_owned()]));
}

#[tokio::test]
async fn failures_of_the_provider_come_back_with_class_and_retry_after() {
    let three = Three::start().await;
    let retry_after = Some(std::time::Duration::from_secs(9));
    let (obstacle, reason) = (bellwire_server::channels::Obstacle::Unavailable, "429 too many".to_owned());
    three.pager.next(Script::Outcome(NotifyOutcome::TryAgain { obstacle, reason, retry_after }));
    let busy = three.scene.notify(send("one")).await;
    assert_eq!(
        (&busy["error"]["class"], &busy["retry_after_seconds"]),
        (&json!("target_unavailable"), &json!(9)),
        "{busy}"
    );
    three.pager.next(Script::Outcome(NotifyOutcome::Partial {
        delivery_id: "p".into(),
        further_parts: Vec::new(),
        parts: 2,
        reason: "x".into(),
    }));
    let partial = three.scene.notify(send("two")).await;
    assert_eq!(
        (&partial["error"]["class"], &partial["delivery"]["delivery_id"]),
        (&json!("internal_error"), &json!("p"))
    );
    three.pager.next(Script::Outcome(NotifyOutcome::Unknown { reason: "reset".into() }));
    let unknown = three.scene.notify(send("three")).await;
    assert!(unknown["error"]["message"].as_str().unwrap().starts_with("Delivery outcome unknown"), "{unknown}");
    assert_eq!(three.scene.decisions().await, ["failed", "failed", "unknown"]);
}

#[tokio::test]
async fn a_messenger_without_the_hubs_store_accepts_only_its_own_allow_list() {
    let three = Three::start_for(&["bank"]).await;
    let answer = three.scene.notify(send("Hello")).await;
    assert_eq!((&answer["error"]["class"], &answer["error"]["retryable"]), (&json!("validation_error"), &json!(false)));
    assert!(answer["error"]["message"].as_str().unwrap().contains("allow-list"), "{answer}");
    assert_eq!(three.pager.messages().len(), 0);
}

#[tokio::test]
async fn a_messenger_that_is_away_is_not_attempted_and_the_call_can_be_made_again() {
    let (messenger, pager) = start_messenger(&["health"], |_| {}).await;
    let token = daemon_token(&messenger, "switchboard").await;
    let switchboard = start_switchboard(&messenger.base, &token).await;
    let scene = start_hub(&switchboard).await;
    let keyed = || scene.notify_as(&scene.health, send("Hello"), json!({"idempotency_key": "k"}));
    let folder = messenger.stop().await;
    let away = keyed().await;
    assert_eq!(
        (&away["error"]["class"], &away["error"]["retryable"]),
        (&json!("target_unavailable"), &json!(true)),
        "{away}"
    );
    assert!(away["error"]["message"].as_str().unwrap().contains("the Messenger cannot be reached"), "{away}");
    drop(folder);
    let stopped = switchboard.stop().await;
    let away = keyed().await;
    assert!(away["error"]["message"].as_str().unwrap().contains("the Switchboard cannot be reached"), "{away}");
    drop(stopped);
    assert_eq!((pager.messages().len(), scene.decisions().await), (0, vec!["failed".to_owned(); 2]));
    assert_eq!(scene.inbox().await.len(), 1);
}

#[tokio::test]
async fn a_wrong_token_is_not_attempted() {
    let (messenger, _) = start_messenger(&["health"], |_| {}).await;
    let switchboard = start_switchboard(&messenger.base, "bw_wrong").await;
    let scene = start_hub(&switchboard).await;
    let answer = scene.notify(send("Hello")).await;
    assert_eq!(
        (&answer["error"]["class"], &answer["error"]["retryable"]),
        (&json!("target_unavailable"), &json!(true))
    );
    assert!(answer["error"]["message"].as_str().unwrap().contains("check its address and token"), "{answer}");
    let plain = daemon_token(&messenger, "messenger").await;
    let switchboard = start_switchboard(&messenger.base, &plain).await;
    let scene = start_hub(&switchboard).await;
    let answer = scene.notify(send("Hello")).await;
    assert!(answer["error"]["message"].as_str().unwrap().contains("The caller is not trusted"), "{answer}");
}

/// A Messenger that answers every request with these bytes and then closes the connection.
async fn garbage(answer: &'static [u8]) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        loop {
            let Ok((mut stream, _)) = listener.accept().await else { return };
            tokio::spawn(async move {
                let mut request = vec![0; 65_536];
                let _ = stream.read(&mut request).await;
                let _ = stream.write_all(answer).await;
                let _ = stream.shutdown().await;
            });
        }
    });
    url
}

#[tokio::test]
async fn garbage_from_the_messenger_is_an_unknown_outcome_and_never_a_success() {
    let answers: [&'static [u8]; 9] = [
        b"",
        b"not http at all",
        b"HTTP/1.1 200 OK\r\ncontent-length: 5\r\n\r\nhello",
        b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\ncut off",
        b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 48\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"status\":\"ok\"}}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 81\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"structuredContent\":{\"status\":\"ok\",\"result\":{}}}}",
        b"HTTP/1.1 500 Oops\r\ncontent-length: 0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ncontent-length: 70\r\n\r\n{\"jsonrpc\":\"2.0\",\"id\":1,\"error\":{\"code\":-32603,\"message\":\"it failed\"}}",
    ];
    // Each is asked several times, with pauses.
    let check = async |answer: &'static [u8]| {
        let switchboard = start_switchboard(&garbage(answer).await, "bw_token").await;
        let scene = start_hub(&switchboard).await;
        let keyed = || scene.notify_as(&scene.health, send("Hello"), json!({"idempotency_key": "k"}));
        let told = keyed().await;
        let shown = String::from_utf8_lossy(answer);
        assert_eq!((&told["status"], &told["error"]["retryable"]), (&json!("error"), &json!(false)), "{shown}: {told}");
        assert!(told["error"]["message"].as_str().unwrap().starts_with("Delivery outcome unknown"), "{shown}: {told}");
        assert_eq!(keyed().await["error"], told["error"], "it is final");
        assert_eq!(scene.decisions().await, ["unknown"], "{shown}");
    };
    futures_util::future::join_all(answers.into_iter().map(check)).await;
}

#[tokio::test]
async fn a_busy_messenger_is_overloaded_with_its_retry_after() {
    let url = garbage(b"HTTP/1.1 503 Busy\r\nretry-after: 4\r\ncontent-length: 0\r\n\r\n").await;
    let switchboard = start_switchboard(&url, "bw_token").await;
    let scene = start_hub(&switchboard).await;
    let answer = scene.notify(send("Hello")).await;
    assert_eq!(
        (&answer["error"]["class"], &answer["retry_after_seconds"]),
        (&json!("overload_rejected"), &json!(4)),
        "{answer}"
    );
    assert_eq!(answer["error"]["retryable"], true);
}

#[tokio::test]
async fn a_slow_messenger_is_an_unknown_outcome_in_time_and_a_repeat_gets_what_became_of_it() {
    let (messenger, pager) = start_messenger(&["health"], |_| {}).await;
    let token = daemon_token(&messenger, "switchboard").await;
    let switchboard = start_switchboard(&messenger.base, &token).await;
    let scene = start_hub_with(&switchboard, |config| config.limits.request_seconds = 1).await;
    let released = Arc::new(Notify::new());
    pager.next(Script::Hold(released.clone()));
    let keyed = || scene.notify_as(&scene.health, send("Hello"), json!({"idempotency_key": "k"}));
    let answer = keyed().await;
    assert_eq!((&answer["error"]["class"], &answer["error"]["retryable"]), (&json!("timeout"), &json!(false)));
    assert!(answer["error"]["message"].as_str().unwrap().starts_with("Delivery outcome unknown"), "{answer}");
    released.notify_one();
    wait_for("the outcome", || async { !scene.decisions().await.is_empty() }).await;
    assert_eq!(keyed().await["delivery"]["delivery_id"], "page-1");
    assert_eq!((pager.messages().len(), scene.decisions().await), (1, vec!["delivered".to_owned()]));
}

#[tokio::test]
async fn a_foreign_recipient_is_refused_before_it_leaves_the_hub() {
    let switchboard = Peer::switchboard().await;
    let scene = start_hub_at(&switchboard.url, "bw_token").await;
    let mut foreign = send("Hello");
    foreign["recipient"] = json!("555:9");
    assert!(scene.refusal(foreign).await.contains("allow-list"));
    assert_eq!((switchboard.asked().len(), scene.decisions().await), (0, vec!["refused".to_owned()]));
}

#[tokio::test]
async fn the_token_of_a_hub_reaches_only_what_the_messengers_own_list_allows_and_no_reserved_origin() {
    let three = Three::start().await;
    let stolen = daemon_token(&three.switchboard, "hub").await;
    let client = Scene { hub: three.switchboard, pager: Pager::new(), health: String::new(), ada: String::new() };
    let mut elsewhere = super::daemons::deliver("health");
    elsewhere["notify_request"]["delivery"]["recipient"] = json!("555:9");
    for (arguments, error) in [
        (elsewhere, "allow-list"),
        (super::daemons::deliver("switchboard"), "reserved"),
        (super::daemons::deliver("bank"), "allow-list"),
    ] {
        let answer = client.deliver(&stolen, &arguments).await;
        assert_eq!(
            (&answer["status"], &answer["error_class"]),
            (&json!("failed"), &json!("validation_error")),
            "{answer}"
        );
        assert!(answer["error"].as_str().unwrap().contains(error), "{answer}");
    }
    assert_eq!(three.pager.messages().len(), 0);
    assert_eq!(client.decisions().await, ["refused"], "the Switchboard records what it refuses itself");
    let (_, ledger) = three.messenger.get(&three.messenger.admin, "/v1/ledger").await;
    assert_eq!(ledger["items"].as_array().unwrap().len(), 2, "and the Messenger the rest: {ledger}");
}

/// 50 agents send the same four requests each, twice at once.
async fn storm(scene: &Scene, pager: &Pager) {
    const AGENTS: usize = 50;
    const REQUESTS: usize = 4;
    let mut tokens = Vec::new();
    for number in 0..AGENTS {
        tokens.push(agent(&scene.hub, &format!("butler-{number}"), "ada").await);
    }
    let call = |number: usize, request: usize| {
        let context = json!({
            "request_id": uuid::Uuid::from_u128(request as u128), "source_channel": "mcp",
            "source_endpoint_identity": "cron", "source_sender_identity": "cron",
        });
        let arguments =
            json!({"channel": "pager", "message": format!("{number} {request}"), "request_context": context});
        scene.notify_as(&tokens[number], arguments, json!({}))
    };
    let calls = (0..AGENTS).flat_map(|number| (0..REQUESTS).map(move |request| (number, request)));
    let twice: Vec<(usize, usize)> = calls.flat_map(|one| [one, one]).collect();
    let answers = futures_util::future::join_all(twice.iter().map(|(number, request)| call(*number, *request))).await;
    for pair in answers.chunks(2) {
        assert_eq!(pair[0]["status"], "ok", "{}", pair[0]);
        assert_eq!(pair[0]["delivery"], pair[1]["delivery"], "the duplicate has the first answer");
    }
    let texts = pager.texts();
    let distinct: BTreeSet<&String> = texts.iter().collect();
    assert_eq!((texts.len(), distinct.len()), (AGENTS * REQUESTS, AGENTS * REQUESTS), "each is delivered exactly once");
}

pub(super) fn storm_config() -> Config {
    let mut config = Config::default();
    config.limits.notifications_per_hour = 10_000;
    config
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_butlers_with_duplicates_in_one_process() {
    let scene = Scene::open_with(storm_config()).await;
    storm(&scene, &scene.pager).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn fifty_butlers_with_duplicates_through_three_hubs() {
    let names: Vec<String> = (0..50).map(|number| format!("butler-{number}")).collect();
    let origins: Vec<&str> = names.iter().map(String::as_str).collect();
    let three = Three::start_for(&origins).await;
    storm(&three.scene, &three.pager).await;
    let _running = &three.switchboard;
}

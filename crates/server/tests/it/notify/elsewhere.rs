//! What the hub learns of an attempt that a Messenger elsewhere makes: its outcome even if that takes long, and that a
//! target cannot be reached.

use std::sync::Arc;

use bellwire_server::channels::{NotifyOutcome, Obstacle};
use serde_json::{Value, json};
use tokio::sync::Notify;

use super::Scene;
use super::pager::Script;
use super::peer::{Peer, failed, sent};
use super::three::{Three, daemon_token, send, start_hub, start_hub_at, start_messenger, start_switchboard};
use crate::hub::TestHub;

const UNKNOWN: &str = "Delivery outcome unknown: it goes on";

/// A hub whose Switchboard gives these answers, in order.
async fn hub_with_answers(
    answers: impl Fn(&Value, usize) -> (Value, Value) + Clone + Send + Sync + 'static,
) -> (Scene, Peer) {
    let switchboard = Peer::start_with_meta(answers).await;
    (start_hub_at(&switchboard.url, "bw_token").await, switchboard)
}

#[tokio::test]
async fn the_hub_asks_again_about_an_attempt_that_goes_on_and_records_how_it_ended() {
    let (scene, switchboard) = hub_with_answers(|arguments, earlier| match earlier {
        0..4 => (failed(arguments, "timeout", UNKNOWN, false), json!({"bellwire/in_flight": true})),
        _ => (sent(arguments), json!({})),
    })
    .await;
    assert_eq!(scene.notify(send("Hello")).await["delivery"]["delivery_id"], "1");
    let asked = switchboard.envelopes();
    assert_eq!(asked.len(), 5);
    assert!(asked.iter().all(|envelope| *envelope == asked[0]), "the Messenger recognises it by its request_id");
    assert_eq!((scene.inbox().await.len(), scene.decisions().await), (1, vec!["delivered".to_owned()]));
}

#[tokio::test]
async fn a_messenger_that_cannot_be_reached_any_more_does_not_prove_that_nothing_was_sent() {
    let (scene, switchboard) = hub_with_answers(|arguments, earlier| match earlier {
        0 => (failed(arguments, "timeout", UNKNOWN, false), json!({})),
        _ => (failed(arguments, "target_unavailable", "the Messenger cannot be reached", true), json!({})),
    })
    .await;
    let keyed = || scene.notify_as(&scene.health, send("Hello"), json!({"idempotency_key": "k"}));
    let answer = keyed().await;
    assert_eq!(
        (&answer["error"]["class"], &answer["error"]["message"]),
        (&json!("timeout"), &json!(UNKNOWN)),
        "{answer}"
    );
    let asked = switchboard.asked().len();
    assert!(asked > 1, "it asked again");
    assert_eq!(keyed().await["error"], answer["error"]);
    assert_eq!(
        (switchboard.asked().len(), scene.decisions().await),
        (asked, vec!["unknown".to_owned()]),
        "it is final"
    );
}

/// How many calls of `route.execute` this hub has answered.
async fn routes(hub: &TestHub) -> u64 {
    let (_, metrics) = hub.get(&hub.admin, "/metrics").await;
    let line = |line: &&str| line.starts_with("bellwire_http_requests_total") && line.contains("/mcp/messenger");
    let count = |line: &str| line.rsplit(' ').next().and_then(|count| count.parse::<u64>().ok());
    metrics.as_str().unwrap().lines().filter(line).filter_map(count).sum()
}

#[tokio::test]
async fn an_attempt_that_takes_longer_than_the_messenger_waits_ends_with_its_outcome_at_the_hub() {
    let (messenger, pager) = start_messenger(&["health"], |config| config.limits.request_seconds = 1).await;
    let token = daemon_token(&messenger, "switchboard").await;
    let switchboard = start_switchboard(&messenger.base, &token).await;
    let scene = start_hub(&switchboard).await;
    let released = Arc::new(Notify::new());
    pager.next(Script::Hold(released.clone()));
    let release = async {
        crate::mailed::wait_for("an answer that it goes on", || async { routes(&messenger).await > 0 }).await;
        released.notify_one();
    };
    let (answer, ()) = tokio::join!(scene.notify(send("Hello")), release);
    assert_eq!(answer["delivery"]["delivery_id"], "page-1", "{answer}");
    assert_eq!((pager.messages().len(), scene.decisions().await), (1, vec!["delivered".to_owned()]));
}

fn busy() -> NotifyOutcome {
    NotifyOutcome::TryAgain { obstacle: Obstacle::Unavailable, reason: "429 too many".into(), retry_after: None }
}

#[tokio::test]
async fn a_retryable_answer_after_a_long_attempt_is_the_outcome_at_the_hub_and_releases_the_request() {
    let (messenger, pager) = start_messenger(&["health"], |config| config.limits.request_seconds = 1).await;
    let token = daemon_token(&messenger, "switchboard").await;
    let switchboard = start_switchboard(&messenger.base, &token).await;
    let scene = start_hub(&switchboard).await;
    let released = Arc::new(Notify::new());
    pager.next(Script::HeldOutcome(released.clone(), busy()));
    let keyed = || scene.notify_as(&scene.health, send("Hello"), json!({"idempotency_key": "k"}));
    let release = async {
        crate::mailed::wait_for("an answer that it goes on", || async { routes(&messenger).await > 0 }).await;
        released.notify_one();
    };
    let (answer, ()) = tokio::join!(keyed(), release);
    assert_eq!(
        (&answer["error"]["class"], &answer["error"]["retryable"]),
        (&json!("target_unavailable"), &json!(true)),
        "{answer}"
    );
    assert_eq!((pager.messages().len(), scene.decisions().await), (1, vec!["failed".to_owned()]));
    assert_eq!(keyed().await["status"], "ok", "a repeat of the call is a new attempt");
    assert_eq!((pager.messages().len(), scene.inbox().await.len()), (2, 1));
}

#[tokio::test]
async fn a_repeated_question_gets_the_answer_of_an_attempt_that_ended_meanwhile_and_makes_no_other() {
    let (hub, pager) = start_messenger(&["health"], |config| config.limits.request_seconds = 1).await;
    let messenger = Scene { hub, pager: pager.clone(), health: String::new(), ada: String::new() };
    let token = messenger.daemon(Some("switchboard")).await;
    let mut route = super::daemons::route("health");
    route["input"]["context"]["user_id"].take();
    let execute = async |meta: Value| {
        let (_, answer) = messenger.mcp_with(&token, "/mcp/messenger", "route.execute", &route, meta).await;
        let response = &answer["result"]["structuredContent"]["result"]["notify_response"];
        (answer["result"]["_meta"].clone(), response["error"]["class"].clone())
    };
    let released = Arc::new(Notify::new());
    pager.next(Script::HeldOutcome(released.clone(), busy()));
    assert_eq!(execute(json!({})).await.0, json!({"bellwire/in_flight": true}));
    released.notify_one();
    let failed = async || messenger.decisions().await == ["failed"];
    crate::mailed::wait_for("the end of the attempt", failed).await;
    let again = json!({"bellwire/asks_again": true});
    for _ in 0..2 {
        assert_eq!(execute(again.clone()).await, (json!({"bellwire/released": true}), json!("target_unavailable")));
    }
    assert_eq!(pager.messages().len(), 1);
    assert_eq!(execute(json!({})).await.1, Value::Null, "a new question is a new attempt");
    assert_eq!(pager.messages().len(), 2);
}

#[tokio::test]
async fn a_target_that_cannot_be_reached_is_switched_off_at_the_hub_and_the_person_is_told() {
    let three = Three::start().await;
    let reason = "blocked by the user".to_owned();
    three.pager.next(Script::Outcome(NotifyOutcome::Unreachable { reason }));
    let answer = three.scene.notify(send("Hello")).await;
    assert_eq!(
        (&answer["error"]["class"], &answer["error"]["retryable"]),
        (&json!("validation_error"), &json!(false)),
        "{answer}"
    );
    let (_, settings) = three.scene.hub.get(&three.scene.ada, "/v1/users/ada/settings").await;
    assert_eq!(settings["pager"]["enabled"], false, "{settings}");
    let inbox = three.scene.inbox().await;
    let notes: Vec<&Value> = inbox.iter().filter(|item| item["kind"] == "note").collect();
    assert_eq!(notes.len(), 1, "{inbox:?}");
    assert!(notes[0]["message"].as_str().unwrap().contains("pager is now switched off"), "{notes:?}");
}

#[tokio::test]
async fn a_refusal_by_the_provider_switches_nothing_off() {
    let three = Three::start().await;
    three.pager.next(Script::Outcome(NotifyOutcome::Refused { reason: "too long".into() }));
    assert_eq!(three.scene.notify(send("Hello")).await["error"]["class"], "validation_error");
    let (_, settings) = three.scene.hub.get(&three.scene.ada, "/v1/users/ada/settings").await;
    assert_eq!(settings["pager"]["enabled"], true, "{settings}");
}

#[tokio::test]
async fn what_the_envelopes_have_no_field_for_is_in_meta_and_again_in_the_answer_to_a_repeat() {
    let (hub, pager) = start_messenger(&["health"], |config| config.limits.request_seconds = 1).await;
    let messenger = Scene { hub, pager: pager.clone(), health: String::new(), ada: String::new() };
    let token = messenger.daemon(Some("switchboard")).await;
    let mut route = super::daemons::route("health");
    route["input"]["context"]["user_id"].take();
    let execute = async |route: &Value| {
        let (_, answer) = messenger.mcp(&token, "/mcp/messenger", "route.execute", route).await;
        let envelope = answer["result"]["structuredContent"].clone();
        let known: Vec<&str> = envelope.as_object().unwrap().keys().map(String::as_str).collect();
        let fields = ["schema_version", "request_context", "status", "result", "error", "timing"];
        assert!(known.iter().all(|field| fields.contains(field)), "{envelope}");
        (answer["result"]["_meta"].clone(), envelope["status"].clone())
    };
    let released = Arc::new(Notify::new());
    pager.next(Script::Hold(released.clone()));
    assert_eq!(execute(&route).await, (json!({"bellwire/in_flight": true}), json!("error")));
    released.notify_one();
    let ended = async || execute(&route).await.1 == "ok";
    crate::mailed::wait_for("the end of the attempt", ended).await;
    assert_eq!(execute(&route).await.0, Value::Null);
    pager.next(Script::Outcome(NotifyOutcome::Unreachable { reason: "blocked".into() }));
    route["request_context"]["request_id"] = json!(uuid::Uuid::from_u128(6));
    let unreachable = json!({"bellwire/target_unreachable": true});
    assert_eq!(execute(&route).await.0, unreachable);
    assert_eq!(execute(&route).await.0, unreachable, "the repeat of a recorded answer");
    let parts = NotifyOutcome::Delivered { delivery_id: "7".into(), further_parts: vec!["8".into(), "9".into()] };
    pager.next(Script::Outcome(parts));
    route["request_context"]["request_id"] = json!(uuid::Uuid::from_u128(7));
    let further = json!({"bellwire/further_parts": ["8", "9"]});
    assert_eq!(execute(&route).await.0, further);
    assert_eq!(execute(&route).await.0, further, "the repeat of a recorded answer");
}

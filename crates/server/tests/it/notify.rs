//! The `notify` tool, from a call over HTTP to a channel and back.

mod answers;
mod daemons;
mod dedup;
mod elsewhere;
mod ledger;
mod outcomes;
mod pager;
mod peer;
mod recipients;
mod reference_bugs;
mod scenarios;
mod shared_store;
mod three;

use std::sync::Arc;

use bellwire_core::Event;
use bellwire_core::notify::RequestContext;
use bellwire_server::Config;
use bellwire_server::config::AllowedTarget;
use bellwire_store::{Caller, IncomingEvent, LedgerEntry, LedgerQuery, Publish};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::hub::TestHub;
use pager::Pager;

/// Ada's pager.
const ADAS: &str = "555:1";

/// A hub with a pager, and Ada, who has confirmed hers.
struct Scene {
    hub: TestHub,
    pager: Arc<Pager>,
    /// The token of the agent `health`, which works for Ada.
    health: String,
    ada: String,
}

impl Scene {
    async fn open() -> Self {
        Self::open_with(Config::default()).await
    }

    async fn open_with(config: Config) -> Self {
        let pager = Pager::new();
        let hub = TestHub::start_with_channels(config, vec![pager.clone()]).await;
        let health = agent(&hub, "health", "ada").await;
        let ada = hub.token("user", "ada").await;
        let scene = Self { hub, pager, health, ada };
        scene.pair("ada", &scene.ada, ADAS).await;
        scene
    }

    /// Sets a person's pager and confirms it with the code that comes there.
    async fn pair(&self, user: &str, token: &str, target: &str) {
        let path = format!("/v1/users/{user}/settings");
        let change = json!({"pager": {"enabled": true, "number": target}});
        let (status, answer) = self.hub.call(token, Method::PATCH, &path, Some(change)).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let code = self.pager.code().await;
        let path = format!("/v1/users/{user}/pager/confirm");
        let (status, answer) = self.hub.post(token, &path, json!({"code": code})).await;
        assert_eq!((status, &answer["pager"]["confirmed"]), (StatusCode::OK, &json!(true)), "{answer}");
    }

    async fn change(&self, settings: Value) {
        let (status, answer) = self.hub.call(&self.ada, Method::PATCH, "/v1/users/ada/settings", Some(settings)).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }

    /// Calls the tool as `health`, in Ada's conversation `chat`.
    async fn notify(&self, arguments: Value) -> Value {
        self.notify_as(&self.health, arguments, json!({"conversation_id": "chat"})).await
    }

    async fn notify_as(&self, token: &str, arguments: Value, context: Value) -> Value {
        let body = json!({"arguments": arguments, "context": context});
        let (status, answer) = self.hub.post(token, "/v1/tools/notify", body).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer
    }

    /// A text that says what to fix.
    async fn refusal(&self, arguments: Value) -> String {
        let answer = self.notify(arguments).await;
        assert_eq!(
            (&answer["status"], &answer["error_class"], &answer["retryable"]),
            (&json!("error"), &json!("validation_error"), &json!(false)),
            "{answer}"
        );
        answer["error"].as_str().expect("a text").to_owned()
    }

    async fn inbox(&self) -> Vec<Value> {
        let (_, list) = self.hub.get(&self.ada, "/v1/users/ada/notifications?limit=100").await;
        list["items"].as_array().expect("a list").clone()
    }

    /// The decisions so far, oldest first.
    async fn ledger(&self) -> Vec<LedgerEntry> {
        let mut entries = self.hub.store().ledger(LedgerQuery { limit: 1_000, ..LedgerQuery::default() }).await;
        entries.as_mut().expect("it is listed").0.reverse();
        entries.expect("it is listed").0
    }

    async fn decisions(&self) -> Vec<String> {
        let entries = self.ledger().await;
        entries.iter().map(|entry| entry.decided.decision.as_str().to_owned()).collect()
    }

    /// Ada sends a message by her pager, to the conversation `chat`.
    async fn says(&self, number: u64) -> RequestContext {
        let context = context(number);
        let event = Event::user_message_in("are you there?", &context).unwrap().in_conversation("chat");
        let events = vec![IncomingEvent::new(event, None)];
        let publish = Publish { caller: Caller::user("ada"), events, idempotency_key: None };
        self.hub.store().publish(publish).await.expect("it is accepted");
        context
    }

    /// The agent reads what waits in `chat`.
    async fn reads(&self, call_id: &str) -> String {
        let body = json!({"point": "after_tool", "call_id": call_id});
        let (status, answer) = self.hub.post(&self.health, "/v1/conversations/chat/inject", body).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer["block"].as_str().expect("a block").to_owned()
    }
}

/// A token of an agent with this origin.
async fn agent(hub: &TestHub, origin: &str, user: &str) -> String {
    let body = json!({"scope": "agent", "user_id": user, "origin": origin});
    let (status, answer) = hub.post(&hub.admin, "/v1/tokens", body).await;
    assert_eq!(status, StatusCode::CREATED, "{answer}");
    answer["token"].as_str().expect("a secret").to_owned()
}

/// The context of a message from Ada's pager.
fn context(number: u64) -> RequestContext {
    RequestContext {
        request_id: Uuid::from_u128(0x0190_a3c2_7b1e_7000_8000_0000_0000_0000 + u128::from(number)),
        source_channel: "pager".into(),
        source_endpoint_identity: "pager:hub".into(),
        source_sender_identity: "ada".into(),
        source_thread_identity: Some(format!("{ADAS}#{number}")),
        received_at: Some("2026-01-03T15:30:00Z".into()),
    }
}

fn wire(context: &RequestContext) -> Value {
    json!({
        "request_id": context.request_id,
        "source_channel": context.source_channel,
        "source_endpoint_identity": context.source_endpoint_identity,
        "source_sender_identity": context.source_sender_identity,
        "source_thread_identity": context.source_thread_identity,
        "received_at": context.received_at,
    })
}

/// A configuration in which `health` may also use these targets.
fn allowing(targets: &[&str]) -> Config {
    let mut config = Config::default();
    let targets = targets.iter().map(|target| AllowedTarget::parse(target).expect("a target")).collect();
    config.notify.allow.insert("health".into(), targets);
    config
}

/// The time of day so many hours from now, `HH:MM` in UTC.
pub(crate) fn clock(hours: i64) -> String {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs() as i64;
    let minutes = (now / 60 + hours * 60).rem_euclid(24 * 60);
    format!("{:02}:{:02}", minutes / 60, minutes % 60)
}

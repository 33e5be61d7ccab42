//! The full circle: an agent asks with a toast, its person answers in Telegram, the agent reads the answer before its next
//! step, and what it sends back arrives in the same thread.

use reqwest::Method;
use serde_json::{Map, Value, json};
use telegram_standin::{Message, Standin};

use crate::hub::Hub;

const ADA: i64 = 1815;

/// A hub with Ada's paired chat, and her agent in the conversation `deploy`.
struct Circle {
    telegram: Standin,
    hub: Hub,
    agent: String,
    http: reqwest::Client,
}

impl Circle {
    async fn start() -> Self {
        // Fails if another test of this process has installed it already.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let telegram = Standin::start();
        let settings = format!("token = \"{}\"\napi_url = \"{}\"\n", telegram.token(), telegram.url());
        let hub = Hub::configured(&format!("[telegram]\n{settings}chat_interval_ms = 0\n"));
        let agent = hub.agent_token();
        let code = hub.json(&["telegram", "pair", "ada", "--json"])["code"].as_str().expect("a code").to_owned();
        telegram.types(ADA, &format!("/start {code}"));
        telegram.wait_for_sent(ADA, 1).await;
        let circle = Self { telegram, hub, agent, http: reqwest::Client::new() };
        // With two open conversations, only a thread says which one is meant.
        for id in ["deploy", "other"] {
            circle.call(Method::PUT, &format!("/v1/conversations/{id}"), json!({"user_id": "ada"})).await;
        }
        circle
    }

    async fn call(&self, method: Method, path: &str, body: Value) -> Value {
        let request = self.http.request(method, format!("{}{path}", self.hub.url)).bearer_auth(&self.agent);
        let response = request.json(&body).send().await.expect("the hub answers");
        let (status, text) = (response.status(), response.text().await.expect("a text"));
        assert!(status.is_success(), "{path}: {status} {text}");
        serde_json::from_str(&text).expect("JSON")
    }

    async fn tool(&self, name: &str, arguments: Value) -> Value {
        let body = json!({"arguments": arguments, "context": {"conversation_id": "deploy"}});
        self.call(Method::POST, &format!("/v1/tools/{name}"), body).await
    }

    /// What the agent reads after its next tool call.
    async fn next_step(&self, conversation: &str, call_id: &str) -> String {
        let body = json!({"point": "after_tool", "call_id": call_id, "tool_result": "done"});
        let answer = self.call(Method::POST, &format!("/v1/conversations/{conversation}/inject"), body).await;
        answer["content"].as_str().expect("a text").to_owned()
    }

    /// Waits until Telegram was told to forget every update, so that what Ada did is stored, and until it is handled.
    async fn heard(&self, messages: usize) {
        let is_confirmed = |telegram: &Standin| (telegram.pending_updates() == 0).then_some(());
        self.telegram.wait_until("confirmed updates", is_confirmed).await;
        let path = "/v1/events?type=user.message&conversation_id=deploy";
        for _ in 0..1000 {
            let request = self.http.get(format!("{}{path}", self.hub.url)).bearer_auth(&self.agent);
            let list: Value = request.send().await.expect("an answer").json().await.expect("JSON");
            if list["items"].as_array().is_some_and(|items| items.len() == messages) {
                return;
            }
            tokio::task::yield_now().await;
        }
        panic!("Ada's message did not arrive");
    }

    fn message(&self, id: i64) -> Message {
        self.telegram.messages(ADA).into_iter().find(|one| one.message_id == id).expect("the message")
    }
}

/// The request_context that the agent reads, as it gives it back.
fn request_context(block: &str) -> Value {
    let line = block.lines().find_map(|line| line.trim().strip_prefix("request_context: ")).expect("the line");
    let pairs = line.trim_matches('"').split(' ').filter_map(|pair| pair.split_once('='));
    Value::Object(pairs.map(|(name, value)| (name.to_owned(), json!(value))).collect::<Map<_, _>>())
}

#[tokio::test]
async fn a_toast_is_answered_in_telegram_and_the_agent_answers_in_the_same_thread() {
    let circle = Circle::start().await;
    let actions = json!([
        {"label": "Deploy", "action": "prompt", "prompt": "deploy it now"},
        {"label": "Later", "action": "dismiss"},
    ]);
    let toast = json!({"message": "Shall I deploy it?", "severity": "info", "actions": actions});
    assert_eq!(circle.tool("show_notification", toast).await["success"], true);

    // The first turn: Ada presses a button.
    let asked = circle.telegram.wait_for_sent(ADA, 2).await.remove(1);
    assert_eq!(
        (asked.text.as_str(), asked.buttons()),
        ("[butler] Shall I deploy it?", vec!["Deploy".into(), "Later".into()])
    );
    let query = circle.telegram.presses(ADA, asked.message_id, "Deploy");
    circle.heard(1).await;
    let step = circle.next_step("deploy", "call_1").await;
    assert!(step.starts_with("done\n\n<notifications "), "{step}");
    assert!(step.contains(r#"pressed \"Deploy\" (offered by butler): deploy it now"#), "{step}");
    let shown = |telegram: &Standin| {
        let pressed = telegram.sent(ADA).into_iter().find(|one| one.text.ends_with("\n\nPressed: Deploy"));
        pressed.filter(|one| one.buttons().is_empty() && telegram.is_answered(&query))
    };
    assert_eq!(circle.telegram.wait_until("what was pressed", shown).await.message_id, asked.message_id);

    // The second turn: Ada types a reply.
    let typed = circle.telegram.replies(ADA, asked.message_id, "and tell me how it went");
    circle.heard(2).await;
    let step = circle.next_step("deploy", "call_2").await;
    assert!(step.contains("text: and tell me how it went"), "{step}");
    let context = request_context(&step);
    assert_eq!(context["source_channel"], "telegram");
    assert_eq!(context["source_endpoint_identity"], "telegram:7001");
    assert_eq!(context["source_sender_identity"], json!(ADA.to_string()));
    assert_eq!(context["source_thread_identity"], json!(format!("{ADA}:{typed}")));

    // The agent answers: a reaction to the newest message, a reply by the context that it has read.
    let reacted = circle.tool("notify", json!({"channel": "telegram", "intent": "react", "emoji": "👍"})).await;
    assert_eq!(reacted["delivery"], json!({"channel": "telegram", "delivery_id": typed.to_string()}), "{reacted}");
    let reply = json!({
        "channel": "telegram", "intent": "reply", "message": "It is deployed.", "request_context": context,
    });
    let replied = circle.tool("notify", reply).await;
    assert_eq!(replied["status"], "ok", "{replied}");
    assert_eq!(circle.message(typed).reaction.as_deref(), Some("👍"));
    let answer = circle.telegram.sent(ADA).pop().expect("the reply");
    assert_eq!((answer.text.as_str(), answer.reply_to), ("[butler] It is deployed.", Some(typed)));
    assert_eq!(replied["delivery"]["delivery_id"], json!(answer.message_id.to_string()));

    // Ada answers the reply, and it is the same conversation again.
    circle.telegram.replies(ADA, answer.message_id, "thank you");
    circle.heard(3).await;
    assert!(circle.next_step("deploy", "call_3").await.contains("text: thank you"));
    assert_eq!(circle.next_step("other", "call_1").await, "done", "the other conversation has heard nothing");
}

//! The hub and a Telegram stand-in at a socket: pairing, notifications, words of people, buttons, faults.

mod buttons;
mod direct;
mod elsewhere;
mod faults;
mod hostile;
mod inbound;
mod notify;
mod notify_faults;
mod outbound;
mod pacing;
mod pairing;
mod webhook;

use bellwire_server::Config;
use bellwire_server::config::{Secret, TelegramConfig};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};
use telegram_standin::{Message, Standin};

use crate::hub::TestHub;

/// Ada's private chat, which has her id.
pub(crate) const ADA: i64 = 1815;

/// A hub with a bot, an agent's token, and the user Ada.
pub(crate) struct Chat {
    pub(crate) telegram: Standin,
    pub(crate) hub: TestHub,
    pub(crate) agent: String,
    pub(crate) ada: String,
}

impl Chat {
    /// A hub whose bot nobody has paired yet.
    pub(crate) async fn start() -> Self {
        Self::start_with(|_| {}).await
    }

    pub(crate) async fn start_with(change: impl FnOnce(&mut Config)) -> Self {
        let telegram = Standin::start();
        let hub = TestHub::start_with(config(&telegram, change)).await;
        Self::of(telegram, hub).await
    }

    async fn of(telegram: Standin, hub: TestHub) -> Self {
        let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
        Self { telegram, hub, agent, ada }
    }

    /// A hub on the folder of a stopped one.
    pub(crate) async fn resume(telegram: Standin, folder: tempfile::TempDir) -> Self {
        let hub = TestHub::start_as(config(&telegram, |_| {}), folder).await;
        Self::of(telegram, hub).await
    }

    /// A hub with Ada's chat paired; the bot has said so.
    pub(crate) async fn paired() -> Self {
        Self::paired_with(|_| {}).await
    }

    pub(crate) async fn paired_with(change: impl FnOnce(&mut Config)) -> Self {
        let chat = Self::start_with(change).await;
        chat.pair(ADA).await;
        chat
    }

    /// Pairs a chat with Ada; waits until the bot has said so.
    pub(crate) async fn pair(&self, user: i64) {
        let before = self.telegram.sent(user).len();
        let code = self.code().await;
        self.telegram.types(user, &format!("/start {code}"));
        let said = self.said(user, before + 1).await;
        assert!(said.text.starts_with("This chat is connected"), "{}", said.text);
    }

    pub(crate) async fn code(&self) -> String {
        let (status, answer) = self.hub.call(&self.ada, Method::POST, "/v1/users/ada/telegram/pair", None).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
        answer["code"].as_str().unwrap().to_owned()
    }

    /// Waits until the bot has sent `count` messages to a chat; returns the last one.
    pub(crate) async fn said(&self, user: i64, count: usize) -> Message {
        self.telegram.wait_for_sent(user, count).await.remove(count - 1)
    }

    /// The number of messages of the bot in Ada's chat.
    pub(crate) fn count(&self) -> usize {
        self.telegram.sent(ADA).len()
    }

    pub(crate) async fn settings(&self) -> Value {
        self.hub.get(&self.ada, "/v1/users/ada/settings").await.1["telegram"].clone()
    }

    /// Opens a conversation of Ada.
    pub(crate) async fn open(&self, id: &str, title: Option<&str>) {
        let body = json!({"user_id": "ada", "title": title});
        let (status, answer) =
            self.hub.call(&self.agent, Method::PUT, &format!("/v1/conversations/{id}"), Some(body)).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }

    /// Calls a tool as the agent of a conversation.
    pub(crate) async fn tool(&self, name: &str, conversation: &str, arguments: Value) -> Value {
        let body = json!({"arguments": arguments, "context": {"conversation_id": conversation}});
        let (status, answer) = self.hub.post(&self.agent, &format!("/v1/tools/{name}"), body).await;
        assert_eq!((status, &answer["success"]), (StatusCode::OK, &json!(true)), "{answer}");
        answer
    }

    pub(crate) async fn send(&self, conversation: &str, message: &str) {
        self.tool("send_notification", conversation, json!({ "message": message })).await;
    }

    /// Calls `notify` as the agent of a conversation.
    pub(crate) async fn notify(&self, conversation: &str, arguments: Value) -> Value {
        self.notify_in(json!({ "conversation_id": conversation }), arguments).await
    }

    /// Calls `notify` with an idempotency key.
    pub(crate) async fn notify_once(&self, key: &str, arguments: Value) -> Value {
        self.notify_in(json!({"conversation_id": "chat", "idempotency_key": key}), arguments).await
    }

    async fn notify_in(&self, context: Value, mut arguments: Value) -> Value {
        arguments["channel"] = json!("telegram");
        let body = json!({"arguments": arguments, "context": context});
        let (status, answer) = self.hub.post(&self.agent, "/v1/tools/notify", body).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer
    }

    /// Ada writes to a conversation, and its agent reads it. Returns the id of her message.
    pub(crate) async fn writes(&self, conversation: &str, text: &str) -> i64 {
        self.open(conversation, None).await;
        let id = self.telegram.types(ADA, text);
        let block = self.wait_for_block(conversation).await;
        assert!(block.contains(text), "{block}");
        id
    }

    /// Asks at injection points until there is something, as an agent that works does.
    pub(crate) async fn wait_for_block(&self, conversation: &str) -> String {
        for _ in 0..1000 {
            let block = self.block(conversation, &uuid::Uuid::new_v4().to_string()).await;
            if !block.is_empty() {
                return block;
            }
            tokio::task::yield_now().await;
        }
        panic!("nothing came")
    }

    /// Shows a toast with the buttons Go (a prompt) and Later (dismiss); returns its id.
    pub(crate) async fn ask(&self, conversation: &str) -> String {
        let actions = json!([
            {"label": "Go", "action": "prompt", "prompt": "go on"},
            {"label": "Later", "action": "dismiss"},
        ]);
        let arguments = json!({"message": "Shall I?", "title": "Deploy", "severity": "info", "actions": actions});
        let shown = self.tool("show_notification", conversation, arguments).await;
        shown["notification"]["id"].as_str().unwrap().to_owned()
    }

    /// The block of the agent's next injection.
    pub(crate) async fn block(&self, conversation: &str, call: &str) -> String {
        let body = json!({"point": "after_tool", "call_id": call, "max_tokens": 4000});
        let (_, answer) = self.hub.post(&self.agent, &format!("/v1/conversations/{conversation}/inject"), body).await;
        answer["block"].as_str().unwrap_or_else(|| panic!("{answer}")).to_owned()
    }

    /// Ada's deliveries, newest first.
    pub(crate) async fn deliveries(&self) -> Vec<Value> {
        self.hub.get(&self.ada, "/v1/deliveries?limit=100").await.1["items"].as_array().unwrap().clone()
    }

    /// Waits until the newest delivery was attempted and has this state.
    pub(crate) async fn until(&self, state: &str) -> Value {
        let wanted = |one: &Value| one["state"] == state && one["attempts"].as_u64() > Some(0);
        let is_so = || async { self.deliveries().await.first().is_some_and(wanted) };
        crate::mailed::wait_for(&format!("a delivery that is {state}"), is_so).await;
        self.deliveries().await.remove(0)
    }

    pub(crate) async fn change(&self, settings: Value) {
        let (status, answer) = self.hub.call(&self.ada, Method::PATCH, "/v1/users/ada/settings", Some(settings)).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }

    /// Sets Ada's quiet hours, which include now.
    pub(crate) async fn quiet(&self) {
        let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_secs();
        let at = |minutes: u64| format!("{:02}:{:02}", minutes / 60 % 24, minutes % 60);
        let minutes = now / 60 % (24 * 60) + 24 * 60;
        let hours = json!({"start": at(minutes - 60), "end": at(minutes + 120), "timezone": "UTC"});
        self.change(json!({ "quiet_hours": hours })).await;
    }

    pub(crate) async fn inbox(&self) -> Vec<Value> {
        let (_, list) = self.hub.get(&self.ada, "/v1/users/ada/notifications?limit=100&state=all").await;
        list["items"].as_array().unwrap().clone()
    }

    /// Waits until Telegram was told to forget every update, which means that each is stored.
    pub(crate) async fn confirmed(&self) {
        self.telegram.wait_until("confirmed updates", |telegram| (telegram.pending_updates() == 0).then_some(())).await;
    }
}

pub(crate) fn config(telegram: &Standin, change: impl FnOnce(&mut Config)) -> Config {
    let mut config = Config::default();
    (config.limits.notifications_per_hour, config.limits.toasts_per_hour) = (1000, 1000);
    config.telegram = TelegramConfig {
        token: Some(Secret::new(telegram.token())),
        api_url: Some(telegram.url()),
        messages_per_second: 0,
        chat_interval_ms: 0,
        answer_seconds: 5,
        ..config.telegram
    };
    change(&mut config);
    config
}

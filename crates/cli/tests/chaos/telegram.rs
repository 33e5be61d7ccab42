//! Kills the hub while it polls Telegram and while it sends: no word of a person is lost or handled twice, and a message
//! whose answer was lost becomes `unknown`, is reported, and is not sent again.

use std::sync::Arc;
use std::time::Duration;

use bellwire_core::Subscribers;
use bellwire_core::person::ChannelName;
use bellwire_store::{ChannelUpdate, Chats as _, PeopleRules, SqliteStore, Store as _, StoreOptions};
use reqwest::Method;
use serde_json::{Value, json};
use telegram_standin::{Fault, Standin};

use crate::client::{Call, Client, json};
use crate::hub::{Hub, serve};

const ADA: i64 = 1815;

/// A hub with a bot, and Ada's paired chat.
struct ChatScenario {
    telegram: Standin,
    folder: tempfile::TempDir,
    hub: Option<Hub>,
}

impl ChatScenario {
    async fn paired() -> Self {
        let (telegram, folder) = (Standin::start(), tempfile::tempdir().expect("a folder"));
        let mut scenario = Self { telegram, folder, hub: None };
        scenario.restart();
        scenario.call("/v1/conversations/chat", json!({"user_id": "ada"}), Method::PUT).await;
        let answer = scenario.call("/v1/users/ada/telegram/pair", json!({}), Method::POST).await;
        scenario.telegram.types(ADA, &format!("/start {}", answer["code"].as_str().expect("a code")));
        scenario.telegram.wait_for_sent(ADA, 1).await;
        // The next poll waits at Telegram, so that faults meet only later ones.
        scenario.telegram.wait_until("a poll", |telegram| (telegram.waiting_polls() == 1).then_some(())).await;
        scenario
    }

    fn restart(&mut self) {
        let mut command = serve(self.folder.path());
        command
            .env("BELLWIRE_TELEGRAM_TOKEN", self.telegram.token())
            .env("BELLWIRE_TELEGRAM_API_URL", self.telegram.url())
            .env("BELLWIRE_TELEGRAM_CHAT_INTERVAL_MS", "0");
        self.hub = Some(Hub::start_with(command));
    }

    fn kill(&mut self) {
        self.hub.take().expect("it runs").kill();
    }

    async fn call(&self, path: &str, body: Value, method: Method) -> Value {
        let client = Client::of(self.folder.path(), &self.hub.as_ref().expect("it runs").address);
        json(&client.expect(&Call { method, ..Call::post(path, &body) }).await)
    }

    async fn get(&self, path: &str) -> Value {
        let client = Client::of(self.folder.path(), &self.hub.as_ref().expect("it runs").address);
        json(&client.expect(&Call::get(path)).await)
    }

    /// The texts that Ada has sent to her agents, oldest first.
    async fn words(&self) -> Vec<String> {
        let list = self.get("/v1/events?type=user.message&user_id=ada&limit=100").await;
        let mut words = Vec::new();
        for event in list["items"].as_array().expect("a list").iter().rev() {
            let trace = self.get(&format!("/v1/events/{}", event["id"].as_str().expect("an id"))).await;
            words.push(trace["payload"]["text"].as_str().expect("a text").to_owned());
        }
        words
    }

    /// Waits until the last of these words is there; then no other may be.
    async fn expect_words(&self, words: &[&str]) {
        let last = words.last().copied();
        wait_for("the words", || async { self.words().await.last().map(String::as_str) == last }).await;
        assert_eq!(self.words().await, words);
    }

    /// Waits until the newest delivery has this state.
    async fn expect_state(&self, state: &str) {
        wait_for(state, || async { self.get("/v1/deliveries").await["items"][0]["state"] == state }).await;
    }

    /// What the bot has sent since the pairing.
    fn sent(&self) -> Vec<String> {
        self.telegram.sent(ADA)[1..].iter().map(|one| one.text.clone()).collect()
    }

    /// Calls `notify` with an idempotency key.
    async fn notify(&self, key: &str) -> Value {
        let context = json!({"user_id": "ada", "conversation_id": "chat", "idempotency_key": key});
        let arguments = json!({"channel": "telegram", "message": "once"});
        self.call("/v1/tools/notify", json!({"arguments": arguments, "context": context}), Method::POST).await
    }

    async fn send(&self, message: &str) {
        let context = json!({"user_id": "ada", "conversation_id": "chat"});
        let call = json!({"arguments": {"message": message}, "context": context});
        let answer = self.call("/v1/tools/send_notification", call, Method::POST).await;
        assert_eq!(answer["success"], true, "{answer}");
    }
}

async fn wait_for<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap_or_else(|_| panic!("waited a minute for {what}"));
}

#[tokio::test]
async fn killed_before_an_update_is_stored_the_hub_gets_it_again() {
    let mut scenario = ChatScenario::paired().await;
    let gate = scenario.telegram.hold("getUpdates");
    // Ends the poll that waits; the answer of the next one is held back.
    scenario.telegram.types(ADA, "first");
    scenario.expect_words(&["first"]).await;
    scenario.telegram.types(ADA, "second");
    gate.reached().await;
    scenario.kill();
    drop(gate);
    scenario.restart();
    scenario.telegram.types(ADA, "third");
    scenario.expect_words(&["first", "second", "third"]).await;
}

#[tokio::test]
async fn killed_before_an_update_is_confirmed_the_hub_does_not_handle_it_again() {
    let mut scenario = ChatScenario::paired().await;
    // No further poll reaches Telegram, so nothing is confirmed.
    for _ in 0..100 {
        scenario.telegram.fail_next("getUpdates", Fault::error(500, "Internal Server Error"));
    }
    scenario.telegram.types(ADA, "first");
    scenario.expect_words(&["first"]).await;
    assert_eq!(scenario.telegram.pending_updates(), 1, "Telegram still has it");
    scenario.kill();
    scenario.telegram.clear_faults();
    scenario.restart();
    scenario.telegram.types(ADA, "second");
    scenario.expect_words(&["first", "second"]).await;
}

#[tokio::test]
async fn killed_between_storing_and_handling_an_update_the_hub_handles_it_after_the_start() {
    let mut scenario = ChatScenario::paired().await;
    scenario.kill();
    let opening = StoreOptions {
        subscribers: Arc::new(Subscribers::bundled()),
        randomness: bellwire_core::Randomness::repeatable(1),
        clock: bellwire_server::clock::system(),
        timers: false,
        observer: None,
        people: PeopleRules::default(),
        sizes: bellwire_store::Sizes::default(),
    };
    let store = SqliteStore::open(&scenario.folder.path().join("bellwire.db"), opening).await.expect("it opens");
    let message = json!({"message_id": 50, "date": 1, "text": "stored", "from": {"id": ADA, "is_bot": false},
        "chat": {"id": ADA, "type": "private"}});
    let update =
        ChannelUpdate { id: 900_000_000, body: json!({"update_id": 900_000_000, "message": message}).to_string() };
    let telegram = ChannelName::parse("telegram").expect("a name");
    store.keep_updates(telegram, None, vec![update]).await.expect("it is stored");
    store.close().await.expect("it closes");
    drop(store);
    scenario.restart();
    scenario.expect_words(&["stored"]).await;
}

#[tokio::test]
async fn killed_while_sending_the_outcome_is_unknown_and_the_message_is_not_sent_again() {
    let mut scenario = ChatScenario::paired().await;
    let gate = scenario.telegram.hold("sendMessage");
    scenario.send("once").await;
    gate.reached().await;
    scenario.kill();
    drop(gate);
    scenario.restart();
    scenario.expect_state("unknown").await;
    scenario.send("after").await;
    scenario.expect_state("sent").await;
    assert_eq!(scenario.sent(), ["[operator] once", "[operator] after"]);
    let inbox = scenario.get("/v1/users/ada/notifications").await;
    let notes: Vec<&Value> =
        inbox["items"].as_array().expect("a list").iter().filter(|one| one["kind"] == "note").collect();
    assert_eq!(notes.len(), 1, "{inbox}");
    assert!(notes[0]["message"].as_str().is_some_and(|said| said.contains("may not have arrived")), "{inbox}");
    // A person may ask for it again.
    let unknown = scenario.get("/v1/deliveries?state=unknown").await;
    let id = unknown["items"][0]["id"].as_str().expect("an id").to_owned();
    scenario.call(&format!("/v1/deliveries/{id}/retry"), json!({}), Method::POST).await;
    scenario.telegram.wait_for_sent(ADA, 4).await;
}

#[tokio::test]
async fn killed_while_notify_sends_a_repeat_gets_an_unknown_outcome_and_sends_nothing() {
    let mut scenario = ChatScenario::paired().await;
    let gate = scenario.telegram.hold("sendMessage");
    tokio::select! {
        answer = scenario.notify("key") => panic!("{answer}"),
        () = gate.reached() => {}
    }
    scenario.kill();
    drop(gate);
    scenario.restart();
    let answer = scenario.notify("key").await;
    let error = &answer["error"];
    assert_eq!((&error["class"], &error["retryable"]), (&json!("timeout"), &json!(false)), "{answer}");
    let said = error["message"].as_str().expect("a text");
    assert!(said.starts_with("Delivery outcome unknown") && said.contains("the hub stopped"), "{said}");
    assert_eq!(scenario.sent(), ["[operator] once"]);
    assert_eq!(scenario.notify("another").await["status"], "ok");
    assert_eq!(scenario.sent().len(), 2);
}

#[tokio::test]
async fn killed_after_a_button_was_pressed_the_agent_gets_it_once_and_the_chat_shows_it() {
    let mut scenario = ChatScenario::paired().await;
    let actions = json!([{"label": "Go", "action": "prompt", "prompt": "go on"}]);
    let arguments = json!({"message": "Shall I?", "severity": "info", "actions": actions});
    let context = json!({"user_id": "ada", "conversation_id": "chat"});
    let toast = json!({"arguments": arguments, "context": context});
    scenario.call("/v1/tools/show_notification", toast, Method::POST).await;
    let asked = scenario.telegram.wait_for_sent(ADA, 2).await.remove(1);
    // The press is handled; what the chat shows is not.
    let gate = scenario.telegram.hold("answerCallbackQuery");
    for _ in 0..100 {
        scenario.telegram.fail_next("editMessageText", Fault::error(500, "Internal Server Error"));
    }
    scenario.telegram.presses(ADA, asked.message_id, "Go");
    gate.reached().await;
    scenario.kill();
    drop(gate);
    scenario.telegram.clear_faults();
    scenario.restart();
    let edited = |telegram: &Standin| telegram.sent(ADA).into_iter().find(|one| one.text.ends_with("Pressed: Go"));
    scenario.telegram.wait_until("the edit", edited).await;
    let asked = json!({"point": "turn_start", "call_id": "turn"});
    let block = scenario.call("/v1/conversations/chat/inject", asked, Method::POST).await;
    assert_eq!(block["block"].as_str().expect("a block").matches("go on").count(), 1, "{block}");
}

#[tokio::test]
async fn killed_again_and_again_while_a_person_writes_nothing_is_lost_and_nothing_doubled() {
    let mut scenario = ChatScenario::paired().await;
    let mut words = Vec::new();
    for round in 0..5 {
        for word in 0..5 {
            let text = format!("{round}.{word}");
            scenario.telegram.types(ADA, &text);
            words.push(text);
        }
        // Somewhere between the first and the last of them.
        while scenario.words().await.len() <= round * 5 {
            tokio::task::yield_now().await;
        }
        scenario.kill();
        scenario.restart();
    }
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    scenario.expect_words(&words).await;
}

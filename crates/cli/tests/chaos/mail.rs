//! Kills the hub at each step of a delivery: no mail is lost or sent twice, and an uncertain outcome becomes `unknown` and
//! is reported to the person and to the conversation.
//!
//! The mail server stops at an exact step until the test lets it go on. For the steps between two commits of the outbox,
//! the test claims and starts deliveries in the store itself.

use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use bellwire_core::Subscribers;
use bellwire_core::person::ChannelName;
use bellwire_store::{
    AttemptStart, ChannelRules, Claim, People as _, PeopleRules, SqliteStore, Store as _, StoreOptions,
};
use reqwest::Method;
use serde_json::{Value, json};

use crate::client::{Call, Client, json};
use crate::hub::{Hub, serve};
use crate::peer::{MailServer, listener};

fn email() -> ChannelName {
    ChannelName::parse("email").expect("a name")
}

/// A hub, a person with a confirmed address, and a mail server.
struct MailScenario {
    server: MailServer,
    folder: tempfile::TempDir,
    hub: Option<Hub>,
}

impl MailScenario {
    /// The server accepts the confirmation mail and stops at this step of the next one.
    async fn held_at(step: &str, take: bool) -> Self {
        let fault = json!([{"at": step, "do": "hold", "after": 1, "times": 1, "take": take}]);
        let server = MailServer::start(&[listener("x", fault)]);
        let mut scenario = Self { server, folder: tempfile::tempdir().expect("a folder"), hub: None };
        scenario.restart();
        scenario.put("/v1/conversations/chat", json!({"user_id": "ada"}), Method::PUT).await;
        let address = json!({"email": {"enabled": true, "address": "ada@example.org"}});
        scenario.put("/v1/users/ada/settings", address, Method::PATCH).await;
        wait_for("the code", || async { scenario.server.received("x").len() == 1 }).await;
        let mail = scenario.server.received("x").remove(0);
        let text = mail["parts"][0][1].as_str().expect("a text");
        let code = text.lines().map(str::trim).find(|line| line.len() == 6 && line.parse::<u32>().is_ok());
        scenario.put("/v1/users/ada/email/confirm", json!({"code": code.expect("a code")}), Method::POST).await;
        scenario
    }

    fn restart(&mut self) {
        let settings = self.server.settings("x");
        let mut command = serve(self.folder.path());
        command
            .env("BELLWIRE_EMAIL_HOST", &settings.host)
            .env("BELLWIRE_EMAIL_PORT", settings.port.to_string())
            .env("BELLWIRE_EMAIL_CA_FILE", settings.ca_file.expect("the server has a certificate"))
            .env("BELLWIRE_EMAIL_WORKERS", "1");
        self.hub = Some(Hub::start_with(command));
    }

    fn hub(&self) -> &Hub {
        self.hub.as_ref().expect("it runs")
    }

    fn kill(&mut self) {
        self.hub.take().expect("it runs").kill();
    }

    fn client(&self) -> Client {
        Client::of(self.folder.path(), &self.hub().address)
    }

    async fn put(&self, path: &str, body: Value, method: Method) -> Value {
        json(&self.client().expect(&Call { method, ..Call::post(path, &body) }).await)
    }

    async fn notify(&self, message: &str) {
        let context = json!({"user_id": "ada", "conversation_id": "chat"});
        let call = json!({"arguments": {"message": message}, "context": context});
        let answer = self.put("/v1/tools/send_notification", call, Method::POST).await;
        assert_eq!(answer["success"], true, "{answer}");
    }

    /// Waits until the server has seen this step so many times.
    async fn wait_for_step(&self, step: &str, times: usize) {
        let heard = || async { self.server.heard("x").iter().filter(|word| *word == step).count() >= times };
        wait_for(step, heard).await;
    }

    /// The delivery states of the notifications, oldest first.
    async fn states(&self) -> Vec<String> {
        let list = json(&self.client().expect(&Call::get("/v1/deliveries")).await);
        let items = list["items"].as_array().expect("a list").iter().rev();
        let told = items.filter(|one| one["notification_id"].is_string());
        told.map(|one| one["state"].as_str().expect("a word").to_owned()).collect()
    }

    async fn wait_for_states(&self, states: &[&str]) {
        wait_for(&format!("{states:?}"), || async { self.states().await == states }).await;
    }

    /// The subjects of the received mails, without the confirmation mail.
    fn arrived(&self) -> Vec<String> {
        let subject = |mail: &Value| {
            let headers = mail["headers"].as_array().expect("headers").iter();
            let subject = headers.filter(|header| header[0] == "Subject").map(|header| &header[1]).next();
            subject.and_then(Value::as_str).expect("a subject").to_owned()
        };
        self.server.received("x").iter().skip(1).map(subject).collect()
    }

    /// The person's inbox has a note, and the conversation's next block reports the delivery.
    async fn check_unknown_is_reported(&self) {
        let inbox = json(&self.client().expect(&Call::get("/v1/users/ada/notifications")).await);
        let notes: Vec<&Value> =
            inbox["items"].as_array().expect("a list").iter().filter(|one| one["kind"] == "note").collect();
        assert_eq!(notes.len(), 1, "{inbox}");
        assert_eq!((&notes[0]["origin"], &notes[0]["conversation_id"]), (&json!("bellwire"), &json!("chat")));
        let said = notes[0]["message"].as_str().expect("a text");
        assert!(said.starts_with("A message to you by email may not have arrived (ada@example.org)"), "{said}");
        let asked = json!({"point": "turn_start", "call_id": "turn"});
        let block = self.put("/v1/conversations/chat/inject", asked, Method::POST).await;
        let block = block["block"].as_str().expect("a block");
        assert!(block.contains("delivery_failed: email") && block.contains("the hub stopped while"), "{block}");
    }

    /// Retries the first unknown delivery.
    async fn retry(&self) {
        let list = json(&self.client().expect(&Call::get("/v1/deliveries?state=unknown")).await);
        let id = list["items"][0]["id"].as_str().expect("an id");
        let answer = self.put(&format!("/v1/deliveries/{id}/retry"), json!({}), Method::POST).await;
        assert_eq!(answer["state"], "waiting", "{answer}");
    }

    /// Opens the killed hub's store, so that the test can act as its outbox worker.
    async fn worker(&self) -> SqliteStore {
        let opening = StoreOptions {
            subscribers: Arc::new(Subscribers::bundled()),
            randomness: bellwire_core::Randomness::repeatable(1),
            clock: bellwire_server::clock::system(),
            timers: false,
            observer: None,
            people: PeopleRules::default().with_channel(email(), ChannelRules::new("email")),
            sizes: bellwire_store::Sizes::SMALL,
        };
        SqliteStore::open(&database(self.folder.path()), opening).await.expect("nobody serves it")
    }

    /// Kills the hub while its only worker sends one mail and another delivery waits.
    async fn killed_before_a_claim() -> Self {
        let mut scenario = Self::held_at("data", false).await;
        scenario.notify("first").await;
        scenario.wait_for_step("data", 2).await;
        scenario.notify("second").await;
        assert_eq!(scenario.states().await, ["started", "waiting"]);
        scenario.kill();
        scenario.server.go("x");
        scenario
    }
}

fn database(folder: &Path) -> std::path::PathBuf {
    folder.join("bellwire.db")
}

async fn claim(store: &SqliteStore) -> Claim {
    let mut claims = store.claim(email(), 1).await.expect("it can be claimed");
    assert_eq!(claims.len(), 1, "{claims:?}");
    claims.remove(0)
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
async fn killed_before_the_claim_a_mail_is_sent_once_by_the_next_hub() {
    let mut scenario = MailScenario::killed_before_a_claim().await;
    scenario.restart();
    scenario.wait_for_states(&["unknown", "sent"]).await;
    assert_eq!(scenario.arrived(), ["[operator] Info: second"]);
    scenario.check_unknown_is_reported().await;
}

#[tokio::test]
async fn killed_after_the_claim_a_mail_is_sent_once_by_the_next_hub_without_waiting_for_the_lease() {
    let mut scenario = MailScenario::killed_before_a_claim().await;
    let store = scenario.worker().await;
    claim(&store).await;
    store.close().await.expect("it closes");
    scenario.restart();
    scenario.wait_for_states(&["unknown", "sent"]).await;
    assert_eq!(scenario.arrived(), ["[operator] Info: second"]);
}

#[tokio::test]
async fn killed_between_recording_an_attempt_and_its_first_byte_it_is_unknown_until_a_retry_is_requested() {
    let mut scenario = MailScenario::killed_before_a_claim().await;
    let store = scenario.worker().await;
    let claimed = claim(&store).await;
    let mail = AttemptStart { message_id: claimed.message_id, fence: claimed.fence, code: None };
    assert!(store.start(mail).await.expect("it begins"));
    store.close().await.expect("it closes");
    scenario.restart();
    scenario.wait_for_states(&["unknown", "unknown"]).await;
    scenario.notify("third").await;
    scenario.wait_for_states(&["unknown", "unknown", "sent"]).await;
    assert_eq!(scenario.arrived(), ["[operator] Info: third"], "nobody asked for the others");
    scenario.retry().await;
    scenario.wait_for_states(&["unknown", "sent", "sent"]).await;
    assert_eq!(scenario.arrived()[1..], ["[operator] Info: second"]);
}

#[tokio::test]
async fn killed_during_the_transfer_it_is_unknown_and_not_sent_again() {
    // Before the message text, and after the final dot but before the server has stored it.
    for step in ["data", "end"] {
        let mut scenario = MailScenario::held_at(step, false).await;
        scenario.notify("news").await;
        scenario.wait_for_step(step, 2).await;
        scenario.kill();
        scenario.restart();
        scenario.wait_for_states(&["unknown"]).await;
        scenario.check_unknown_is_reported().await;
        scenario.notify("more").await;
        scenario.wait_for_states(&["unknown", "sent"]).await;
        assert_eq!(scenario.arrived(), ["[operator] Info: more"], "killed at {step}");
    }
}

#[tokio::test]
async fn killed_after_the_server_stored_the_mail_and_before_its_answer_it_is_unknown_and_arrives_once() {
    let mut scenario = MailScenario::held_at("end", true).await;
    scenario.notify("news").await;
    scenario.wait_for_step("end", 2).await;
    scenario.kill();
    scenario.restart();
    scenario.wait_for_states(&["unknown"]).await;
    scenario.check_unknown_is_reported().await;
    scenario.notify("more").await;
    scenario.wait_for_states(&["unknown", "sent"]).await;
    assert_eq!(scenario.arrived(), ["[operator] Info: news", "[operator] Info: more"]);
}

#[tokio::test]
async fn killed_after_the_servers_answer_and_before_the_commit_it_is_unknown_and_arrives_once() {
    let mut scenario = MailScenario::held_at("end", false).await;
    scenario.notify("news").await;
    scenario.wait_for_step("end", 2).await;
    // Stop the hub while the answer arrives, so that it cannot commit it.
    let stopped = Command::new("kill").args(["-STOP", &scenario.hub().pid().to_string()]).status();
    assert!(stopped.expect("kill runs").success(), "the hub runs");
    scenario.server.go("x");
    scenario.wait_for_step("answered", 2).await;
    scenario.kill();
    scenario.restart();
    scenario.wait_for_states(&["unknown"]).await;
    scenario.check_unknown_is_reported().await;
    scenario.notify("more").await;
    scenario.wait_for_states(&["unknown", "sent"]).await;
    assert_eq!(scenario.arrived(), ["[operator] Info: news", "[operator] Info: more"]);
}

/// On SIGTERM the hub waits a short time for the answer to a mail in flight.
#[tokio::test]
async fn on_sigterm_it_waits_for_the_servers_answer_or_leaves_it_unknown() {
    for (answers, state) in [(true, "sent"), (false, "unknown")] {
        let mut scenario = MailScenario::held_at("end", false).await;
        scenario.notify("news").await;
        scenario.wait_for_step("end", 2).await;
        scenario.hub().terminate();
        if answers {
            scenario.server.go("x");
        }
        let (status, said) = scenario.hub.take().expect("it runs").wait();
        assert_eq!(status.code(), Some(0), "{said}");
        scenario.restart();
        scenario.wait_for_states(&[state]).await;
        assert_eq!(scenario.arrived().len(), usize::from(answers), "nothing is sent again");
    }
}

#[tokio::test]
async fn killed_after_the_commit_it_is_sent_and_stays_sent() {
    let mut scenario = MailScenario::held_at("quit", false).await;
    scenario.notify("news").await;
    scenario.wait_for_states(&["sent"]).await;
    scenario.kill();
    scenario.restart();
    scenario.notify("more").await;
    scenario.wait_for_states(&["sent", "sent"]).await;
    assert_eq!(scenario.arrived(), ["[operator] Info: news", "[operator] Info: more"]);
}

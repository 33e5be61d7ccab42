//! From an agent's tool call to a real SMTP server, and back through the unsubscribe link.

mod deferred;
mod hostile;
mod misbehaviour;
mod notify;
mod stopped;

use std::time::Duration;

use bellwire_server::Config;
use bellwire_server::config::EmailConfig;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::email::peer::{MailServer, listener};
use crate::hub::TestHub;
use crate::people::send;

/// A hub that sends to one port of the mail server, an agent's token, and the user Ada with a confirmed address.
pub(crate) struct Post<'a> {
    pub(crate) server: &'a MailServer,
    pub(crate) port: &'a str,
    pub(crate) hub: TestHub,
    pub(crate) agent: String,
    pub(crate) ada: String,
}

impl<'a> Post<'a> {
    pub(crate) async fn open(server: &'a MailServer, port: &'a str) -> Self {
        Self::open_with(server, port, server.settings(port)).await
    }

    pub(crate) async fn open_with(server: &'a MailServer, port: &'a str, email: EmailConfig) -> Self {
        Self::open_on(server, port, Config { email, ..Config::default() }).await
    }

    /// Starts a hub; Ada sets an address and confirms it with the code sent there.
    pub(crate) async fn open_on(server: &'a MailServer, port: &'a str, mut config: Config) -> Self {
        (config.limits.notifications_per_hour, config.limits.toasts_per_hour) = (1000, 1000);
        let hub = TestHub::start_with(config).await;
        let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
        let post = Self { server, port, hub, agent, ada };
        post.change(json!({"email": {"enabled": true, "address": "ada@example.org"}})).await;
        let code = code_in(&post.received(1).await[0]);
        let (status, _) = post.hub.post(&post.ada, "/v1/users/ada/email/confirm", json!({"code": "000000x"})).await;
        assert_eq!(status, StatusCode::CONFLICT);
        let (status, settings) = post.hub.post(&post.ada, "/v1/users/ada/email/confirm", json!({"code": code})).await;
        assert_eq!((status, &settings["email"]["confirmed"]), (StatusCode::OK, &json!(true)), "{settings}");
        post
    }

    pub(crate) async fn change(&self, settings: Value) {
        let (status, answer) = self.hub.call(&self.ada, Method::PATCH, "/v1/users/ada/settings", Some(settings)).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
    }

    /// Waits until this many mails have arrived at the port; the first is the confirmation.
    pub(crate) async fn received(&self, count: usize) -> Vec<Value> {
        wait_for(&format!("{count} mails"), || async { self.server.received(self.port).len() >= count }).await;
        self.server.received(self.port)
    }

    /// Ada's deliveries except the confirmation, newest first.
    pub(crate) async fn deliveries(&self) -> Vec<Value> {
        let (_, list) = self.hub.get(&self.ada, "/v1/deliveries?limit=100").await;
        let items = list["items"].as_array().unwrap().iter();
        items.filter(|one| one["notification_id"].is_string()).cloned().collect()
    }

    /// Waits until the newest delivery has this state and number of attempts.
    pub(crate) async fn until(&self, state: &str, attempts: u64) -> Value {
        let wanted = |one: &Value| one["state"] == state && one["attempts"].as_u64() >= Some(attempts);
        let is_so = || async { self.deliveries().await.first().is_some_and(wanted) };
        wait_for(&format!("{}: {state} after {attempts}", self.port), is_so).await;
        self.deliveries().await.remove(0)
    }

    pub(crate) async fn inbox(&self) -> Vec<Value> {
        let (_, list) = self.hub.get(&self.ada, "/v1/users/ada/notifications?limit=100").await;
        list["items"].as_array().unwrap().clone()
    }
}

pub(crate) async fn wait_for<F: Future<Output = bool>>(what: &str, mut is_so: impl FnMut() -> F) {
    let wait = async {
        while !is_so().await {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), wait).await.unwrap_or_else(|_| panic!("waited a minute for {what}"));
}

pub(crate) fn plain(mail: &Value) -> &str {
    let parts = mail["parts"].as_array().unwrap();
    parts.iter().find(|part| part[0] == "text/plain").and_then(|part| part[1].as_str()).unwrap()
}

pub(crate) fn header<'a>(mail: &'a Value, name: &str) -> &'a str {
    let headers = mail["headers"].as_array().unwrap();
    headers.iter().find(|header| header[0] == name).and_then(|header| header[1].as_str()).unwrap()
}

fn code_in(mail: &Value) -> String {
    let is_code = |line: &&str| line.len() == 6 && line.parse::<u32>().is_ok();
    plain(mail).lines().map(str::trim).find(is_code).unwrap().to_owned()
}

#[tokio::test]
async fn notifications_are_mailed_until_the_person_unsubscribes() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = Post::open(&server, "x").await;
    let hub = &post.hub;
    send(hub, &post.agent, "Buy milk").await;
    let mail = post.received(2).await.remove(1);
    assert_eq!(header(&mail, "Subject"), "[butler] Info: Buy milk");
    assert_eq!(header(&mail, "List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");
    post.until("sent", 1).await;
    let link = header(&mail, "List-Unsubscribe").trim_matches(['<', '>']).to_owned();
    assert!(link.starts_with(&hub.base), "{link}");
    let posted = hub.client.post(&link).body("List-Unsubscribe=One-Click").send().await.unwrap();
    assert_eq!(posted.status(), StatusCode::OK);
    send(hub, &post.agent, "after the end").await;
    assert_eq!(post.deliveries().await.len(), 1, "nothing more was planned");
    assert_eq!(server.received("x").len(), 2);
    let metrics = reqwest::get(format!("{}/metrics", hub.base)).await.unwrap().text().await.unwrap();
    assert!(metrics.contains("bellwire_deliveries_waiting{channel=\"email\"} 0"), "{metrics}");
    post.hub.stop().await;
}

#[tokio::test]
async fn an_unconfirmed_address_gets_no_deliveries() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let hub = TestHub::start_with(Config { email: server.settings("x"), ..Config::default() }).await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    send(&hub, &agent, "before there is an address").await;
    let address = json!({"email": {"enabled": true, "address": "ada@example.org"}});
    hub.call(&ada, Method::PATCH, "/v1/users/ada/settings", Some(address)).await;
    send(&hub, &agent, "before it is confirmed").await;
    let (_, list) = hub.get(&ada, "/v1/deliveries").await;
    let planned = list["items"].as_array().unwrap();
    assert_eq!((planned.len(), &planned[0]["notification_id"]), (1, &Value::Null), "only the code: {list}");
}

//! From an agent's tool call to a real mail server, and back by the link in the mail.

use std::time::Duration;

use bellwire_server::Config;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::email::peer::{MailServer, listener};
use crate::hub::TestHub;
use crate::people::send;

/// Waits for so many mails at this port.
async fn received(server: &MailServer, name: &str, count: usize) -> Vec<Value> {
    let wait = async {
        while server.received(name).len() < count {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("the mails arrive within 20 seconds");
    server.received(name)
}

fn plain(mail: &Value) -> &str {
    let parts = mail["parts"].as_array().unwrap();
    parts.iter().find(|part| part[0] == "text/plain").and_then(|part| part[1].as_str()).unwrap()
}

fn header<'a>(mail: &'a Value, name: &str) -> &'a str {
    let headers = mail["headers"].as_array().unwrap();
    headers.iter().find(|header| header[0] == name).and_then(|header| header[1].as_str()).unwrap()
}

async fn patch(hub: &TestHub, ada: &str, body: Value) -> Value {
    let (status, answer) = hub.call(ada, Method::PATCH, "/v1/users/ada/settings", Some(body)).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer
}

/// Ada reads mail: she sets an address and types in the code that arrives there.
async fn mail_to_ada(hub: &TestHub, server: &MailServer, ada: &str) {
    patch(hub, ada, json!({"email": {"enabled": true, "address": "ada@example.org"}})).await;
    let mail = received(server, "x", 1).await.remove(0);
    let code = plain(&mail).lines().map(str::trim).find(|line| line.len() == 6 && line.parse::<u32>().is_ok()).unwrap();
    let (status, _) = hub.post(ada, "/v1/users/ada/email/confirm", json!({"code": "000000x"})).await;
    assert_eq!(status, StatusCode::CONFLICT);
    let (status, settings) = hub.post(ada, "/v1/users/ada/email/confirm", json!({ "code": code })).await;
    assert_eq!((status, &settings["email"]["confirmed"]), (StatusCode::OK, &json!(true)), "{settings}");
}

#[tokio::test]
async fn what_an_agent_says_is_mailed_to_who_asked_for_it_until_the_link_ends_it() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let hub = TestHub::start_with(Config { email: server.settings("x"), ..Config::default() }).await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    send(&hub, &agent, "before there is an address").await;
    mail_to_ada(&hub, &server, &ada).await;
    send(&hub, &agent, "Buy milk").await;
    let mail = received(&server, "x", 2).await.remove(1);
    assert_eq!(header(&mail, "Subject"), "[butler] Info: Buy milk");
    assert_eq!(header(&mail, "List-Unsubscribe-Post"), "List-Unsubscribe=One-Click");
    let sent = || async {
        let (_, list) = hub.get(&ada, "/v1/deliveries?state=sent").await;
        list["items"].as_array().unwrap().len()
    };
    let wait = async {
        while sent().await < 2 {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(20), wait).await.expect("what was sent is known to be");
    let link = header(&mail, "List-Unsubscribe").trim_matches(['<', '>']).to_owned();
    assert!(link.starts_with(&hub.base), "{link}");
    let posted = hub.client.post(&link).body("List-Unsubscribe=One-Click").send().await.unwrap();
    assert_eq!(posted.status(), StatusCode::OK);
    send(&hub, &agent, "after the end").await;
    let (_, list) = hub.get(&ada, "/v1/deliveries").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 2, "nothing more was planned: {list}");
    assert_eq!(server.received("x").len(), 2);
    let metrics = reqwest::get(format!("{}/metrics", hub.base)).await.unwrap().text().await.unwrap();
    assert!(metrics.contains("bellwire_deliveries_waiting 0"), "{metrics}");
    hub.stop().await;
}

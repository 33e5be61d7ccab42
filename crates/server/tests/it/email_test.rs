//! `POST /v1/email/test`: a test email with a report on each step.

use std::time::Duration;

use bellwire_server::Config;
use bellwire_server::config::{EmailConfig, Secret};
use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::email::peer::{MailServer, listener};
use crate::hub::TestHub;

const PASSWORD: &str = "correct horse";

async fn hub_with(email: EmailConfig) -> TestHub {
    TestHub::start_with(Config { email, ..Config::default() }).await
}

async fn test(hub: &TestHub) -> Value {
    let (status, report) = hub.post(&hub.admin, "/v1/email/test", json!({"address": "ada@example.org"})).await;
    assert_eq!(status, StatusCode::OK, "{report}");
    report
}

/// The results of the steps, in order.
fn results(report: &Value) -> Vec<(&str, &str)> {
    let steps = report["steps"].as_array().unwrap().iter();
    steps.map(|step| (step["step"].as_str().unwrap(), step["result"].as_str().unwrap())).collect()
}

fn login(settings: EmailConfig, password: &str) -> EmailConfig {
    EmailConfig { username: "bell".into(), password: Some(Secret::new(password)), ..settings }
}

#[tokio::test]
async fn encryption_and_login_are_steps_of_their_own() {
    let both = |name: &str, tls: &str| json!({"name": name, "tls": tls, "login": format!("bell:{PASSWORD}")});
    let server = MailServer::start(&[both("late", "starttls"), both("early", "implicit")]);
    let late = hub_with(login(server.settings("late"), PASSWORD)).await;
    let report = test(&late).await;
    assert_eq!(report["outcome"], "accepted", "{report}");
    let steps = ["configuration", "connect", "greeting", "tls", "login", "message"];
    assert_eq!(results(&report), steps.map(|step| (step, "ok")), "{report}");
    let received = server.received("late");
    assert_eq!((received.len(), &received[0]["defects"]), (1, &json!([])), "{received:?}");
    assert_eq!(received[0]["recipients"], json!([["", "ada@example.org"]]), "{received:?}");

    let early = EmailConfig { tls: bellwire_server::config::EmailTls::Implicit, ..server.settings("early") };
    let report = test(&hub_with(login(early, PASSWORD)).await).await;
    let steps = ["configuration", "connect", "tls", "greeting", "login", "message"];
    assert_eq!(results(&report), steps.map(|step| (step, "ok")), "{report}");

    let report = test(&hub_with(login(server.settings("late"), "wrong horse")).await).await;
    let expected = [
        ("configuration", "ok"),
        ("connect", "ok"),
        ("greeting", "ok"),
        ("tls", "ok"),
        ("login", "failed"),
        ("message", "not_reached"),
    ];
    assert_eq!(results(&report), expected, "{report}");
    assert_eq!(report["outcome"], "misconfigured", "{report}");
    assert!(!report.to_string().contains("wrong horse"), "{report}");
}

#[tokio::test]
async fn the_failed_step_is_named_and_no_later_one_is_reached() {
    let faults = ["greeting", "ehlo", "starttls"].map(|at| listener(at, json!([{"at": at, "do": "554 5.3.2 closed"}])));
    let untrusted = listener("untrusted", json!([]));
    let server = MailServer::start(&[&faults[..], &[untrusted]].concat());
    for (name, step) in [("greeting", "greeting"), ("ehlo", "greeting"), ("starttls", "tls"), ("untrusted", "tls")] {
        let ca_file = server.settings(name).ca_file.filter(|_| name != "untrusted");
        let report = test(&hub_with(EmailConfig { ca_file, ..server.settings(name) }).await).await;
        let failed: Vec<_> = results(&report).into_iter().filter(|(_, result)| *result == "failed").collect();
        assert_eq!(failed, [(step, "failed")], "{name}: {report}");
        assert_eq!(results(&report).last(), Some(&("message", "not_reached")), "{name}: {report}");
        assert_eq!(report["outcome"], "misconfigured", "{name}: {report}");
    }
}

#[tokio::test]
async fn a_slow_server_is_answered_before_the_request_times_out() {
    let hangs = |at: &str| listener(at, json!([{"at": at, "do": "hang"}]));
    let server = MailServer::start(&[hangs("rcpt"), hangs("end")]);
    for (name, outcome, result) in [("rcpt", "not_sent", "failed"), ("end", "unknown", "unknown")] {
        let mut config = Config { email: server.settings(name), ..Config::default() };
        config.limits.request_seconds = 5;
        let hub = TestHub::start_with(config).await;
        let report = tokio::time::timeout(Duration::from_secs(30), test(&hub)).await.unwrap();
        assert_eq!(
            (&report["outcome"], results(&report).pop()),
            (&json!(outcome), Some(("message", result))),
            "{report}"
        );
        assert!(report["message"].as_str().unwrap().contains("no answer within 4 s"), "{report}");
    }
}

#[tokio::test]
async fn tests_are_limited_and_a_repeated_one_is_sent_once() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let hub = hub_with(server.settings("x")).await;
    let keyed = |address: &str| {
        let request = hub.client.post(format!("{}/v1/email/test", hub.base)).bearer_auth(&hub.admin);
        request.header("idempotency-key", "k1").json(&json!({"address": address})).send()
    };
    let first: Value = keyed("ada@example.org").await.unwrap().json().await.unwrap();
    let second: Value = keyed("ada@example.org").await.unwrap().json().await.unwrap();
    assert_eq!((&first, &first["outcome"]), (&second, &json!("accepted")));
    assert_eq!(keyed("eve@example.org").await.unwrap().status(), StatusCode::CONFLICT);
    assert_eq!(server.received("x").len(), 1, "the repeat was not sent");
    for _ in 0..4 {
        test(&hub).await;
    }
    let sixth = hub.client.post(format!("{}/v1/email/test", hub.base)).bearer_auth(&hub.admin);
    let sixth = sixth.json(&json!({"address": "ada@example.org"})).send().await.unwrap();
    assert_eq!(sixth.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(sixth.headers()["retry-after"].to_str().unwrap().parse::<u64>().unwrap() <= 61);
    assert_eq!(server.received("x").len(), 5);
    let (status, answer) = hub.post(&hub.admin, "/v1/email/test", json!({"address": "a@b.org, c@d.org"})).await;
    assert_eq!((status, &answer["error"]["field"]), (StatusCode::BAD_REQUEST, &json!("address")), "{answer}");
}

#[tokio::test]
async fn a_hub_without_email_says_what_to_set() {
    let hub = TestHub::start().await;
    let report = test(&hub).await;
    assert_eq!(results(&report), [("configuration", "failed")]);
    assert!(report["message"].as_str().unwrap().contains("email.host is empty"), "{report}");
}

#[tokio::test]
async fn a_person_tests_the_own_confirmed_address_once_in_ten_minutes_and_learns_no_settings() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = crate::mailed::Post::open(&server, "x").await;
    let path = "/v1/users/ada/email/test";
    let bob = post.hub.token("user", "bob").await;
    assert_eq!(post.hub.post(&bob, path, json!({})).await.0, StatusCode::NOT_FOUND);
    let (status, answer) = post.hub.post(&bob, "/v1/users/bob/email/test", json!({})).await;
    assert_eq!(status, StatusCode::CONFLICT, "{answer}");
    let (status, answer) = post.hub.post(&post.ada, path, json!({})).await;
    assert_eq!((status, &answer["outcome"]), (StatusCode::OK, &json!("accepted")), "{answer}");
    assert!(answer.get("steps").is_none() && !answer.to_string().contains("127.0.0.1"), "{answer}");
    let mails = post.received(2).await;
    assert_eq!(mails[1]["recipients"], json!([["", "ada@example.org"]]));
    let (status, answer) = post.hub.post(&post.ada, path, json!({})).await;
    assert_eq!((status, &answer["error"]["code"]), (StatusCode::TOO_MANY_REQUESTS, &json!("rate_limited")), "{answer}");
    let (status, _) = post.hub.post(&post.ada, "/v1/users/ada/nothing/test", json!({})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

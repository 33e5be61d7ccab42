//! A misbehaving mail server, from the agent's call to the outcome: what arrived and how often, the delivery's state, and
//! which events report it.

use bellwire_server::config::{EmailConfig, Secret};
use futures_util::future::join_all;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use super::{Post, header};
use crate::email::peer::{MailServer, listener};
use crate::people::send;

/// The SMTP timeout of these tests: long enough for a busy machine, short enough to wait for.
const SILENCE_SECONDS: u64 = 5;

/// One fault of the server and the expected outcome.
struct Case {
    name: &'static str,
    fault: Value,
    state: &'static str,
    /// The expected number of attempts.
    attempts: u64,
    /// The expected number of copies that arrived.
    copies: usize,
    /// The expected `reason` of the delivery.
    reason: &'static str,
}

fn case(name: &'static str, state: &'static str, attempts: u64, copies: usize, reason: &'static str) -> Case {
    Case { name, fault: Value::Null, state, attempts, copies, reason }
}

impl Case {
    /// Whether the server says that the address does not exist.
    fn is_gone(&self) -> bool {
        self.reason.contains("5.1.1")
    }

    /// The port accepts the confirmation mail and then has this fault.
    fn by(self, at: &str, deed: &str, more: Value) -> Self {
        let mut fault = json!({"at": at, "do": deed, "after": 1});
        fault.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        Self { fault, ..self }
    }
}

/// Runs each case with a port and a hub of its own.
async fn play(cases: Vec<Case>) {
    let ports: Vec<Value> = cases.iter().map(|case| listener(case.name, json!([case.fault]))).collect();
    let server = MailServer::start(&ports);
    join_all(cases.iter().map(|case| one(&server, case))).await;
}

async fn one(server: &MailServer, case: &Case) {
    let email =
        EmailConfig { step_seconds: SILENCE_SECONDS, answer_seconds: SILENCE_SECONDS, ..server.settings(case.name) };
    let post = Post::open_with(server, case.name, email).await;
    send(&post.hub, &post.agent, "Buy milk").await;
    let delivery = post.until(case.state, case.attempts).await;
    let name = case.name;
    assert_eq!(delivery["attempts"], case.attempts, "{name}: {delivery}");
    assert!(delivery["reason"].as_str().unwrap_or_default().contains(case.reason), "{name}: {delivery}");
    let arrived = &server.received(name)[1..];
    assert_eq!(arrived.len(), case.copies, "{name}: what arrived");
    for mail in arrived {
        assert_eq!((header(mail, "Subject"), &mail["defects"]), ("[butler] Info: Buy milk", &json!([])), "{name}");
        assert_eq!(mail["recipients"], json!([["", "ada@example.org"]]), "{name}");
    }
    let is_over = case.state != "waiting";
    assert_eq!(delivery["ended_at"].is_string(), is_over, "{name}: {delivery}");
    is_told(&post, case).await;
    post.hub.stop().await;
}

/// Checks the reports: none for a mail that was sent or will be retried, one for a mail that failed or is unknown.
async fn is_told(post: &Post<'_>, case: &Case) {
    let name = case.name;
    let opening = match case.state {
        "failed" if case.is_gone() => Some(
            "A message to you by email could not be delivered, and email is now switched off in your settings \
             (ada@example.org): ",
        ),
        "failed" => Some("A message to you by email could not be delivered (ada@example.org): "),
        "unknown" => Some("A message to you by email may not have arrived (ada@example.org): "),
        _ => None,
    };
    let inbox = post.inbox().await;
    let notes: Vec<&Value> = inbox.iter().filter(|item| item["kind"] == "note").collect();
    assert_eq!(notes.len(), usize::from(opening.is_some()), "{name}: {notes:?}");
    let turn = json!({"point": "turn_start", "call_id": "turn"});
    let (_, answer) = post.hub.post(&post.agent, "/v1/conversations/chat/inject", turn).await;
    let block = answer["block"].as_str().unwrap();
    assert_eq!(block.contains("delivery_failed: "), opening.is_some(), "{name}: {block}");
    let (Some(opening), Some(note)) = (opening, notes.first()) else { return };
    let said = note["message"].as_str().unwrap();
    assert!(said.starts_with(opening) && said.contains(case.reason), "{name}: {said}");
    assert_eq!((&note["origin"], &note["conversation_id"]), (&json!("bellwire"), &json!("chat")), "{name}");
    assert!(block.contains(case.reason), "{name}: the agent reads why: {block}");
    assert!(block.contains("email (Buy milk) - "), "{name}: and of which: {block}");
    let (_, settings) = post.hub.get(&post.ada, "/v1/users/ada/settings").await;
    assert_eq!(settings["email"]["enabled"], !case.is_gone(), "{name}: only a missing mailbox switches mail off");
    assert_eq!(settings["email"]["confirmed"], true, "{name}");
}

#[tokio::test]
async fn a_temporary_failure_before_the_final_dot_is_retried_and_arrives_once() {
    let once = || json!({"times": 1});
    play(vec![
        case("rcpt-4xx", "sent", 2, 1, "").by("rcpt", "451 4.3.0 later", once()),
        case("end-4xx", "sent", 2, 1, "").by("end", "452 4.2.2 full", once()),
        case("rcpt-hang", "sent", 2, 1, "").by("rcpt", "hang", once()),
        case("data-drop", "sent", 2, 1, "").by("data", "drop", once()),
        case("greeting-close", "sent", 2, 1, "").by("greeting", "close", once()),
        case("starttls-4xx", "sent", 2, 1, "").by("starttls", "454 4.7.0 no TLS now", once()),
    ])
    .await;
}

#[tokio::test]
async fn a_permanent_refusal_fails_and_is_reported() {
    play(vec![
        case("rcpt-5xx", "failed", 1, 0, "550 5.1.1 no such user").by("rcpt", "550 5.1.1 no such user", json!({})),
        case("mail-5xx", "failed", 1, 0, "550 5.7.1 not you").by("mail", "550 5.7.1 not you", json!({})),
        case("end-5xx", "failed", 1, 0, "554 5.7.1 spam").by("end", "554 5.7.1 spam", json!({})),
    ])
    .await;
}

#[tokio::test]
async fn an_agent_never_reads_the_address_that_a_mail_server_repeats() {
    let said = "550 5.1.1 <Ada@example.org>: no mailbox 'ada' at ada@example.org";
    let fault = json!({"at": "rcpt", "do": said, "after": 1});
    let server = MailServer::start(&[listener("x", json!([fault]))]);
    let post = Post::open(&server, "x").await;
    send(&post.hub, &post.agent, "Buy milk").await;
    let delivery = post.until("failed", 1).await;
    assert_eq!(delivery["target"], "ada@example.org", "the person sees where it went");
    let turn = json!({"point": "turn_start", "call_id": "turn"});
    let (_, answer) = post.hub.post(&post.agent, "/v1/conversations/chat/inject", turn).await;
    let block = answer["block"].as_str().unwrap();
    assert!(block.contains("550 5.1.1 &lt;[address]>: no mailbox '[address]' at [address]"), "{block}");
    assert!(!block.to_lowercase().contains("ada"), "{block}");
}

#[tokio::test]
async fn silence_after_the_final_dot_is_unknown_and_never_a_second_mail() {
    let (taken, lost) = (|| json!({"take": true}), || json!({"take": false}));
    let broke = "the connection broke at the end of the mail";
    play(vec![
        case("end-drop-taken", "unknown", 1, 1, broke).by("end", "drop", taken()),
        case("end-drop-lost", "unknown", 1, 0, broke).by("end", "drop", lost()),
        case("end-close-taken", "unknown", 1, 1, broke).by("end", "close", taken()),
        case("end-hang-taken", "unknown", 1, 1, "no answer within 5 s at the end of the mail").by(
            "end",
            "hang",
            taken(),
        ),
        case("end-garbage", "unknown", 1, 1, "no SMTP").by("end", "garbage", taken()),
    ])
    .await;
}

#[tokio::test]
async fn a_configuration_error_is_retried_and_does_not_fail_the_delivery() {
    play(vec![
        case("starttls-5xx", "waiting", 1, 0, "check the settings of [email]").by(
            "starttls",
            "502 5.5.1 no",
            json!({}),
        ),
        case("auth-asked", "waiting", 1, 0, "530").by("mail", "530 5.7.0 log in first", json!({})),
    ])
    .await;
}

/// The server's password changes after the address was confirmed.
#[tokio::test]
async fn a_refused_password_is_retried_and_the_mail_is_sent_once_it_is_right() {
    let fault = json!([{"at": "auth", "do": "535 5.7.8 wrong password", "after": 1, "times": 1}]);
    let port = json!({"name": "x", "tls": "starttls", "login": "bell:secret", "faults": fault});
    let server = MailServer::start(&[port]);
    let password = Some(Secret::new("secret"));
    let email = EmailConfig { username: "bell".into(), password, ..server.settings("x") };
    let post = Post::open_with(&server, "x", email).await;
    send(&post.hub, &post.agent, "Buy milk").await;
    let waiting = post.until("waiting", 1).await;
    let reason = waiting["reason"].as_str().unwrap();
    assert!(reason.contains("535 5.7.8 wrong password at AUTH; check the settings of [email]"), "{reason}");
    assert!(!waiting.to_string().contains("secret"), "{waiting}");
    assert_eq!(server.received("x").len(), 1, "only the code so far");
    post.until("sent", 2).await;
    let mail = server.received("x").remove(1);
    assert_eq!((&mail["authenticated"], &mail["encrypted"]), (&json!(true), &json!(true)));
    assert!(post.inbox().await.iter().all(|item| item["kind"] != "note"), "it was never lost");
}

#[tokio::test]
async fn a_failed_delivery_is_listed_and_retried_once_per_idempotency_key() {
    let fault = json!([{"at": "rcpt", "do": "550 5.7.1 not now", "after": 1, "times": 1}]);
    let server = MailServer::start(&[listener("x", fault)]);
    let post = Post::open(&server, "x").await;
    send(&post.hub, &post.agent, "Buy milk").await;
    let dead = post.until("failed", 1).await;
    let (_, list) = post.hub.get(&post.ada, "/v1/deliveries?state=failed").await;
    assert_eq!(list["items"], json!([dead]));
    let path = format!("/v1/deliveries/{}", dead["id"].as_str().unwrap());
    let bob = post.hub.token("user", "bob").await;
    assert_eq!(post.hub.post(&bob, &format!("{path}/retry"), json!({})).await.0, StatusCode::NOT_FOUND);
    assert_eq!(post.hub.post(&post.ada, &format!("{path}/cancel"), json!({})).await.0, StatusCode::CONFLICT);
    let retry = || async {
        let request = post.hub.client.post(format!("{}{path}/retry", post.hub.base)).bearer_auth(&post.ada);
        let answer = request.header("idempotency-key", "again").send().await.unwrap();
        (answer.status(), answer.text().await.unwrap())
    };
    let first = retry().await;
    assert_eq!(first.0, StatusCode::OK, "{}", first.1);
    assert_eq!(retry().await, first, "asking twice gives the same answer");
    post.until("sent", 1).await;
    assert_eq!(retry().await, first, "also when it is long done");
    let (status, answer) = post.hub.post(&post.ada, &format!("{path}/retry"), json!({})).await;
    assert_eq!((status, answer["error"]["code"].is_string()), (StatusCode::CONFLICT, true), "{answer}");
    assert_eq!(server.received("x").len(), 2, "the code and the mail, once");
}

#[tokio::test]
async fn retrying_an_unknown_outcome_sends_a_copy_with_the_same_message_id() {
    let fault = json!([{"at": "end", "do": "drop", "take": true, "after": 1, "times": 1}]);
    let server = MailServer::start(&[listener("x", fault)]);
    let post = Post::open(&server, "x").await;
    send(&post.hub, &post.agent, "Buy milk").await;
    let unknown = post.until("unknown", 1).await;
    let path = format!("/v1/deliveries/{}/retry", unknown["id"].as_str().unwrap());
    assert_eq!(post.hub.post(&post.ada, &path, json!({})).await.0, StatusCode::OK);
    post.until("sent", 1).await;
    let mails = server.received("x");
    assert_eq!(mails.len(), 3);
    assert_eq!(header(&mails[1], "Message-ID"), header(&mails[2], "Message-ID"));
    assert_ne!(header(&mails[0], "Message-ID"), header(&mails[1], "Message-ID"));
}

#[tokio::test]
async fn a_waiting_mail_can_be_cancelled_and_is_never_sent() {
    let fault = json!([{"at": "rcpt", "do": "451 4.3.0 come back in 2 hours", "after": 1}]);
    let server = MailServer::start(&[listener("x", fault)]);
    let post = Post::open(&server, "x").await;
    send(&post.hub, &post.agent, "Buy milk").await;
    let waiting = post.until("waiting", 1).await;
    let wait = |name: &str| waiting[name].as_str().unwrap().parse::<bellwire_core::Time>().unwrap();
    let asked = wait("not_before").millis_since(wait("created_at"));
    assert!(asked >= 2 * 3_600_000, "the server is left alone as long as it asks: {waiting}");
    let path = format!("/v1/deliveries/{}/cancel", waiting["id"].as_str().unwrap());
    for _ in 0..2 {
        let (status, cancelled) = post.hub.call(&post.ada, Method::POST, &path, None).await;
        assert_eq!((status, &cancelled["state"]), (StatusCode::OK, &json!("cancelled")), "{cancelled}");
    }
    assert_eq!(server.received("x").len(), 1);
    assert_eq!(post.inbox().await.len(), 1, "the inbox keeps what was told");
}

#[tokio::test]
async fn a_mail_being_sent_can_be_neither_cancelled_nor_retried() {
    let fault = json!([{"at": "data", "do": "hold", "after": 1}]);
    let server = MailServer::start(&[listener("x", fault)]);
    let post = Post::open(&server, "x").await;
    send(&post.hub, &post.agent, "Buy milk").await;
    let started = post.until("started", 1).await;
    for what in ["cancel", "retry"] {
        let path = format!("/v1/deliveries/{}/{what}", started["id"].as_str().unwrap());
        let (status, answer) = post.hub.post(&post.ada, &path, json!({})).await;
        assert_eq!((status, &answer["error"]["code"]), (StatusCode::CONFLICT, &json!("conflict")), "{what}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("is started"), "{answer}");
    }
    server.go("x");
    post.until("sent", 1).await;
    assert_eq!(server.received("x").len(), 2);
}

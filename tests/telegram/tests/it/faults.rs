use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use telegram_standin::{Fault, Standin};

use crate::{ADA, call, client, result, standin};

async fn attempt(standin: &Standin) -> Result<Value, reqwest::Error> {
    let url = format!("{}/bot{}/sendMessage", standin.url(), standin.token());
    let sending = client().post(url).json(&json!({"chat_id": ADA, "text": "x"}));
    sending.send().await?.json().await
}

#[tokio::test]
async fn a_scripted_answer_is_not_carried_out() {
    let standin = standin();
    standin.fail_next("sendMessage", Fault::TooManyRequests(7));
    standin.fail_next("*", Fault::error(500, "Internal Server Error"));
    let send = json!({"chat_id": ADA, "text": "x"});
    let (status, body) = call(&standin, "sendMessage", send.clone()).await;
    assert_eq!((status, &body["parameters"]["retry_after"]), (429, &json!(7)));
    assert_eq!(call(&standin, "sendMessage", send.clone()).await.0, 500);
    standin.fail_next("sendMessage", Fault::Garbage);
    assert!(attempt(&standin).await.expect_err("no JSON").is_decode());
    assert_eq!(standin.sent(ADA).len(), 0);
    result(&standin, "sendMessage", send).await;
    assert_eq!(standin.calls_of("sendMessage").len(), 4);
}

#[tokio::test]
async fn a_connection_closes_before_or_after_the_call_was_carried_out() {
    let standin = standin();
    standin.fail_next("sendMessage", Fault::CloseUnread);
    assert!(attempt(&standin).await.is_err());
    assert_eq!((standin.sent(ADA).len(), standin.calls().len()), (0, 0));
    standin.fail_next("sendMessage", Fault::CloseAfterAccepting);
    assert!(attempt(&standin).await.is_err());
    assert_eq!((standin.sent(ADA).len(), standin.calls().len()), (1, 1));
}

#[tokio::test]
async fn an_answer_waits_for_its_gate_or_its_time() {
    let standin = Arc::new(standin());
    let gate = standin.hold("sendMessage");
    let sender = standin.clone();
    let sending = tokio::spawn(async move { attempt(&sender).await });
    gate.reached().await;
    assert_eq!(standin.sent(ADA).len(), 1);
    assert!(!sending.is_finished());
    gate.open();
    assert_eq!(sending.await.expect("it ends").expect("an answer")["ok"], true);
    standin.fail_next("sendMessage", Fault::Delay(Duration::from_millis(30)));
    let before = Instant::now();
    attempt(&standin).await.expect("an answer");
    assert!(before.elapsed() >= Duration::from_millis(30));
}

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::{ADA, call, client, refused, result, standin};

fn ids(updates: &Value) -> Vec<i64> {
    updates.as_array().expect("a list").iter().map(|update| update["update_id"].as_i64().expect("an id")).collect()
}

fn body(request: &[u8]) -> &[u8] {
    let head = request.windows(4).position(|window| window == b"\r\n\r\n");
    head.map_or(&[], |end| &request[end + 4..])
}

#[tokio::test]
async fn an_offset_confirms_and_a_limit_limits() {
    let standin = standin();
    for text in ["1", "2", "3"] {
        standin.types(ADA, text);
    }
    let all = ids(&result(&standin, "getUpdates", json!({})).await);
    assert_eq!(all.len(), 3);
    assert_eq!(ids(&result(&standin, "getUpdates", json!({"limit": 2})).await), all[..2]);
    // Nothing was confirmed so far.
    assert_eq!(standin.pending_updates(), 3);
    assert_eq!(ids(&result(&standin, "getUpdates", json!({"offset": all[1]})).await), all[1..]);
    assert_eq!(ids(&result(&standin, "getUpdates", json!({"offset": all[2] + 1})).await), [] as [i64; 0]);
    assert_eq!(standin.pending_updates(), 0);
}

#[tokio::test]
async fn a_long_poll_waits_for_an_update() {
    let standin = Arc::new(standin());
    let waiting = standin.clone();
    let poll = tokio::spawn(async move { result(&waiting, "getUpdates", json!({"timeout": 50})).await });
    let before = Instant::now();
    standin.types(ADA, "now");
    assert_eq!(poll.await.expect("it ends")[0]["message"]["text"], "now");
    assert!(before.elapsed() < Duration::from_secs(40));
    let updates = result(&standin, "getUpdates", json!({"offset": 900_000_000, "timeout": 0})).await;
    assert_eq!(updates, json!([]));
}

#[tokio::test]
async fn a_second_poller_ends_the_first_with_409() {
    let standin = Arc::new(standin());
    let first = standin.clone();
    let first = tokio::spawn(async move { call(&first, "getUpdates", json!({"timeout": 50})).await });
    let second = standin.clone();
    let second = tokio::spawn(async move { call(&second, "getUpdates", json!({"timeout": 50})).await });
    // Whichever came first is ended; the other one gets the update.
    standin.wait_for_calls("getUpdates", 1).await;
    standin.types(ADA, "x");
    let (first, second) = (first.await.expect("it ends"), second.await.expect("it ends"));
    let (ended, served) = if first.0 == 409 { (first, second) } else { (second, first) };
    assert_eq!((ended.0, served.0), (409, 200));
    let said = ended.1["description"].as_str().expect("a description").to_owned();
    assert!(said.starts_with("Conflict: terminated by other getUpdates request"), "{said}");
    assert_eq!(served.1["result"][0]["message"]["text"], "x");
}

#[tokio::test]
async fn a_webhook_gets_updates_with_its_secret_until_it_takes_them() {
    let standin = standin();
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let url = format!("http://{address}/hook");
    result(&standin, "setWebhook", json!({"url": url, "secret_token": "s3cret"})).await;
    assert_eq!(result(&standin, "getWebhookInfo", json!({})).await["url"], url);
    let (status, said) = refused(&standin, "getUpdates", json!({})).await;
    assert!(status == 409 && said.contains("while webhook is active"), "{said}");
    standin.types(ADA, "pushed");
    let seen = Arc::new(Mutex::new(Vec::new()));
    for status in ["500 No", "200 OK"] {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let (mut request, mut part) = (Vec::new(), [0; 4096]);
        while serde_json::from_slice::<Value>(body(&request)).is_err() {
            let read = stream.read(&mut part).await.expect("a request");
            assert_ne!(read, 0, "the request ends early");
            request.extend_from_slice(&part[..read]);
        }
        let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        stream.write_all(answer.as_bytes()).await.expect("it reads");
        seen.lock().expect("no panic").push(String::from_utf8(request).expect("text"));
    }
    for request in seen.lock().expect("no panic").iter() {
        assert!(request.to_lowercase().contains("x-telegram-bot-api-secret-token: s3cret"), "{request}");
        assert!(request.starts_with("POST /hook") && request.contains("pushed"), "{request}");
    }
    standin.wait_until("the confirmation", |standin| (standin.pending_updates() == 0).then_some(())).await;
    result(&standin, "deleteWebhook", json!({})).await;
    assert_eq!(result(&standin, "getUpdates", json!({})).await, json!([]));
}

#[tokio::test]
async fn a_webhook_is_https_or_on_this_machine() {
    let standin = standin();
    let (status, said) = refused(&standin, "setWebhook", json!({"url": "http://hub.example/hook"})).await;
    assert_eq!((status, said.as_str()), (400, "Bad Request: bad webhook: An HTTPS URL must be provided for webhook"));
    for secret in ["x".repeat(257), "not allowed!".to_owned()] {
        let set = json!({"url": "http://127.0.0.1:1/hook", "secret_token": secret});
        assert_eq!(refused(&standin, "setWebhook", set).await.0, 400);
    }
}

#[tokio::test]
async fn kinds_of_updates_are_those_that_the_bot_asked_for() {
    let standin = standin();
    let id = standin.types(ADA, "x");
    standin.reacts(ADA, id, "👍");
    assert_eq!(standin.pending_updates(), 1);
    result(&standin, "getUpdates", json!({"allowed_updates": ["message_reaction"]})).await;
    standin.types(ADA, "y");
    standin.reacts(ADA, id, "👍");
    let updates = result(&standin, "getUpdates", json!({"offset": 0})).await;
    assert_eq!(updates.as_array().map(Vec::len), Some(2), "{updates}");
    assert!(updates[1].get("message_reaction").is_some(), "{updates}");
}

#[tokio::test]
async fn other_processes_type_and_press_over_http() {
    let standin = Arc::new(standin());
    let post = async |action: &str, body: Value| -> String {
        let url = format!("{}/standin/{action}", standin.url());
        let response = client().post(url).json(&body).send().await.expect("an answer");
        response.text().await.expect("a text")
    };
    let bot = standin.clone();
    // A bot that reads everything.
    let reading = tokio::spawn(async move {
        let mut offset = 0;
        loop {
            let updates = result(&bot, "getUpdates", json!({"offset": offset, "timeout": 50})).await;
            offset = ids(&updates).last().map_or(offset, |last| last + 1);
        }
    });
    assert_eq!(post("type", json!({"user": ADA, "text": "hi"})).await, r#"{"message_id":1}"#);
    assert_eq!(standin.pending_updates(), 0);
    let buttons = json!({"inline_keyboard": [[{"text": "Yes", "callback_data": "1"}]]});
    let send =
        json!({"chat_id": ADA, "text": "Go\nnow?", "reply_parameters": {"message_id": 1}, "reply_markup": buttons});
    result(&standin, "sendMessage", send).await;
    let pressed = post("press", json!({"user": ADA, "message_id": 2, "label": "Yes"})).await;
    assert!(pressed.contains("callback_query_id"), "{pressed}");
    let shown = post("chat", json!({"user": ADA, "at_least": 2})).await;
    assert_eq!(shown, "1 user: hi\n2 bot: Go / now? (answers 1) [Yes]\n");
    assert!(post("fly", json!({})).await.starts_with("there are type"));
    reading.abort();
}

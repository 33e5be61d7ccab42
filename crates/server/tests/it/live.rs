//! The live stream of events: its contents, its filters, and readers that do not read.

use std::pin::Pin;
use std::time::Duration;

use futures_util::{Stream, StreamExt as _};
use reqwest::StatusCode;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::hub::{TestHub, failure};
use crate::people::{send, tool};

/// A reader of the live stream.
struct Live {
    body: Pin<Box<dyn Stream<Item = reqwest::Result<Vec<u8>>> + Send>>,
    text: String,
}

impl Live {
    async fn open(hub: &TestHub, query: &str) -> Self {
        let request = hub.client.get(format!("{}/v1/events/stream{query}", hub.base)).bearer_auth(&hub.admin);
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        let body = response.bytes_stream().map(|chunk| chunk.map(|bytes| bytes.to_vec()));
        Self { body: Box::pin(body), text: String::new() }
    }

    async fn next(&mut self) -> (String, Value) {
        let wait = async {
            loop {
                if let Some(event) = take_event(&mut self.text) {
                    return event;
                }
                let bytes = self.body.next().await.expect("the stream goes on").unwrap();
                self.text.push_str(&String::from_utf8_lossy(&bytes));
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect("the stream says something")
    }

    /// The next one of this kind.
    async fn hear(&mut self, kind: &str) -> Value {
        loop {
            let (heard, data) = self.next().await;
            if heard == kind {
                return data;
            }
        }
    }
}

/// The next complete event of the text, without comments.
fn take_event(text: &mut String) -> Option<(String, Value)> {
    loop {
        let (event, rest) = text.split_once("\n\n")?;
        let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
        assert_eq!(field("id"), None, "it cannot be resumed");
        let heard = field("event").map(|kind| (kind.to_owned(), serde_json::from_str(field("data").unwrap()).unwrap()));
        *text = rest.to_owned();
        if heard.is_some() {
            return heard;
        }
    }
}

#[tokio::test]
async fn an_event_is_streamed_as_it_is_listed_and_then_its_fate() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let mut live = Live::open(&hub, "").await;
    let (_, published) = hub.post(&agent, "/v1/events", failure("grep")).await;
    let event = live.hear("event").await;
    let (_, list) = hub.get(&hub.admin, "/v1/events?limit=1").await;
    assert_eq!(event, list["items"][0]);
    let take = json!({"point": "after_tool", "call_id": "c1"});
    hub.post(&agent, "/v1/conversations/chat/inject", take).await;
    let fate = loop {
        let fate = live.hear("fate").await;
        if fate["state"] == "injected" {
            break fate;
        }
    };
    assert_eq!(fate["event_ids"], json!([published["events"][0]["event_id"]]), "{fate}");
    assert_eq!(fate["notification_id"], event["verdicts"][0]["notification_id"], "{fate}");
    assert_eq!((&fate["call_id"], &fate["point"]), (&json!("c1"), &json!("after_tool")), "{fate}");
    send(&hub, &agent, "news").await;
    let told = live.hear("fate").await;
    assert_eq!((&told["state"], &told["user_id"], &told["agent"]), (&json!("created"), &json!("ada"), &Value::Null));
}

#[tokio::test]
async fn filters_are_checked_and_only_operators_watch() {
    let hub = TestHub::start().await;
    for (query, field) in [("?type=Nonsense", "type"), ("?verdict=lost", "verdict"), ("?color=red", "color")] {
        let (status, answer) = hub.get(&hub.admin, &format!("/v1/events/stream{query}")).await;
        assert_eq!((status, &answer["error"]["field"]), (StatusCode::BAD_REQUEST, &json!(field)), "{query}: {answer}");
    }
    for scope in ["agent", "user", "ingest"] {
        let token = hub.token(scope, "ada").await;
        assert_eq!(hub.get(&token, "/v1/events/stream").await.0, StatusCode::FORBIDDEN, "{scope}");
        assert_eq!(hub.get(&token, "/v1/users").await.0, StatusCode::FORBIDDEN, "{scope}");
    }
    let (ada, bob) = (hub.token("agent", "ada").await, hub.token("agent", "bob").await);
    let mut live = Live::open(&hub, "?user_id=bob&type=tool.*").await;
    hub.post(&ada, "/v1/events", failure("hers")).await;
    tool(&hub, &bob, "send_notification", json!({"message": "his"})).await;
    hub.post(&bob, "/v1/events", failure("his")).await;
    let event = live.hear("event").await;
    assert_eq!((&event["user_id"], &event["payload"]["tool_name"]), (&json!("bob"), &json!("his")), "{event}");
}

#[tokio::test]
async fn live_streams_are_bounded_and_one_that_closes_makes_room() {
    let hub = TestHub::start().await;
    let mut open = Vec::new();
    for _ in 0..100 {
        open.push(Live::open(&hub, "").await);
    }
    let one_more = || hub.client.get(format!("{}/v1/events/stream", hub.base)).bearer_auth(&hub.admin).send();
    let refused = one_more().await.unwrap();
    assert_eq!(refused.status(), StatusCode::SERVICE_UNAVAILABLE);
    assert!(refused.text().await.unwrap().contains("100 live streams are open"));
    let agent = hub.token("agent", "ada").await;
    hub.post(&agent, "/v1/events", failure("grep")).await;
    for live in &mut open {
        assert_eq!(live.hear("event").await["payload"]["tool_name"], "grep");
    }
    open.pop();
    let again = async {
        // The hub learns of the closed connection a little later.
        while one_more().await.unwrap().status() != StatusCode::OK {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(10), again).await.expect("there is room again");
}

/// The stalled reader's connection holds a few megabytes; the rest is skipped, and nobody waits for it.
#[tokio::test]
async fn a_stalled_reader_delays_nobody_and_learns_how_much_it_missed() {
    let hub = TestHub::start().await;
    let address = hub.base.trim_start_matches("http://").to_owned();
    let mut stalled = TcpStream::connect(&address).await.unwrap();
    let request =
        format!("GET /v1/events/stream HTTP/1.1\r\nHost: {address}\r\nAuthorization: Bearer {}\r\n\r\n", hub.admin);
    stalled.write_all(request.as_bytes()).await.unwrap();
    let mut head = [0; 15];
    stalled.read_exact(&mut head).await.unwrap();
    assert_eq!(&head, b"HTTP/1.1 200 OK");
    let mut live = Live::open(&hub, "").await;
    let published = 1_500;
    let text = "x".repeat(60_000);
    let publish = async {
        for number in 0..published {
            let event = json!({
                "type": "x.y", "source": "ci", "severity": "info", "conversation_id": "chat", "user_id": "ada",
                "payload": {"number": number, "text": text},
            });
            let (status, answer) = hub.post(&hub.admin, "/v1/events", event).await;
            assert_eq!(status, StatusCode::ACCEPTED, "{answer}");
        }
    };
    let follow = async {
        for number in 0..published {
            assert_eq!(live.hear("event").await["payload"]["number"], number, "a reader that reads misses nothing");
        }
    };
    tokio::join!(publish, follow);
    // Now it reads: what its connection held, and then how much was left out.
    let (mut text, mut bytes) = (String::new(), vec![0; 1 << 20]);
    let (mut events, mut skipped) = (0, 0);
    while events + skipped < published {
        let read = tokio::time::timeout(Duration::from_secs(20), stalled.read(&mut bytes)).await;
        let read = read.expect("it gets the rest").unwrap();
        assert!(read > 0, "{events} events and {skipped} skipped");
        // The lines of chunked transfer encoding are no part of an event: their events are read without their data.
        text.push_str(&String::from_utf8_lossy(&bytes[..read]));
        while let Some((event, rest)) = text.split_once("\n\n") {
            if event.contains("event: event") {
                events += 1;
            }
            if let Some(count) = event.split("\"count\":").nth(1) {
                skipped += count.trim_end_matches('}').parse::<u64>().unwrap();
            }
            text = rest.to_owned();
        }
    }
    assert!(skipped > 100, "{events} events and {skipped} skipped");
}

#[tokio::test]
async fn people_are_listed_for_operators() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    send(&hub, &agent, "news").await;
    hub.token("user", "bob").await;
    let (status, list) = hub.get(&hub.admin, "/v1/users?limit=1").await;
    assert_eq!(status, StatusCode::OK, "{list}");
    let ada = &list["items"][0];
    assert_eq!((&ada["id"], &ada["unread"], &list["next_cursor"]), (&json!("ada"), &json!(1), &json!("ada")), "{list}");
    let (_, list) = hub.get(&hub.admin, "/v1/users?cursor=ada").await;
    assert_eq!((&list["items"][0]["id"], &list["next_cursor"]), (&json!("bob"), &Value::Null), "{list}");
    let (_, list) = hub.get(&hub.admin, "/v1/users?prefix=b").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1, "{list}");
}

//! A person's stream: everything once, in order, also after an absence.

use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::hub::TestHub;
use crate::people::{send, tool};

/// One event of a stream.
#[derive(Debug, PartialEq)]
pub(crate) struct Heard {
    pub(crate) kind: String,
    pub(crate) id: String,
    pub(crate) data: Value,
}

pub(crate) struct Listener {
    body: std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<Vec<u8>>> + Send>>,
    text: String,
}

impl Listener {
    pub(crate) async fn open(hub: &TestHub, token: &str, last: Option<&str>) -> Self {
        let mut request = hub.client.get(format!("{}/v1/users/ada/stream", hub.base)).bearer_auth(token);
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        Self {
            body: Box::pin(response.bytes_stream().map(|chunk| chunk.map(|bytes| bytes.to_vec()))),
            text: String::new(),
        }
    }

    /// The next event; none when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<Heard> {
        let wait = async {
            loop {
                if let Some((event, rest)) = self.text.split_once("\n\n") {
                    let (event, rest) = (event.to_owned(), rest.to_owned());
                    self.text = rest;
                    let field = |name: &str| {
                        let line = event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                        line.map(str::to_owned)
                    };
                    // A comment keeps the connection alive and says nothing.
                    let Some(kind) = field("event") else { continue };
                    let mut names: Vec<_> = event.lines().filter_map(|line| line.split_once(": ")).collect();
                    names.sort_unstable();
                    let names: Vec<&str> = names.into_iter().map(|(name, _)| name).collect();
                    assert_eq!((names, event.lines().count()), (vec!["data", "event", "id"], 3), "{event:?}");
                    let data = serde_json::from_str(&field("data").unwrap()).unwrap();
                    return Some(Heard { kind, id: field("id").unwrap(), data });
                }
                match self.body.next().await {
                    Some(Ok(bytes)) => self.text.push_str(&String::from_utf8_lossy(&bytes)),
                    _ => return None,
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), wait).await.expect("the stream says something in ten seconds")
    }

    pub(crate) async fn hear(&mut self, kind: &str) -> Heard {
        let heard = self.next().await.expect("the stream goes on");
        assert_eq!(heard.kind, kind, "{heard:?}");
        heard
    }
}

fn toast(message: &str, duration: u32) -> Value {
    json!({ "message": message, "severity": "info", "duration": duration })
}

#[tokio::test]
async fn news_changes_and_counts_are_heard_as_they_come() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let mut stream = Listener::open(&hub, &ada, None).await;
    assert_eq!(stream.hear("unread").await.data, json!({"count": 0}));
    send(&hub, &agent, "Buy milk").await;
    let news = stream.hear("notification").await;
    assert_eq!(news.data["message"], "Buy milk");
    assert_eq!(stream.hear("unread").await.data, json!({"count": 1}));
    tool(&hub, &agent, "show_notification", toast("Saved", 0)).await;
    assert_eq!(stream.hear("toast").await.data["message"], "Saved");
    stream.hear("unread").await;
    let path = format!("/v1/users/ada/notifications/{}", news.data["id"].as_str().unwrap());
    hub.call(&ada, Method::DELETE, &path, None).await;
    let updated = stream.hear("updated").await;
    assert_eq!((&updated.data["id"], updated.data["dismissed_at"].is_string()), (&news.data["id"], true));
    assert_eq!(stream.hear("unread").await.data, json!({"count": 1}));
}

#[tokio::test]
async fn whoever_comes_back_hears_what_was_missed_once_and_an_old_toast_as_a_notification() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let mut stream = Listener::open(&hub, &ada, None).await;
    stream.hear("unread").await;
    send(&hub, &agent, "first").await;
    let first = stream.hear("notification").await;
    drop(stream);
    tool(&hub, &agent, "show_notification", toast("brief", 1)).await;
    tool(&hub, &agent, "show_notification", toast("lasting", 0)).await;
    for number in 0..20 {
        send(&hub, &agent, &format!("missed {number}")).await;
    }
    let path = format!("/v1/users/ada/notifications/{}", first.data["id"].as_str().unwrap());
    hub.call(&ada, Method::PATCH, &path, Some(json!({"read": true}))).await;
    let mut stream = Listener::open(&hub, &ada, Some(&first.id)).await;
    assert_eq!(stream.hear("notification").await.data["message"], "brief");
    assert_eq!(stream.hear("toast").await.data["message"], "lasting");
    for number in 0..20 {
        assert_eq!(stream.hear("notification").await.data["message"], format!("missed {number}"));
    }
    let updated = stream.hear("updated").await;
    assert_eq!(updated.data["id"], first.data["id"]);
    let count = stream.hear("unread").await;
    assert_eq!((count.data, count.id), (json!({"count": 22}), updated.id.clone()));
    let mut again = Listener::open(&hub, &ada, Some(&updated.id)).await;
    again.hear("unread").await;
    send(&hub, &agent, "next").await;
    assert_eq!(again.hear("notification").await.data["message"], "next", "nothing is repeated");
}

#[tokio::test]
async fn every_reader_hears_everything_while_many_send() {
    let hub = std::sync::Arc::new(TestHub::start().await);
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(Listener::open(&hub, &ada, Some("0")).await);
    }
    // One reader never reads; nobody waits for it.
    let _asleep = Listener::open(&hub, &ada, Some("0")).await;
    let senders = (0..6).map(|sender| {
        let (hub, agent) = (hub.clone(), agent.clone());
        tokio::spawn(async move {
            for number in 0..5 {
                assert_eq!(send(&hub, &agent, &format!("{sender}/{number}")).await["success"], true);
            }
        })
    });
    for sender in senders.collect::<Vec<_>>() {
        sender.await.unwrap();
    }
    for mut stream in streams {
        let (mut heard, mut last) = (std::collections::BTreeSet::new(), 0);
        while heard.len() < 30 {
            let one = stream.next().await.unwrap();
            let id: i64 = one.id.parse().unwrap();
            assert!(id >= last, "positions never go back");
            last = id;
            if one.kind == "notification" {
                assert!(heard.insert(one.data["message"].as_str().unwrap().to_owned()), "{one:?} came twice");
            }
        }
    }
}

#[tokio::test]
async fn a_stream_ends_with_its_token_and_a_wrong_position_is_refused() {
    let hub = TestHub::start().await;
    let body = json!({"scope": "user", "user_id": "ada"});
    let (_, made) = hub.post(&hub.admin, "/v1/tokens", body).await;
    let mut stream = Listener::open(&hub, made["token"].as_str().unwrap(), None).await;
    stream.hear("unread").await;
    let path = format!("/v1/tokens/{}", made["id"].as_str().unwrap());
    hub.call(&hub.admin, Method::DELETE, &path, None).await;
    assert_eq!(stream.next().await, None);
    let request = hub.client.get(format!("{}/v1/users/ada/stream", hub.base)).bearer_auth(&hub.admin);
    let refused = request.header("last-event-id", "yesterday").send().await.unwrap();
    assert_eq!(refused.status(), StatusCode::BAD_REQUEST);
}

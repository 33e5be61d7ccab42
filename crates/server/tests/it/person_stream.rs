//! A person's stream: every change once and in order, also after a reconnect.

use std::collections::BTreeSet;
use std::time::Duration;

use futures_util::StreamExt as _;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::hub::TestHub;
use crate::people::{send, tool};

/// One server-sent event.
#[derive(Debug, PartialEq)]
pub(crate) struct ReceivedSse {
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

    /// The next event; `None` when the stream has ended.
    pub(crate) async fn next(&mut self) -> Option<ReceivedSse> {
        let wait = async {
            loop {
                if let Some((event, rest)) = self.text.split_once("\n\n") {
                    let (event, rest) = (event.to_owned(), rest.to_owned());
                    self.text = rest;
                    let field = |name: &str| {
                        let line = event.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "));
                        line.map(str::to_owned)
                    };
                    // Skip keep-alive comments.
                    let Some(kind) = field("event") else { continue };
                    let mut names: Vec<_> = event.lines().filter_map(|line| line.split_once(": ")).collect();
                    names.sort_unstable();
                    let names: Vec<&str> = names.into_iter().map(|(name, _)| name).collect();
                    assert_eq!((names, event.lines().count()), (vec!["data", "event", "id"], 3), "{event:?}");
                    let data = serde_json::from_str(&field("data").unwrap()).unwrap();
                    return Some(ReceivedSse { kind, id: field("id").unwrap(), data });
                }
                match self.body.next().await {
                    Some(Ok(bytes)) => self.text.push_str(&String::from_utf8_lossy(&bytes)),
                    _ => return None,
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(10), wait).await.expect("the stream says something in ten seconds")
    }

    pub(crate) async fn hear(&mut self, kind: &str) -> ReceivedSse {
        let heard = self.next().await.expect("the stream goes on");
        assert_eq!(heard.kind, kind, "{heard:?}");
        heard
    }
}

fn toast(message: &str, duration: u32) -> Value {
    json!({ "message": message, "severity": "info", "duration": duration })
}

#[tokio::test]
async fn notifications_updates_and_counts_are_streamed() {
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
async fn a_reconnecting_reader_gets_missed_changes_once_and_old_toasts_as_notifications() {
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
async fn every_client_gets_every_change_while_many_send() {
    let hub = std::sync::Arc::new(TestHub::start().await);
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let mut streams = Vec::new();
    for _ in 0..3 {
        streams.push(Listener::open(&hub, &ada, Some("0")).await);
    }
    // A client that never reads must not delay the others.
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
        let (mut heard, mut last) = (BTreeSet::new(), 0);
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

#[tokio::test]
async fn changes_in_one_client_reach_every_stream() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let buttons = json!([{"label": "Yes", "action": "prompt", "prompt": "yes"}, {"label": "OK", "action": "dismiss"}]);
    let question = json!({"message": "May I?", "severity": "info", "duration": 0, "actions": buttons});
    let mut ids = Vec::new();
    for _ in 0..4 {
        let shown = tool(&hub, &agent, "show_notification", question.clone()).await;
        ids.push(shown["notification"]["id"].as_str().unwrap().to_owned());
    }
    let mut places = [Listener::open(&hub, &ada, None).await, Listener::open(&hub, &ada, None).await];
    for place in &mut places {
        for id in &ids {
            assert_eq!(place.hear("toast").await.data["id"], **id, "it is still due");
        }
        assert_eq!(place.hear("unread").await.data, json!({"count": 4}));
    }
    let path = |id: &str| format!("/v1/users/ada/notifications/{id}");
    hub.call(&ada, Method::PATCH, &path(&ids[0]), Some(json!({"read": true}))).await;
    hub.call(&ada, Method::DELETE, &path(&ids[1]), None).await;
    hub.post(&ada, &format!("{}/actions/0", path(&ids[2])), json!({})).await;
    hub.post(&ada, &format!("{}/actions/1", path(&ids[3])), json!({})).await;
    // Pressing a second time changes nothing and sends no event.
    hub.post(&ada, &format!("{}/actions/0", path(&ids[2])), json!({})).await;
    hub.call(&ada, Method::DELETE, &path(&ids[1]), None).await;
    for place in &mut places {
        let mut heard = Vec::new();
        while heard.len() < 4 {
            let one = place.next().await.unwrap();
            if one.kind != "unread" {
                assert_eq!(one.kind, "updated", "{one:?}");
                let set = |name: &str| one.data[name].is_string();
                let pressed = [0, 1].map(|button: usize| one.data["actions"][button]["pressed_at"].is_string());
                heard.push((one.data["id"].as_str().unwrap().to_owned(), set("read_at"), set("dismissed_at"), pressed));
            }
        }
        let at = |number: usize| ids[number].clone();
        let told = [
            (at(0), true, false, [false, false]),
            (at(1), true, true, [false, false]),
            (at(2), true, false, [true, false]),
            (at(3), true, true, [false, true]),
        ];
        assert_eq!(heard, told);
        assert_eq!(place.hear("unread").await.data, json!({"count": 0}));
    }
    hub.call(&ada, Method::PATCH, &path(&ids[0]), Some(json!({"read": false}))).await;
    for place in &mut places {
        let again = place.hear("updated").await.data;
        assert_eq!((again["id"].as_str(), &again["read_at"]), (Some(ids[0].as_str()), &Value::Null));
        assert_eq!(place.hear("unread").await.data, json!({"count": 1}));
    }
}

#[tokio::test]
async fn a_first_connection_begins_with_the_toasts_still_due_and_a_resumed_one_does_not() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    send(&hub, &agent, "no toast").await;
    tool(&hub, &agent, "show_notification", toast("stays", 0)).await;
    let mut stream = Listener::open(&hub, &ada, None).await;
    let due = stream.hear("toast").await;
    assert_eq!((&due.data["message"], &due.data["deliveries"]), (&json!("stays"), &json!([])));
    let unread = stream.hear("unread").await;
    assert_eq!((unread.data, &unread.id), (json!({"count": 2}), &due.id));
    drop(stream);
    let mut stream = Listener::open(&hub, &ada, Some(&due.id)).await;
    stream.hear("unread").await;
    let path = format!("/v1/users/ada/notifications/{}", due.data["id"].as_str().unwrap());
    hub.call(&ada, Method::DELETE, &path, None).await;
    stream.hear("updated").await;
    assert_eq!(stream.hear("unread").await.data, json!({"count": 1}));
    hub.call(&ada, Method::PATCH, &path, Some(json!({"dismissed": false}))).await;
    let restored = stream.hear("updated").await.data;
    assert_eq!((&restored["dismissed_at"], &restored["read_at"]), (&Value::Null, &Value::Null));
    assert_eq!(stream.hear("unread").await.data, json!({"count": 2}));
}

#[tokio::test]
async fn a_muted_origin_is_in_the_inbox_and_shows_no_toast() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let muted = json!({"muted_origins": ["butler"]});
    hub.call(&ada, Method::PATCH, "/v1/users/ada/settings", Some(muted)).await;
    let mut stream = Listener::open(&hub, &ada, None).await;
    stream.hear("unread").await;
    tool(&hub, &agent, "show_notification", toast("Look at me", 0)).await;
    let heard = stream.hear("notification").await;
    assert_eq!((&heard.data["message"], &heard.data["origin"]), (&json!("Look at me"), &json!("butler")));
    assert_eq!(stream.hear("unread").await.data, json!({"count": 1}));
    let off = json!({"muted_origins": [], "toasts": {"enabled": false}});
    hub.call(&ada, Method::PATCH, "/v1/users/ada/settings", Some(off)).await;
    tool(&hub, &agent, "show_notification", toast("Look at me again", 0)).await;
    stream.hear("notification").await;
}

/// The client loses its connection again and again, at any point, while many clients write.
#[tokio::test]
async fn a_reconnecting_client_gets_every_change_exactly_once_while_many_write() {
    let mut config = bellwire_server::Config::default();
    config.limits.notifications_per_hour = 1000;
    let hub = std::sync::Arc::new(TestHub::start_with(config).await);
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let writers = (0..8).map(|writer| {
        let (hub, agent, ada) = (hub.clone(), agent.clone(), ada.clone());
        tokio::spawn(async move {
            for number in 0..25 {
                let told = send(&hub, &agent, &format!("{writer}/{number}")).await;
                assert_eq!(told["success"], true, "{told}");
                if number % 5 == 0 {
                    let path = format!("/v1/users/ada/notifications/{}", told["notification_id"].as_str().unwrap());
                    hub.call(&ada, Method::PATCH, &path, Some(json!({"read": true}))).await;
                }
            }
        })
    });
    let writers: Vec<_> = writers.collect();
    let (mut last, mut news, mut updated) = (0, BTreeSet::new(), BTreeSet::new());
    let is_all = |news: &BTreeSet<String>, updated: &BTreeSet<String>| (news.len(), updated.len()) == (200, 40);
    for stay in (1..=5).cycle() {
        let mut stream = Listener::open(&hub, &ada, Some(&last.to_string())).await;
        // The client reads a few events and disconnects.
        for _ in 0..stay {
            let one = stream.next().await.unwrap();
            let (before, said) = (last, one.data["message"].as_str().unwrap_or_default().to_owned());
            last = one.id.parse::<i64>().unwrap();
            match one.kind.as_str() {
                "unread" => assert!(last >= before, "positions never go back"),
                "notification" => assert!(last > before && news.insert(said.clone()), "{said} came twice"),
                "updated" => {
                    assert!(last > before && news.contains(&said), "{said} was changed before it came");
                    assert!(updated.insert(said.clone()), "that {said} was read came twice");
                }
                other => panic!("{other}"),
            }
            if is_all(&news, &updated) {
                break;
            }
        }
        if is_all(&news, &updated) {
            break;
        }
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let mut stream = Listener::open(&hub, &ada, Some(&last.to_string())).await;
    assert_eq!(stream.hear("unread").await.data, json!({"count": 160}), "nothing is left to hear");
}

//! The list of deliveries: pages, filters and access.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::email::peer::{MailServer, listener};
use crate::mailed::Post;
use crate::people::send;

/// Ada has quiet hours, so her seven deliveries wait.
async fn with_seven_that_wait(server: &MailServer) -> Post<'_> {
    let post = Post::open(server, "x").await;
    let hour = bellwire_server::clock::system().now().as_millis() / 3_600_000;
    let at = |hour: i64| format!("{:02}:30", hour.rem_euclid(24));
    post.change(json!({"quiet_hours": {"start": at(hour - 2), "end": at(hour + 2), "timezone": "UTC"}})).await;
    for number in 0..7 {
        send(&post.hub, &post.agent, &format!("news {number}")).await;
    }
    post
}

async fn page(post: &Post<'_>, token: &str, query: &str) -> (Vec<String>, Option<String>) {
    let (status, list) = post.hub.get(token, &format!("/v1/deliveries?{query}")).await;
    assert_eq!(status, StatusCode::OK, "{list}");
    let ids = list["items"].as_array().unwrap().iter().map(|one| one["id"].as_str().unwrap().to_owned());
    (ids.collect(), list["next_cursor"].as_str().map(str::to_owned))
}

#[tokio::test]
async fn pages_are_newest_first_and_together_hold_each_once() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = with_seven_that_wait(&server).await;
    let (all, none) = page(&post, &post.ada, "limit=100").await;
    assert_eq!((all.len(), none), (8, None), "seven that wait and the code");
    assert!(all.is_sorted_by(|newer, older| newer > older), "{all:?}");
    let (mut paged, mut cursor) = (Vec::new(), String::new());
    loop {
        let (ids, next) = page(&post, &post.ada, &format!("limit=3{cursor}")).await;
        assert!(ids.len() <= 3);
        paged.extend(ids);
        match next {
            Some(next) => cursor = format!("&cursor={next}"),
            None => break,
        }
        // A delivery created between two pages does not appear on the second.
        send(&post.hub, &post.agent, "meanwhile").await;
    }
    assert_eq!(paged, all);
}

#[tokio::test]
async fn lists_filter_by_state_and_invalid_parameters_are_named() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = with_seven_that_wait(&server).await;
    let count = |query: &'static str| async { page(&post, &post.ada, query).await.0.len() };
    assert_eq!((count("state=waiting").await, count("state=sent").await, count("state=failed").await), (7, 1, 0));
    let first = page(&post, &post.ada, "state=waiting&limit=4").await;
    let second = page(&post, &post.ada, &format!("state=waiting&limit=4&cursor={}", first.1.unwrap())).await;
    assert_eq!((first.0.len(), second.0.len(), second.1), (4, 3, None));
    let wrong = [
        ("state=lost", "state"),
        ("limit=0", "limit"),
        ("limit=101", "limit"),
        ("cursor=x", "cursor"),
        ("color=red", "color"),
    ];
    for (query, field) in wrong {
        let (status, answer) = post.hub.get(&post.ada, &format!("/v1/deliveries?{query}")).await;
        assert_eq!((status, &answer["error"]["field"]), (StatusCode::BAD_REQUEST, &json!(field)), "{query}: {answer}");
    }
}

#[tokio::test]
async fn an_inbox_item_says_what_happened_to_it_outside_without_the_address() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = with_seven_that_wait(&server).await;
    let (_, inbox) = post.hub.get(&post.ada, "/v1/users/ada/notifications?limit=7").await;
    let (_, list) = post.hub.get(&post.ada, "/v1/deliveries?state=waiting").await;
    for item in inbox["items"].as_array().unwrap() {
        let own = list["items"].as_array().unwrap().iter().find(|one| one["notification_id"] == item["id"]).unwrap();
        let wanted =
            json!([{"channel": "email", "state": "waiting", "at": own["not_before"], "reason": "quiet hours"}]);
        assert_eq!(item["deliveries"], wanted);
    }
    let event = json!({
        "type": "agent.input.needed", "source": "ci", "severity": "info", "conversation_id": "chat", "payload": {},
    });
    let (_, published) = post.hub.post(&post.agent, "/v1/events", event).await;
    let path = format!("/v1/events/{}", published["events"][0]["event_id"].as_str().unwrap());
    let (_, trace) = post.hub.get(&post.ada, &path).await;
    assert_eq!(trace["told"][0]["notification"]["deliveries"][0]["reason"], "quiet hours", "{trace}");
}

#[tokio::test]
async fn a_delivery_says_what_it_is_about() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = with_seven_that_wait(&server).await;
    for token in [&post.ada, &post.hub.admin] {
        let (_, list) = post.hub.get(token, "/v1/deliveries").await;
        let items = list["items"].as_array().unwrap();
        let mut titles: Vec<_> = items.iter().map(|one| (one["origin"].clone(), one["title"].clone())).collect();
        titles.sort_by_key(|(_, title)| title.to_string());
        let news = (0..7).map(|number| (json!("butler"), json!(format!("news {number}"))));
        assert_eq!(titles, news.chain([(Value::Null, Value::Null)]).collect::<Vec<_>>(), "seven and the code");
    }
    let (_, list) = post.hub.get(&post.ada, "/v1/deliveries?limit=1").await;
    let path = format!("/v1/deliveries/{}/cancel", list["items"][0]["id"].as_str().unwrap());
    let (_, cancelled) = post.hub.post(&post.ada, &path, json!({})).await;
    assert_eq!((&cancelled["title"], &cancelled["origin"]), (&list["items"][0]["title"], &json!("butler")));
}

#[tokio::test]
async fn users_see_their_own_deliveries_and_admins_see_all() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = with_seven_that_wait(&server).await;
    let bob = post.hub.token("user", "bob").await;
    assert_eq!(page(&post, &bob, "").await, (Vec::new(), None));
    assert_eq!(page(&post, &post.hub.admin, "limit=100").await, page(&post, &post.ada, "limit=100").await);
    let id = page(&post, &post.ada, "limit=1").await.0.remove(0);
    for what in ["retry", "cancel"] {
        let path = format!("/v1/deliveries/{id}/{what}");
        let (status, theirs): (StatusCode, Value) = post.hub.post(&bob, &path, json!({})).await;
        let (_, nobodys) =
            post.hub.post(&bob, &path.replace(&id, "0198c0de-0000-7000-8000-000000000000"), json!({})).await;
        assert_eq!((status, theirs), (StatusCode::NOT_FOUND, nobodys), "what is another's is not there");
    }
}

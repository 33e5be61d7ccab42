//! Deliveries held by quiet hours: they are sent as one digest at the end, without items that are no longer wanted.

use reqwest::Method;
use serde_json::{Value, json};

use super::{Post, header, plain, wait_for};
use crate::email::peer::{MailServer, listener};
use crate::people::{send, tool};

/// A window in UTC that begins and ends this many minutes from now.
fn window(from: i64, to: i64) -> Value {
    let now = bellwire_server::clock::system().now().as_millis() / 60_000;
    let at = |minutes: i64| {
        let minute = (now + minutes).rem_euclid(24 * 60);
        format!("{:02}:{:02}", minute / 60, minute % 60)
    };
    json!({"quiet_hours": {"start": at(from), "end": at(to), "timezone": "UTC"}})
}

async fn quiet<'a>(server: &'a MailServer, from: i64, to: i64) -> Post<'a> {
    let post = Post::open(server, "x").await;
    post.change(window(from, to)).await;
    post
}

fn texts(deliveries: &[Value], name: &str) -> Vec<String> {
    let mut texts: Vec<String> =
        deliveries.iter().map(|one| one[name].as_str().unwrap_or_default().to_owned()).collect();
    texts.sort();
    texts
}

#[tokio::test]
async fn held_deliveries_go_as_one_digest_and_the_inbox_has_them_at_once() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = quiet(&server, -60, 60).await;
    for text in ["The report is ready", "Two tests failed on main", "Call the dentist"] {
        send(&post.hub, &post.agent, text).await;
    }
    assert_eq!(post.inbox().await.len(), 3, "the inbox has them at once");
    let held = post.deliveries().await;
    assert_eq!(
        (texts(&held, "state"), texts(&held, "reason")),
        (vec!["waiting".into(); 3], vec!["quiet hours".into(); 3])
    );
    post.change(json!({"quiet_hours": null})).await;
    let mail = post.received(2).await.remove(1);
    wait_for("all of them sent", || async { texts(&post.deliveries().await, "state") == ["sent"; 3] }).await;
    assert_eq!(server.received("x").len(), 2, "the code and one digest");
    assert_eq!(header(&mail, "Subject"), "[butler] 3 notifications");
    let text = plain(&mail);
    let places: Vec<usize> =
        ["The report", "Two tests", "Call the"].iter().map(|said| text.find(said).unwrap()).collect();
    assert!(places.is_sorted(), "oldest first: {text}");
    assert_eq!(text.matches("Info from butler\nConversation: chat\n").count(), 3, "each says who and where: {text}");
}

#[tokio::test]
async fn a_long_digest_counts_the_items_it_does_not_show() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = quiet(&server, -60, 60).await;
    for number in 0..130 {
        send(&post.hub, &post.agent, &format!("news {number:03}")).await;
    }
    post.change(json!({"quiet_hours": null})).await;
    let mail = post.received(2).await.remove(1);
    post.until("sent", 1).await;
    assert_eq!(server.received("x").len(), 2, "one digest");
    assert_eq!(header(&mail, "Subject"), "[butler] 130 notifications");
    assert!(plain(&mail).contains("\nand 80 more in your inbox\n"), "{}", plain(&mail));
    assert!(plain(&mail).contains("| news 049") && !plain(&mail).contains("| news 050"));
    let (_, waiting) = post.hub.get(&post.ada, "/v1/deliveries?state=waiting").await;
    assert_eq!(waiting["items"], json!([]), "none is left behind");
}

#[tokio::test]
async fn a_greylisted_digest_is_retried_as_a_whole() {
    let fault = json!([{"at": "rcpt", "do": "451 4.7.1 Greylisted, come back in 1 second", "after": 1, "times": 1}]);
    let server = MailServer::start(&[listener("x", fault)]);
    let post = quiet(&server, -60, 60).await;
    // More deliveries than all workers together claim at once.
    for number in 0..100 {
        send(&post.hub, &post.agent, &format!("news {number:03}")).await;
    }
    post.change(json!({"quiet_hours": null})).await;
    let is_sent = || async { texts(&post.deliveries().await, "state") == ["sent"; 100] };
    wait_for("all of them sent", is_sent).await;
    let mails = server.received("x");
    assert_eq!(mails.len(), 2, "the code and one digest");
    assert_eq!(header(&mails[1], "Subject"), "[butler] 100 notifications");
    assert!(plain(&mails[1]).contains("\nand 50 more in your inbox\n"), "{}", plain(&mails[1]));
    let twice = post.deliveries().await.iter().all(|one| one["attempts"] == 2);
    assert!(twice, "each was in both attempts");
    post.hub.stop().await;
}

#[tokio::test]
async fn items_read_dismissed_answered_or_muted_meanwhile_are_not_mailed() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = quiet(&server, -60, 60).await;
    let hub = &post.hub;
    let told = |answer: Value| answer["notification_id"].as_str().unwrap().to_owned();
    let read = told(send(hub, &post.agent, "read").await);
    let dismissed = told(send(hub, &post.agent, "dismissed").await);
    let button = json!({"label": "Yes", "action": "prompt", "prompt": "yes"});
    let question = json!({"message": "answered", "severity": "info", "actions": [button]});
    let answered = tool(hub, &post.agent, "show_notification", question).await;
    let token = json!({"scope": "agent", "user_id": "ada", "origin": "gardener"});
    let (_, gardener) = hub.post(&hub.admin, "/v1/tokens", token).await;
    send(hub, gardener["token"].as_str().unwrap(), "muted").await;
    send(hub, &post.agent, "still wanted").await;
    let path = |id: &str| format!("/v1/users/ada/notifications/{id}");
    hub.call(&post.ada, Method::PATCH, &path(&read), Some(json!({"read": true}))).await;
    hub.call(&post.ada, Method::DELETE, &path(&dismissed), None).await;
    let press = format!("{}/actions/0", path(answered["notification"]["id"].as_str().unwrap()));
    hub.post(&post.ada, &press, json!({})).await;
    post.change(json!({"muted_origins": ["gardener"], "quiet_hours": null})).await;
    let mail = post.received(2).await.remove(1);
    post.until("sent", 1).await;
    assert_eq!(header(&mail, "Subject"), "[butler] Info: still wanted");
    let (_, skipped) = hub.get(&post.ada, "/v1/deliveries?state=skipped").await;
    let reasons = texts(skipped["items"].as_array().unwrap(), "reason");
    let wanted =
        ["it was dismissed meanwhile", "it was read meanwhile", "it was read meanwhile", "the origin is muted"];
    assert_eq!(reasons, wanted);
    assert_eq!(server.received("x").len(), 2);
}

#[tokio::test]
async fn deliveries_to_a_changed_or_disabled_address_are_skipped() {
    let server = MailServer::start(&[listener("x", json!([])), listener("y", json!([]))]);
    let moved = quiet(&server, -60, 60).await;
    send(&moved.hub, &moved.agent, "for the old address").await;
    moved.change(json!({"email": {"address": "ada@example.net"}, "quiet_hours": null})).await;
    let delivery = moved.until("skipped", 0).await;
    assert_eq!(delivery["reason"], "the address has changed");
    let code = moved.received(2).await.remove(1);
    assert_eq!(code["to"], json!(["ada@example.net"]), "only a code, and to the new one");

    let off = Post::open(&server, "y").await;
    off.change(window(-60, 60)).await;
    send(&off.hub, &off.agent, "for nobody").await;
    off.change(json!({"email": {"enabled": false}})).await;
    off.change(json!({"quiet_hours": null})).await;
    assert_eq!(off.until("skipped", 0).await["reason"], "the channel is switched off");
    assert_eq!((server.received("x").len(), server.received("y").len()), (2, 1));
}

#[tokio::test]
async fn changing_quiet_hours_or_time_zone_reschedules_held_deliveries() {
    let server = MailServer::start(&[listener("x", json!([]))]);
    let post = quiet(&server, -60, 60).await;
    send(&post.hub, &post.agent, "news").await;
    let due = || async { post.deliveries().await[0]["not_before"].as_str().unwrap().to_owned() };
    let first = due().await;
    post.change(window(-60, 180)).await;
    let later = due().await;
    assert!(first < later, "{first} {later}");
    // The same hours, one zone further west.
    post.change(json!({"quiet_hours": {"timezone": "Etc/GMT+1"}})).await;
    let elsewhere = due().await;
    assert!(later < elsewhere, "an hour further west it ends an hour later: {later} {elsewhere}");
    assert_eq!(server.received("x").len(), 1, "and it was quiet all the while");
    post.change(window(60, 120)).await;
    post.until("sent", 1).await;
    assert_eq!(server.received("x").len(), 2);
}

//! Every decision on a call is in the ledger, without texts and addresses.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{Scene, agent};

#[tokio::test]
async fn refused_calls_are_recorded_by_the_argument_at_fault_and_nothing_the_agent_wrote() {
    let scene = Scene::open().await;
    let secret = "ada-secret@example.org";
    let calls = [
        (json!({"channel": secret, "message": secret}), "invalid channel", ""),
        (json!({"channel": "pager", "intent": secret}), "invalid intent", ""),
        (json!({"channel": "pager"}), "invalid message", ""),
        (json!({"channel": "pager", "message": secret, secret: 1}), "invalid arguments", ""),
        (json!({"channel": "pager", "message": secret, "recipient": secret}), "invalid recipient", "pager"),
        (json!({"channel": "telegram", "message": secret}), "invalid channel", ""),
    ];
    for (call, _, _) in &calls {
        scene.refusal(call.clone()).await;
    }
    let ledger = scene.ledger().await;
    for (entry, (call, reason, channel)) in ledger.iter().zip(&calls) {
        assert_eq!(
            (entry.decided.reason.as_deref(), entry.decided.channel.as_str()),
            (Some(*reason), *channel),
            "{call}"
        );
        assert_eq!((entry.decided.origin.as_str(), entry.decided.user_id.as_deref()), ("health", Some("ada")));
    }
    assert_eq!(ledger.len(), calls.len());
    assert!(!format!("{ledger:?}").contains("secret"));
}

/// The entries of a list, each with these fields.
async fn listed(scene: &Scene, token: &str, query: &str) -> Vec<Value> {
    let (status, list) = scene.hub.get(token, &format!("/v1/ledger{query}")).await;
    assert_eq!(status, StatusCode::OK, "{list}");
    list["items"].as_array().unwrap().clone()
}

fn column(entries: &[Value], field: &str) -> Vec<String> {
    entries.iter().map(|entry| entry[field].as_str().unwrap_or("null").to_owned()).collect()
}

fn send() -> Value {
    json!({"channel": "pager", "message": "Hello"})
}

/// Ada's agents `health` and `bank`, and Bob's `health`: one delivered, one refused, one refused.
async fn three_decisions() -> (Scene, String, String) {
    let scene = Scene::open().await;
    let bank = agent(&scene.hub, "bank", "ada").await;
    let bobs = agent(&scene.hub, "health", "bob").await;
    assert_eq!(scene.notify(send()).await["status"], "ok");
    for token in [&bank, &bobs] {
        let refused = json!({"channel": "pager", "message": "Hello", "recipient": "555:9"});
        assert_eq!(scene.notify_as(token, refused, json!({})).await["status"], "error");
    }
    (scene, bank, bobs)
}

#[tokio::test]
async fn decisions_are_listed_by_filters_and_pages() {
    let (scene, _, _) = three_decisions().await;
    let admin = scene.hub.admin.clone();
    let all = listed(&scene, &admin, "").await;
    assert_eq!(column(&all, "origin"), ["health", "bank", "health"]);
    assert_eq!(column(&all, "decision"), ["refused", "refused", "delivered"]);
    let mut delivered = all[2].clone();
    for field in ["id", "at", "notification_id", "request_id"] {
        assert!(delivered[field].take().is_string(), "{field}");
    }
    let expected = json!({
        "id": null, "at": null, "origin": "health", "user_id": "ada", "channel": "pager", "intent": "send",
        "decision": "delivered", "error_class": null, "reason": null, "notification_id": null, "request_id": null,
    });
    assert_eq!(delivered, expected);
    assert_eq!((&all[0]["error_class"], &all[0]["reason"]), (&json!("validation_error"), &json!("invalid recipient")));
    let tomorrow = "2100-01-01T00:00:00Z";
    let filters = [
        ("?origin=health", 2),
        ("?user_id=ada", 2),
        ("?user_id=ada&origin=bank", 1),
        ("?channel=pager", 3),
        ("?channel=email", 0),
        ("?decision=refused", 2),
        (&format!("?since={tomorrow}"), 0),
        ("?since=2020-01-01T00:00:00Z", 3),
    ];
    for (query, count) in filters {
        assert_eq!(listed(&scene, &admin, query).await.len(), count, "{query}");
    }
    let (_, first) = scene.hub.get(&admin, "/v1/ledger?limit=2").await;
    let cursor = first["next_cursor"].as_str().expect("there is more");
    assert_eq!(listed(&scene, &admin, &format!("?limit=2&cursor={cursor}")).await, [all[2].clone()]);
    for (query, field) in [("?decision=lost", "decision"), ("?cursor=x", "cursor"), ("?colour=red", "colour")] {
        let (status, refused) = scene.hub.get(&admin, &format!("/v1/ledger{query}")).await;
        assert_eq!((status, &refused["error"]["field"]), (StatusCode::BAD_REQUEST, &json!(field)), "{refused}");
    }
}

#[tokio::test]
async fn an_agent_reads_its_origins_decisions_and_a_person_their_own() {
    let (scene, bank, bobs) = three_decisions().await;
    assert_eq!(column(&listed(&scene, &scene.health, "").await, "decision"), ["delivered"]);
    assert_eq!(column(&listed(&scene, &bobs, "").await, "decision"), ["refused"], "the same origin, another person");
    assert_eq!(column(&listed(&scene, &bank, "?origin=bank").await, "decision"), ["refused"]);
    assert_eq!(column(&listed(&scene, &scene.ada, "").await, "origin"), ["bank", "health"]);
    let everyones = json!({"scope": "agent", "user_id": "*", "origin": "health"});
    let (_, made) = scene.hub.post(&scene.hub.admin, "/v1/tokens", everyones).await;
    let everyones = made["token"].as_str().unwrap();
    assert_eq!(column(&listed(&scene, everyones, "").await, "decision"), ["refused", "delivered"]);
    for (token, query) in
        [(&scene.health, "?origin=bank"), (&scene.health, "?user_id=bob"), (&scene.ada, "?user_id=bob")]
    {
        for path in ["/v1/ledger", "/v1/ledger/sums"] {
            assert_eq!(scene.hub.get(token, &format!("{path}{query}")).await.0, StatusCode::NOT_FOUND, "{path}{query}");
        }
    }
}

#[tokio::test]
async fn decisions_are_summed_per_origin_for_those_who_may_read_them() {
    let (scene, bank, bobs) = three_decisions().await;
    let sums = async |token: &str| {
        let (status, list) = scene.hub.get(token, "/v1/ledger/sums").await;
        assert_eq!(status, StatusCode::OK, "{list}");
        let of = |one: &Value| format!("{} {} {}", one["origin"].as_str().unwrap(), one["delivered"], one["refused"]);
        list["items"].as_array().unwrap().iter().map(of).collect::<Vec<_>>()
    };
    assert_eq!(sums(&scene.hub.admin).await, ["bank 0 1", "health 1 1"]);
    assert_eq!(sums(&scene.health).await, ["health 1 0"]);
    assert_eq!(sums(&bobs).await, ["health 0 1"]);
    assert_eq!(sums(&bank).await, ["bank 0 1"]);
    assert_eq!(sums(&scene.ada).await, ["bank 0 1", "health 1 0"]);
}

#[tokio::test]
async fn an_origin_that_never_gets_through_is_flagged_in_the_sums_and_in_the_metrics() {
    let scene = Scene::open().await;
    let spammer = agent(&scene.hub, "spam \"quoted\"", "ada").await;
    for number in 1..=3 {
        let refused = json!({"channel": "pager", "message": format!("{number}"), "recipient": "555:9"});
        scene.notify_as(&spammer, refused, json!({})).await;
    }
    assert_eq!(scene.notify(send()).await["status"], "ok");
    let (_, list) = scene.hub.get(&scene.hub.admin, "/v1/ledger/sums").await;
    let flags: Vec<&Value> = list["items"].as_array().unwrap().iter().map(|one| &one["never_gets_through"]).collect();
    assert_eq!(flags, [&json!(false), &json!(true)], "{list}");
    let page = scene.hub.client.get(format!("{}/metrics", scene.hub.base)).send().await.unwrap().text().await.unwrap();
    assert!(page.contains("bellwire_notify_undelivered{origin=\"spam \\\"quoted\\\"\"} 3\n"), "{page}");
    assert!(!page.contains("bellwire_notify_undelivered{origin=\"health\"}"), "{page}");
    for line in ["{decision=\"refused\"} 3", "{decision=\"delivered\"} 1", "{decision=\"unknown\"} 0"] {
        assert!(page.contains(&format!("bellwire_notify_decisions{line}\n")), "{line}: {page}");
    }
}

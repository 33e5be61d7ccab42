//! The endpoints for people: tools, inbox, buttons, reminders, settings, unsubscribe links.

use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::hub::TestHub;

pub(crate) async fn send(hub: &TestHub, agent: &str, message: &str) -> Value {
    tool(hub, agent, "send_notification", json!({ "message": message })).await
}

pub(crate) async fn tool(hub: &TestHub, agent: &str, name: &str, arguments: Value) -> Value {
    let call = json!({ "arguments": arguments, "context": { "conversation_id": "chat" } });
    let (status, answer) = hub.post(agent, &format!("/v1/tools/{name}"), call).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer
}

async fn patch(hub: &TestHub, token: &str, body: Value) -> (StatusCode, Value) {
    hub.call(token, Method::PATCH, "/v1/users/ada/settings", Some(body)).await
}

#[tokio::test]
async fn a_sent_message_has_the_documented_result_and_is_in_the_inbox() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let answer = tool(&hub, &agent, "send_notification", json!({"message": " Buy milk ", "type": "reminder"})).await;
    let id = answer["notification_id"].as_str().unwrap().to_owned();
    let wanted = json!({
        "success": true, "action": "notification_created", "message": "Notification created: Buy milk",
        "notification_id": id, "type": "reminder", "call_id": answer["call_id"],
    });
    assert_eq!(answer, wanted);
    let (_, list) = hub.get(&ada, "/v1/users/ada/notifications?state=unread&type=reminder&limit=1").await;
    let item = &list["items"][0];
    assert_eq!((item["id"].as_str(), item["message"].as_str()), (Some(id.as_str()), Some("Buy milk")));
    assert_eq!((item["origin"].as_str(), item["conversation_id"].as_str()), (Some("butler"), Some("chat")));
    let (_, count) = hub.get(&ada, "/v1/users/ada/notifications/unread_count").await;
    assert_eq!(count, json!({"count": 1}));
    let path = format!("/v1/users/ada/notifications/{id}");
    let (status, read) = hub.call(&ada, Method::PATCH, &path, Some(json!({"read": true}))).await;
    assert_eq!((status, read["read_at"].is_string()), (StatusCode::OK, true));
    let (status, gone) = hub.call(&ada, Method::DELETE, &path, None).await;
    assert_eq!((status, gone["dismissed_at"].is_string()), (StatusCode::OK, true));
    let (_, list) = hub.get(&ada, "/v1/users/ada/notifications?state=dismissed").await;
    assert_eq!(list["items"].as_array().unwrap().len(), 1);
    let (_, marked) = hub.post(&ada, "/v1/users/ada/notifications/read_all", json!({})).await;
    assert_eq!(marked, json!({"updated": 0}));
}

#[tokio::test]
async fn a_patch_changes_one_thing_and_restores_what_no_prompt_has_answered() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let buttons = json!([{"label": "Go", "action": "prompt", "prompt": "go on"}, {"label": "No", "action": "dismiss"}]);
    let ask = json!({"message": "May I?", "severity": "info", "duration": 0, "actions": buttons});
    let shown = tool(&hub, &agent, "show_notification", ask).await;
    let path = format!("/v1/users/ada/notifications/{}", shown["notification"]["id"].as_str().unwrap());
    let patch = async |body: Value| hub.call(&ada, Method::PATCH, &path, Some(body)).await;
    let wrong = [
        (json!({}), "read"),
        (json!({"read": true, "dismissed": false}), "read"),
        (json!({"dismissed": true}), "dismissed"),
        (json!({"dismissed": "no"}), "dismissed"),
        (json!({"seen": true}), "seen"),
    ];
    for (body, field) in wrong {
        let (status, answer) = patch(body.clone()).await;
        assert_eq!((status, &answer["error"]["field"]), (StatusCode::BAD_REQUEST, &json!(field)), "{body}: {answer}");
    }
    hub.post(&ada, &format!("{path}/actions/1"), json!({})).await;
    let (status, item) = patch(json!({"dismissed": false})).await;
    assert_eq!((status, &item["dismissed_at"], &item["read_at"]), (StatusCode::OK, &Value::Null, &Value::Null));
    assert_eq!(item["actions"][1]["pressed_at"], Value::Null, "{item}");
    let (status, _) = hub.post(&ada, &format!("{path}/actions/0"), json!({})).await;
    assert_eq!(status, StatusCode::OK, "its buttons work again");
    let (status, refused) = patch(json!({"dismissed": false})).await;
    let by = &refused["error"]["settled_by"];
    assert_eq!(
        (status, &by["action"], &by["label"]),
        (StatusCode::CONFLICT, &json!("prompt"), &json!("Go")),
        "{refused}"
    );
    assert_eq!((&by["index"], by["at"].is_string()), (&json!(0), true), "{refused}");
}

#[tokio::test]
async fn a_refused_message_has_a_reason_and_does_not_count_against_the_limit() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let answer = send(&hub, &agent, "  ").await;
    assert_eq!(answer["success"], false);
    assert_eq!(answer["action"], "validation_error");
    assert_eq!(answer["message"], "Message must be between 1 and 500 characters");
    let wrong = tool(&hub, &agent, "send_notification", json!({"message": "x", "type": "urgent"})).await;
    assert_eq!(wrong["message"], "Invalid type 'urgent'. Must be one of: reminder, info, warning");
    let (_, nobody) = hub.post(&hub.admin, "/v1/tools/send_notification", json!({"arguments": {"message": ""}})).await;
    assert_eq!(nobody["message"], "user_id must be present in context", "the user is checked first");
    for number in 0..30 {
        assert_eq!(send(&hub, &agent, &format!("{number}")).await["success"], true);
    }
    let limited = send(&hub, &agent, "one too many").await;
    assert_eq!((&limited["success"], &limited["action"]), (&json!(false), &json!("rate_limited")));
    assert_eq!(limited["message"], "Notification rate limit exceeded. Try again later.");
    assert!(limited["retry_after_seconds"].as_u64().is_some_and(|seconds| (3000..=3600).contains(&seconds)));
}

#[tokio::test]
async fn a_repeated_idempotency_key_gets_the_same_bytes() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let call = |message: &str| {
        json!({
            "arguments": {"message": message}, "context": {"conversation_id": "chat", "idempotency_key": "k1"},
        })
    };
    let (_, first) = hub.post(&agent, "/v1/tools/send_notification", call("once")).await;
    let (_, again) = hub.post(&agent, "/v1/tools/send_notification", call("once")).await;
    assert_eq!(first, again);
    let (_, other) = hub.post(&agent, "/v1/tools/send_notification", call("other")).await;
    assert_eq!(other["success"], false, "{other}");
    let (_, count) = hub.get(&ada, "/v1/users/ada/notifications/unread_count").await;
    assert_eq!(count, json!({"count": 1}));
}

#[tokio::test]
async fn a_toast_is_stored_with_its_buttons_and_a_press_acts_once() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    let arguments = json!({
        "message": "Build failed", "severity": "error", "title": "Build", "duration": "0",
        "actions": [{"label": "View Logs", "action": "prompt", "prompt": "show me the logs"}, {"label": "OK", "action": "dismiss"}],
    });
    let answer = tool(&hub, &agent, "show_notification", arguments).await;
    let shown = &answer["notification"];
    assert_eq!(
        (&answer["success"], &shown["duration"], &shown["position"]),
        (&json!(true), &json!(0), &json!("top-right"))
    );
    assert_eq!(shown["actions"][1], json!({"label": "OK", "action": "dismiss"}));
    assert!(shown["timestamp"].is_string());
    let path = format!("/v1/users/ada/notifications/{}/actions", shown["id"].as_str().unwrap());
    let (status, first) = hub.post(&ada, &format!("{path}/0"), json!({})).await;
    assert_eq!((status, &first["action"]), (StatusCode::OK, &json!("prompt")), "{first}");
    let (_, again) = hub.post(&ada, &format!("{path}/0"), json!({})).await;
    assert_eq!(first, again);
    for wrong in ["2", "x", "-1"] {
        assert_eq!(hub.post(&ada, &format!("{path}/{wrong}"), json!({})).await.0, StatusCode::NOT_FOUND);
    }
    let (status, _) = hub.post(&agent, &format!("{path}/0"), json!({})).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "an agent is not its person");
    let (_, block) =
        hub.post(&agent, "/v1/conversations/chat/inject", json!({"point": "after_tool", "call_id": "c"})).await;
    let block = block["block"].as_str().unwrap().replace("\\\"", "\"");
    assert!(block.contains("pressed \"View Logs\" (offered by butler): show me the logs"), "{block}");
}

#[tokio::test]
async fn the_first_pressed_button_settles_a_notification_and_the_others_say_what_was_pressed() {
    let hub = TestHub::start().await;
    let (agent, phone, desk) =
        (hub.token("agent", "ada").await, hub.token("user", "ada").await, hub.token("user", "ada").await);
    let question = json!({
        "message": "Deploy?", "severity": "warning", "duration": 0,
        "actions": [
            {"label": "Approve", "action": "prompt", "prompt": "deploy it"},
            {"label": "Reject", "action": "prompt", "prompt": "do not deploy"},
            {"label": "Later", "action": "dismiss"},
        ],
    });
    let shown = tool(&hub, &agent, "show_notification", question.clone()).await;
    let path = format!("/v1/users/ada/notifications/{}", shown["notification"]["id"].as_str().unwrap());
    let (approve, reject) = (format!("{path}/actions/0"), format!("{path}/actions/1"));
    let (one, other) = tokio::join!(hub.post(&phone, &approve, json!({})), hub.post(&desk, &reject, json!({})));
    let (won, lost, label) = match one.0 {
        StatusCode::OK => (one, other, "Approve"),
        _ => (other, one, "Reject"),
    };
    assert_eq!((won.0, lost.0), (StatusCode::OK, StatusCode::CONFLICT), "{won:?} {lost:?}");
    let settled_by = json!({
        "action": "prompt", "index": won.1["index"], "label": label, "at": won.1["pressed_at"],
    });
    assert_eq!((&lost.1["error"]["code"], &lost.1["error"]["settled_by"]), (&json!("conflict"), &settled_by));
    assert!(lost.1["error"]["message"].as_str().unwrap().contains(label), "{lost:?}");
    let pressed = format!("{path}/actions/{}", won.1["index"]);
    assert_eq!(hub.post(&desk, &pressed, json!({})).await, won, "the same button again, from another device");
    let (status, later) = hub.post(&desk, &format!("{path}/actions/2"), json!({})).await;
    assert_eq!((status, &later["error"]["settled_by"]), (StatusCode::CONFLICT, &settled_by));
    let body = json!({"point": "after_tool", "call_id": "c"});
    let (_, block) = hub.post(&agent, "/v1/conversations/chat/inject", body).await;
    assert_eq!(block["block"].as_str().unwrap().matches("pressed").count(), 1, "{block}");

    let shown = tool(&hub, &agent, "show_notification", question).await;
    let path = format!("/v1/users/ada/notifications/{}", shown["notification"]["id"].as_str().unwrap());
    let (_, gone) = hub.call(&phone, Method::DELETE, &path, None).await;
    let (status, refused) = hub.post(&desk, &format!("{path}/actions/0"), json!({})).await;
    let settled_by = json!({"action": "dismiss", "index": null, "label": null, "at": gone["dismissed_at"]});
    assert_eq!((status, &refused["error"]["settled_by"]), (StatusCode::CONFLICT, &settled_by), "{refused}");
    assert!(refused["error"]["message"].as_str().unwrap().contains("dismissed"), "{refused}");
}

#[tokio::test]
async fn a_toast_without_a_user_succeeds_and_is_not_stored() {
    let hub = TestHub::start().await;
    let call = json!({"arguments": {"message": "Saved", "severity": "success"}});
    let (_, answer) = hub.post(&hub.admin, "/v1/tools/show_notification", call).await;
    assert_eq!(answer["success"], true, "{answer}");
    assert!(answer["notification"]["id"].is_string());
    let (_, wrong) = hub.post(&hub.admin, "/v1/tools/show_notification", json!({"arguments": {"message": "x"}})).await;
    assert_eq!(wrong["success"], false);
    assert!(wrong["error"].as_str().unwrap().contains("severity is required"), "{wrong}");
}

#[tokio::test]
async fn a_reminder_is_listed_and_can_be_cancelled_by_its_person_only() {
    let hub = TestHub::start().await;
    let (agent, ada, bob) =
        (hub.token("agent", "ada").await, hub.token("user", "ada").await, hub.token("user", "bob").await);
    let answer = tool(&hub, &agent, "remind", json!({"message": "Call Ada", "in_minutes": 30})).await;
    assert_eq!(answer["success"], true, "{answer}");
    let (_, list) = hub.get(&ada, "/v1/reminders").await;
    assert_eq!(list["items"][0]["message"], "Call Ada");
    assert_eq!(hub.get(&bob, "/v1/reminders").await.1["items"], json!([]));
    let path = format!("/v1/reminders/{}", list["items"][0]["id"].as_str().unwrap());
    assert_eq!(hub.call(&bob, Method::DELETE, &path, None).await.0, StatusCode::NOT_FOUND);
    assert_eq!(hub.call(&ada, Method::DELETE, &path, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(hub.get(&ada, "/v1/reminders").await.1["items"], json!([]));
    let (status, answer) = hub.call(&ada, Method::DELETE, "/v1/reminders/zz", None).await;
    assert_eq!(
        (status, &answer["error"]["message"]),
        (StatusCode::NOT_FOUND, &json!("there is no such reminder")),
        "{answer}"
    );
    let (status, answer) = hub.get(&ada, "/v1/reminders?limit=abc").await;
    assert_eq!((status, &answer["error"]["field"]), (StatusCode::BAD_REQUEST, &json!("limit")), "{answer}");
    assert_eq!(answer["error"]["message"], "must be a whole number from 1 to 100");
    let wrong = tool(&hub, &agent, "remind", json!({"message": "x"})).await;
    assert_eq!((&wrong["success"], &wrong["action"]), (&json!(false), &json!("validation_error")));
}

#[tokio::test]
async fn settings_are_merged_and_invalid_fields_are_named() {
    let hub = TestHub::start().await;
    let ada = hub.token("user", "ada").await;
    let (_, before) = hub.get(&ada, "/v1/users/ada/settings").await;
    let default = json!({
        "disabled_subscribers": [], "muted_origins": [],
        "email": {"enabled": false, "address": null, "confirmed": false},
        "telegram": {"enabled": false, "chat_id": null, "paired": false},
        "quiet_hours": null, "toasts": {"enabled": true},
    });
    assert_eq!(before, default);
    let night = json!({"quiet_hours": {"start": "22:00", "end": "07:00", "timezone": "europe/berlin"}});
    assert_eq!(patch(&hub, &ada, night).await.1["quiet_hours"]["timezone"], "Europe/Berlin");
    let (_, after) = patch(&hub, &ada, json!({"quiet_hours": {"end": "08:00"}, "muted_origins": ["butler"]})).await;
    assert_eq!(after["quiet_hours"], json!({"start": "22:00", "end": "08:00", "timezone": "Europe/Berlin"}));
    let (_, after) = patch(&hub, &ada, json!({"email": {"address": "ada@example.org"}})).await;
    assert_eq!(after["email"], json!({"enabled": false, "address": "ada@example.org", "confirmed": false}));
    assert_eq!(after["muted_origins"], json!(["butler"]), "what is not named stays");
    let wrong = [
        (json!({"email": {"confirmed": true}}), "email.confirmed"),
        (json!({"telegram": {"chat_id": 5}}), "telegram.chat_id"),
        (json!({"telegram": {"paired": true}}), "telegram.paired"),
        (json!({"email": {"address": "nonsense"}}), "email.address"),
        (json!({"quiet_hours": {"timezone": "Mars/Olympus"}}), "quiet_hours.timezone"),
        (json!({"quiet_hours": {"start": "25:00"}}), "quiet_hours.start"),
        (json!({"colour": "red"}), "colour"),
        (json!({"toasts": {"enabled": "yes"}}), "toasts.enabled"),
    ];
    for (body, field) in wrong {
        let (status, answer) = patch(&hub, &ada, body.clone()).await;
        assert_eq!((status, answer["error"]["field"].as_str()), (StatusCode::BAD_REQUEST, Some(field)), "{body}");
    }
    let nothing = json!({"email": null, "quiet_hours": null, "muted_origins": null, "toasts": null});
    assert_eq!(patch(&hub, &ada, nothing).await.1, default, "null means back to the default");
    let (status, answer) = hub.post(&ada, "/v1/users/ada/email/confirm", json!({"code": "123456"})).await;
    assert_eq!((status, answer["error"]["code"].as_str()), (StatusCode::CONFLICT, Some("conflict")));
}

#[tokio::test]
async fn an_unsubscribe_link_asks_first_and_a_forged_one_is_refused() {
    let hub = TestHub::start().await;
    let ada = hub.token("user", "ada").await;
    patch(&hub, &ada, json!({"email": {"enabled": true, "address": "ada@example.org"}})).await;
    let key = hub.store().secret("unsubscribe".into(), vec![1; 32]).await.unwrap();
    let link = |address: &str| {
        let signed = bellwire_server::channels::UnsubscribeLinks::new(key.clone()).sign("ada", address);
        format!("{}/u/{signed}", hub.base)
    };
    let enabled = || async { hub.get(&ada, "/v1/users/ada/settings").await.1["email"]["enabled"].clone() };
    let asked = hub.client.get(link("ada@example.org")).send().await.unwrap();
    assert_eq!(asked.status(), StatusCode::OK);
    assert!(asked.headers()["content-type"].to_str().unwrap().starts_with("text/html"));
    let policy = asked.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-") && !policy.contains("unsafe"), "{policy}");
    assert_eq!(enabled().await, true, "looking changes nothing");
    let post = |url: String| hub.client.post(url).body("List-Unsubscribe=One-Click").send();
    assert_eq!(post(link("old@example.org")).await.unwrap().status(), StatusCode::OK);
    assert_eq!(enabled().await, true, "an old address is no longer in use");
    assert_eq!(post(link("ada@example.org")).await.unwrap().status(), StatusCode::OK);
    assert_eq!(enabled().await, false);
    assert_eq!(post(format!("{}/u/AAAA", hub.base)).await.unwrap().status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn a_damaged_unsubscribe_link_is_a_page_for_a_person_and_json_for_a_program() {
    let hub = TestHub::start().await;
    let browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let ask = |method: Method, path: &str, accept: &str| {
        hub.client.request(method, format!("{}{path}", hub.base)).header("accept", accept).send()
    };
    for method in [Method::GET, Method::POST] {
        for path in ["/u/AAAA", "/u/%ff", "/u", "/u/", "/u/AAAA/b"] {
            let page = ask(method.clone(), path, browser).await.unwrap();
            assert_eq!(page.status(), StatusCode::NOT_FOUND, "{method} {path}");
            assert!(page.headers()["content-type"].to_str().unwrap().starts_with("text/html"), "{method} {path}");
            assert!(page.headers().contains_key("content-security-policy"), "{method} {path}");
            assert_eq!(page.headers()["cache-control"], "no-store");
            let page = page.text().await.unwrap();
            assert!(page.contains("This link does not work") && page.contains("href=\"/settings\""), "{page}");
            for accept in ["*/*", "application/json"] {
                let answer = ask(method.clone(), path, accept).await.unwrap();
                assert_eq!(answer.status(), StatusCode::NOT_FOUND, "{method} {path}");
                let answer: Value = answer.json().await.unwrap();
                assert_eq!(answer["error"]["code"], "not_found", "{method} {path}");
            }
        }
    }
    // Another host name, and a hub that is busy or out of order, keep their status too.
    let other = hub.client.get(format!("{}/u/AAAA", hub.base)).header("host", "evil.example").header("accept", browser);
    let page = other.send().await.unwrap();
    assert_eq!(page.status(), StatusCode::MISDIRECTED_REQUEST);
    assert!(page.text().await.unwrap().starts_with("<!doctype html>"));
}

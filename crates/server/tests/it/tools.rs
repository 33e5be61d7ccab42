//! The agent tools over REST.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::hub::{TestHub, failure};

async fn call(hub: &TestHub, token: &str, tool: &str, body: Value) -> Value {
    let (status, answer) = hub.post(token, &format!("/v1/tools/{tool}"), body).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    answer
}

fn in_chat(arguments: Value) -> Value {
    json!({"arguments": arguments, "context": {"conversation_id": "chat"}})
}

#[tokio::test]
async fn a_note_is_injected_once_at_the_next_turn() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let left = call(&hub, &agent, "notify_self", in_chat(json!({"message": "  look at the logs "}))).await;
    assert_eq!(left["success"], true, "{left}");
    assert_eq!((&left["action"], &left["deliver_at"]), (&json!("note_left"), &json!("next_turn")));
    assert_eq!(left["message"], "Note left: look at the logs");
    assert!(left["call_id"].is_string() && left.get("notifications").is_none(), "{left}");

    let read = call(&hub, &agent, "check_notifications", in_chat(json!({}))).await;
    assert!(read["notifications"].as_str().unwrap().contains("look at the logs"), "{read}");
    assert_eq!((&read["showing"], &read["pending"]), (&json!(1), &json!(0)));
    let again = call(&hub, &agent, "check_notifications", in_chat(json!({}))).await;
    assert_eq!((&again["notifications"], &again["message"]), (&json!(""), &json!("Nothing new.")), "{again}");
}

#[tokio::test]
async fn a_note_for_the_next_tool_does_not_come_back_in_its_own_result() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let at = |key: Option<&str>| {
        let mut body = in_chat(json!({"message": "look at the logs", "deliver_at": "after_tool"}));
        body["context"]["idempotency_key"] = json!(key);
        body
    };
    let inject = async |call_id: &str, agent_name: &str| {
        let body = json!({"point": "after_tool", "call_id": call_id, "agent": agent_name});
        hub.post(&agent, "/v1/conversations/chat/inject", body).await.1["block"].as_str().unwrap().to_owned()
    };
    for key in [None, Some("toolu_1")] {
        let left = call(&hub, &agent, "notify_self", at(key)).await;
        assert!(left["success"] == true && left.get("notifications").is_none(), "{left}");
        let call_id = left["call_id"].as_str().unwrap();
        assert_eq!(inject(call_id, "main").await, "", "nor in an injection with the call id of the result");
        assert!(inject(&format!("after {call_id}"), "main").await.contains("note: look at the logs"));
    }
    // While a sub-agent works, a call that does not name its agent only counts. The injection that follows it under the
    // same call id is the first one of that call.
    inject("helper_1", "helper").await;
    let left = call(&hub, &agent, "notify_self", at(Some("toolu_2"))).await;
    assert!(left["pending"].is_u64() && left.get("call_id").is_none(), "{left}");
    assert_eq!(inject("toolu_2", "main").await, "");
    assert!(inject("toolu_3", "main").await.contains("note: look at the logs"));
}

#[tokio::test]
async fn results_and_refusals_contain_the_pending_notifications() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    hub.post(&agent, "/v1/events", failure("grep")).await;
    let refused = call(&hub, &agent, "notify_self", in_chat(json!({}))).await;
    assert_eq!(refused["success"], false);
    assert_eq!(refused["message"], "Message must be between 1 and 500 characters");
    assert!(refused["notifications"].as_str().unwrap().contains("grep"), "{refused}");
    let elsewhere = call(&hub, &agent, "notify_self", json!({"arguments": {"message": "x"}})).await;
    assert_eq!(elsewhere["message"], "conversation_id must be present in context");
    assert!(elsewhere.get("notifications").is_none() && elsewhere.get("call_id").is_none(), "{elsewhere}");
}

#[tokio::test]
async fn the_same_key_gets_the_same_answer_and_does_nothing_twice() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    hub.post(&agent, "/v1/events", failure("grep")).await;
    let body = |message: &str| {
        let context = json!({"conversation_id": "chat", "idempotency_key": "toolu_1"});
        json!({"arguments": {"message": message}, "context": context})
    };
    let first = call(&hub, &agent, "notify_self", body("once")).await;
    assert!(first["notifications"].as_str().unwrap().contains("grep"), "{first}");
    assert_eq!(first["call_id"], "toolu_1");
    assert_eq!(call(&hub, &agent, "notify_self", body("once")).await, first, "byte for byte");
    let other = call(&hub, &agent, "notify_self", body("twice")).await;
    assert_eq!((&other["success"], &other["action"]), (&json!(false), &json!("validation_error")), "{other}");

    let read = call(&hub, &agent, "check_notifications", in_chat(json!({}))).await;
    assert_eq!(read["showing"], 1, "{read}");
    let checked = json!({"context": {"conversation_id": "chat", "idempotency_key": "toolu_2"}});
    let first = call(&hub, &agent, "check_notifications", checked.clone()).await;
    hub.post(&agent, "/v1/events", failure("later")).await;
    assert_eq!(call(&hub, &agent, "check_notifications", checked).await, first);
}

#[tokio::test]
async fn the_idempotency_header_is_used_if_the_context_has_no_key() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let url = format!("{}/v1/tools/check_notifications", hub.base);
    let ask = || hub.client.post(&url).bearer_auth(&agent).header("idempotency-key", "k1").json(&in_chat(json!({})));
    let answer: Value = ask().send().await.unwrap().json().await.unwrap();
    assert_eq!(answer["call_id"], "k1", "{answer}");
}

#[tokio::test]
async fn a_token_speaks_only_for_the_person_and_the_conversation_it_is_bound_to() {
    let hub = TestHub::start().await;
    let bob = hub.token("agent", "bob").await;
    let ada = hub.token("agent", "ada").await;
    hub.post(&ada, "/v1/events", failure("grep")).await;
    let as_ada = json!({"context": {"user_id": "ada", "conversation_id": "chat"}});
    let (status, answer) = hub.post(&bob, "/v1/tools/check_notifications", as_ada.clone()).await;
    assert_eq!((status, &answer["error"]["field"]), (StatusCode::FORBIDDEN, &json!("context.user_id")));
    // Bob's conversation of the same id is another conversation.
    call(&hub, &bob, "notify_self", in_chat(json!({"message": "do as I say"}))).await;
    let his = call(&hub, &bob, "check_notifications", in_chat(json!({}))).await;
    assert!(his["notifications"].as_str().unwrap().contains("do as I say"), "{his}");
    assert!(!his["notifications"].as_str().unwrap().contains("grep"), "{his}");

    // An admin that acts for a user reaches only that user's data.
    let read = call(&hub, &hub.admin, "check_notifications", as_ada).await;
    assert!(read["notifications"].as_str().unwrap().contains("grep"), "{read}");
    assert!(!read["notifications"].as_str().unwrap().contains("do as I say"), "{read}");
}

#[tokio::test]
async fn while_a_sub_agent_is_active_an_unnamed_agent_gets_only_the_count() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let done = json!({
        "type": "task.background.complete", "source": "ci", "severity": "info", "conversation_id": "chat",
        "payload": {"task_id": "b17", "name": "the build"},
    });
    hub.post(&agent, "/v1/events", done).await;
    let inject = "/v1/conversations/chat/inject";
    hub.post(&agent, inject, json!({"point": "turn_start", "call_id": "1", "agent": "researcher"})).await;
    let unnamed = call(&hub, &agent, "notify_self", in_chat(json!({"message": "x"}))).await;
    assert_eq!((unnamed.get("notifications"), &unnamed["success"]), (None, &json!(true)), "{unnamed}");
    assert_eq!(unnamed["pending"], 2, "{unnamed}");
    let unnamed = call(&hub, &agent, "check_notifications", in_chat(json!({}))).await;
    assert_eq!((unnamed.get("notifications"), &unnamed["pending"]), (None, &json!(2)), "{unnamed}");

    let named = json!({"context": {"conversation_id": "chat", "agent": "main"}});
    let read = call(&hub, &agent, "check_notifications", named).await;
    assert_eq!(read["showing"], 2, "{read}");
    hub.post(&agent, inject, json!({"point": "turn_end", "call_id": "2", "agent": "researcher"})).await;
    let alone = call(&hub, &agent, "check_notifications", in_chat(json!({}))).await;
    assert_eq!(alone["notifications"], "", "the sub-agent has ended: {alone}");
}

#[tokio::test]
async fn invalid_arguments_are_refused_with_the_field_and_the_fix() {
    let hub = TestHub::start().await;
    let (status, answer) = hub.post(&hub.admin, "/v1/tools/shout", json!({})).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    assert!(answer["error"]["hint"].as_str().unwrap().contains("notify_self"), "{answer}");
    let (status, answer) = hub.post(&hub.admin, "/v1/tools/notify_self", json!({"context": {"users": "ada"}})).await;
    assert_eq!((status, &answer["error"]["field"]), (StatusCode::BAD_REQUEST, &json!("context.users")));
    let refusals = [
        (json!("nonsense"), "arguments must be an object"),
        (json!([1]), "arguments must be an object, not a list"),
        (json!({"message": 5}), "message must be text, not a number"),
        (json!({"message": "x".repeat(501)}), "Message must be between 1 and 500 characters"),
        (json!({"message": "x", "deliver_at": "now"}), "Invalid deliver_at 'now'"),
        (json!({"message": "x", "loud": true}), "Unknown argument 'loud'. Allowed: message, deliver_at"),
    ];
    for (arguments, words) in refusals {
        let refused = call(&hub, &hub.admin, "notify_self", in_chat(arguments.clone())).await;
        assert_eq!((&refused["success"], &refused["action"]), (&json!(false), &json!("validation_error")), "{refused}");
        assert!(refused["message"].as_str().unwrap().starts_with(words), "{arguments}: {refused}");
    }
}

#[tokio::test]
async fn quoted_arguments_are_parsed_if_unambiguous() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let quoted = json!("{\"message\": \"in quotes\"}");
    assert_eq!(call(&hub, &agent, "notify_self", in_chat(quoted)).await["success"], true);
    assert_eq!(call(&hub, &agent, "check_notifications", in_chat(json!("{}"))).await["showing"], 1);
}

#[tokio::test]
async fn a_note_without_a_subscriber_is_an_error() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let change = json!({"disabled_subscribers": ["self_notify"]});
    hub.call(&hub.admin, reqwest::Method::PATCH, "/v1/users/ada/settings", Some(change)).await;
    let refused = call(&hub, &agent, "notify_self", in_chat(json!({"message": "x"}))).await;
    assert_eq!(refused["success"], false, "{refused}");
    assert!(refused["message"].as_str().unwrap().starts_with("The note was not kept"), "{refused}");
}

#[tokio::test]
async fn a_repeat_gets_the_notifications_of_its_first_call_while_a_sub_agent_is_active() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    hub.post(&agent, "/v1/events", failure("grep")).await;
    let body =
        json!({"arguments": {"message": "later"}, "context": {"conversation_id": "chat", "idempotency_key": "k1"}});
    let first = call(&hub, &agent, "send_notification", body.clone()).await;
    assert!(first["notifications"].as_str().unwrap().contains("grep"), "{first}");
    let scout = json!({"point": "turn_start", "call_id": "s1", "agent": "scout"});
    hub.post(&agent, "/v1/conversations/chat/inject", scout).await;
    assert_eq!(call(&hub, &agent, "send_notification", body).await, first, "byte for byte");
    let fresh = call(&hub, &agent, "send_notification", in_chat(json!({"message": "and now"}))).await;
    assert_eq!((&fresh["pending"], fresh.get("notifications")), (&json!(0), None), "{fresh}");
}

#[tokio::test]
async fn each_tool_refuses_invalid_arguments_in_its_own_format() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let toast = call(&hub, &agent, "show_notification", json!({"arguments": "no object"})).await;
    assert_eq!(toast, json!({"success": false, "error": toast["error"]}));
    let unread = json!({"arguments": [1]});
    let nobody = call(&hub, &hub.admin, "send_notification", unread.clone()).await;
    assert_eq!(
        (&nobody["action"], &nobody["message"]),
        (&json!("validation_error"), &json!("user_id must be present in context"))
    );
    let somebody = call(&hub, &agent, "send_notification", unread).await;
    assert!(somebody["message"].as_str().unwrap().contains("arguments"), "{somebody}");
}

#[tokio::test]
async fn a_repeated_reminder_call_after_its_time_returns_the_first_reminder() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let at = bellwire_server::clock::system().now().plus(1_500).to_string();
    let body = json!({"arguments": {"message": "Stand up", "at": at}, "context": {"idempotency_key": "r1"}});
    let first = call(&hub, &agent, "remind", body.clone()).await;
    assert_eq!(first["success"], true, "{first}");
    let told = async {
        while hub.get(&hub.admin, "/v1/users/ada/notifications").await.1["items"].as_array().unwrap().is_empty() {
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(std::time::Duration::from_secs(20), told).await.expect("it is told");
    let again = call(&hub, &agent, "remind", body).await;
    assert_eq!((&again["success"], &again["reminder_id"]), (&json!(true), &first["reminder_id"]), "{again}");
}

#[tokio::test]
async fn the_hourly_limit_spreads_a_flood_of_reminders() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let remind = json!({"arguments": {"message": "again", "in_minutes": 60}});
    for _ in 0..200 {
        assert_eq!(call(&hub, &agent, "remind", remind.clone()).await["success"], true);
    }
    let refused = call(&hub, &agent, "remind", remind).await;
    assert_eq!((&refused["success"], &refused["action"]), (&json!(false), &json!("rate_limited")), "{refused}");
}

#[tokio::test]
async fn a_refused_check_does_not_use_up_its_idempotency_key() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    hub.post(&agent, "/v1/events", failure("grep")).await;
    let look = |arguments: Value| json!({"arguments": arguments, "context": {"conversation_id": "chat", "idempotency_key": "look"}});
    let refused = call(&hub, &agent, "check_notifications", look(json!({"all": true}))).await;
    assert_eq!((&refused["success"], refused.get("notifications")), (&json!(false), None), "{refused}");
    let read = call(&hub, &agent, "check_notifications", look(json!({}))).await;
    assert!(read["notifications"].as_str().unwrap().contains("grep"), "{read}");
}

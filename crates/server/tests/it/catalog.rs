//! What pages need to know before they offer something: tools, event types, channels, what waits.

use reqwest::StatusCode;
use serde_json::{Value, json};

use crate::hub::{TestHub, failure};
use crate::people::send;

fn names(list: &Value, field: &str) -> Vec<String> {
    list["items"].as_array().unwrap().iter().map(|one| one[field].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn tools_event_types_and_channels_are_described() {
    let hub = TestHub::start().await;
    let ada = hub.token("user", "ada").await;
    let (_, tools) = hub.get(&ada, "/v1/tools").await;
    assert_eq!(names(&tools, "name"), bellwire_server::tools::CORE_TOOL_NAMES);
    assert_eq!(tools["items"][1]["input_schema"]["required"], json!(["message"]), "{tools}");
    let (_, types) = hub.get(&ada, "/v1/event_types").await;
    let failed = types["items"].as_array().unwrap().iter().find(|one| one["type"] == "tool.call.failure").unwrap();
    assert_eq!(failed["subscribers"], json!(["tool_failure"]), "{failed}");
    assert!(failed["fields"].as_array().unwrap().iter().any(|one| one["name"] == "tool_name"), "{failed}");
    let (_, channels) = hub.get(&ada, "/v1/channels").await;
    assert_eq!(names(&channels, "name").len(), 2, "{channels}");
    assert_eq!(channels["items"][0]["available"], false, "nothing is configured: {channels}");
}

#[tokio::test]
async fn a_person_sees_what_waits_for_the_agent_and_reads_the_last_messages_first() {
    let hub = TestHub::start().await;
    let (agent, ada, bob) =
        (hub.token("agent", "ada").await, hub.token("user", "ada").await, hub.token("user", "bob").await);
    hub.post(&agent, "/v1/events", failure("grep")).await;
    hub.post(&ada, "/v1/conversations/chat/messages", json!({"text": "stop"})).await;
    let path = "/v1/conversations/chat/pending";
    let (status, waiting) = hub.get(&ada, path).await;
    assert_eq!((status, names(&waiting, "subscriber")), (StatusCode::OK, vec!["user_message".to_owned()]), "{waiting}");
    assert_eq!(waiting["items"][0]["inject_at"], "after_tool");
    assert_eq!(hub.get(&bob, path).await.0, StatusCode::NOT_FOUND);
    assert_eq!(hub.get(&hub.admin, &format!("{path}?user_id=ada")).await.1, waiting);
    assert_eq!(hub.get(&ada, &format!("{path}?agent=other")).await.1["items"], json!([]));
    let (status, answer) = hub.get(&ada, &format!("{path}?agent=a%20b%0Ac")).await;
    assert_eq!((status, &answer["error"]["field"]), (StatusCode::BAD_REQUEST, &json!("agent")), "{answer}");
    hub.post(&agent, "/v1/conversations/chat/inject", json!({"point": "after_tool", "call_id": "c1"})).await;
    let (_, all) = hub.get(&ada, "/v1/conversations/chat/messages").await;
    let (_, last) = hub.get(&ada, "/v1/conversations/chat/messages?order=newest&limit=1").await;
    let all = all["items"].as_array().unwrap();
    assert_eq!((&last["items"][0], all.len()), (all.last().unwrap(), 2), "{last}");
    let cursor = last["next_cursor"].as_str().unwrap();
    let (_, rest) = hub.get(&ada, &format!("/v1/conversations/chat/messages?order=newest&cursor={cursor}")).await;
    assert_eq!((&rest["items"][0], &rest["next_cursor"]), (&all[0], &Value::Null), "{rest}");
    let (status, answer) = hub.get(&ada, "/v1/conversations/chat/messages?order=random").await;
    assert_eq!((status, &answer["error"]["field"]), (StatusCode::BAD_REQUEST, &json!("order")), "{answer}");
}

#[tokio::test]
async fn an_inbox_is_searched_and_deliveries_are_listed_by_person() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    send(&hub, &agent, "Buy milk").await;
    send(&hub, &agent, "Buy bread").await;
    let (_, found) = hub.get(&ada, "/v1/users/ada/notifications?search=MILK").await;
    assert_eq!(names(&found, "message"), ["Buy milk"]);
    let long = "x".repeat(101);
    let (status, answer) = hub.get(&ada, &format!("/v1/users/ada/notifications?search={long}")).await;
    assert_eq!((status, &answer["error"]["field"]), (StatusCode::BAD_REQUEST, &json!("search")), "{answer}");
    assert_eq!(hub.get(&hub.admin, "/v1/deliveries?user_id=ada").await.0, StatusCode::OK);
    assert_eq!(hub.get(&ada, "/v1/deliveries?user_id=bob").await.0, StatusCode::NOT_FOUND);
}

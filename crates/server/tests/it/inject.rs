use reqwest::{Method, StatusCode};
use serde_json::json;

use crate::hub::{TestHub, failure};

const INJECT: &str = "/v1/conversations/chat/inject";

#[tokio::test]
async fn an_injection_after_a_tool_returns_the_block_and_a_repeat_gets_the_same() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    hub.post(&agent, "/v1/events", failure("grep")).await;
    let ask = json!({"point": "after_tool", "call_id": "toolu_1", "tool_result": "ok", "is_error": true});
    let first = hub.post(&agent, INJECT, ask.clone()).await;
    assert_eq!(first.0, StatusCode::OK);
    assert!(first.1["content"].as_str().unwrap().starts_with("ok\n\n<notifications id="), "{}", first.1);
    assert_eq!(hub.post(&agent, INJECT, ask).await, first);
    let (status, _) = hub.post(&agent, INJECT, json!({"point": "turn_end", "call_id": "toolu_1"})).await;
    assert_eq!(status, StatusCode::CONFLICT);
}

#[tokio::test]
async fn accepted_events_survive_a_restart() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    hub.post(&agent, "/v1/events", failure("grep")).await;
    let hub = TestHub::start_in(hub.stop().await).await;
    let (status, answer) = hub.post(&agent, INJECT, json!({"point": "after_tool", "call_id": "1"})).await;
    assert_eq!(status, StatusCode::OK, "the token outlives the process too");
    assert!(answer["block"].as_str().unwrap().contains("grep"), "{answer}");
}

#[tokio::test]
async fn a_persons_message_reaches_the_agent_and_stays_in_the_history() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    hub.call(&ada, Method::PUT, "/v1/conversations/chat", Some(json!({"user_id": "ada", "title": "Work"}))).await;
    let (status, _) = hub.post(&ada, "/v1/conversations/chat/messages", json!({"text": "stop, please"})).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let (_, answer) = hub.post(&agent, INJECT, json!({"point": "after_tool", "call_id": "1"})).await;
    assert!(answer["block"].as_str().unwrap().contains("- [user] \"stop, please\""), "{answer}");
    let (_, history) = hub.get(&ada, "/v1/conversations/chat/messages").await;
    assert_eq!(
        (history["items"][0]["role"].as_str(), history["items"][0]["source"].as_str()),
        (Some("system"), Some("user"))
    );
    let (status, _) = hub.post(&agent, "/v1/conversations/chat/messages", json!({"text": "I am the user"})).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "an agent is not its person");
}

#[tokio::test]
async fn an_observed_call_and_synthetic_messages_work_over_http() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let ask = json!({
        "point": "after_tool", "call_id": "1", "style": "synthetic", "shape": "openai_chat",
        "observed": {"tool_name": "vault_search", "outcome": "failure", "error_message": "no"},
    });
    let (_, answer) = hub.post(&agent, INJECT, ask).await;
    assert_eq!(answer["block"], "");
    assert_eq!(answer["messages"][1]["role"], "tool");
    assert!(answer["messages"][1]["content"].as_str().unwrap().contains("vault_search"));
    let wrong = json!({"point": "after_tool", "call_id": "2", "observed": {"tool_name": "x", "outcome": "maybe"}});
    let (status, answer) = hub.post(&agent, INJECT, wrong).await;
    assert_eq!((status, answer["error"]["field"].as_str()), (StatusCode::BAD_REQUEST, Some("observed.outcome")));
}

#[tokio::test]
async fn a_message_of_the_longest_length_is_shown_whole_and_a_longer_one_is_refused() {
    let hub = TestHub::start().await;
    let (agent, ada) = (hub.token("agent", "ada").await, hub.token("user", "ada").await);
    hub.call(&ada, Method::PUT, "/v1/conversations/chat", Some(json!({"user_id": "ada"}))).await;
    let messages = "/v1/conversations/chat/messages";
    let (status, answer) = hub.post(&ada, messages, json!({"text": "é".repeat(4097)})).await;
    assert_eq!((status, answer["error"]["field"].as_str()), (StatusCode::UNPROCESSABLE_ENTITY, Some("text")));
    assert_eq!(answer["error"]["message"], "has 4097 characters; 1 to 4096 are allowed");
    for text in ["x".repeat(65_537), "é".repeat(1_000_000), " ".repeat(4097)] {
        let (status, answer) = hub.post(&ada, messages, json!({ "text": text })).await;
        assert_eq!((status, answer["error"]["field"].as_str()), (StatusCode::UNPROCESSABLE_ENTITY, Some("text")));
    }
    for text in [json!(""), json!(" \n"), json!(5)] {
        let (status, answer) = hub.post(&ada, messages, json!({ "text": text })).await;
        assert_eq!((status, answer["error"]["field"].as_str()), (StatusCode::BAD_REQUEST, Some("text")));
    }
    let longest = "é".repeat(4096);
    let (status, _) = hub.post(&ada, messages, json!({ "text": longest })).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    hub.post(&ada, messages, json!({"text": longest})).await;
    let ask = json!({"point": "after_tool", "call_id": "1", "max_tokens": 10_000, "max_items": 1});
    let (_, answer) = hub.post(&agent, INJECT, ask).await;
    assert!(answer["block"].as_str().unwrap().contains(&format!("- [user] {longest}\n")), "{answer}");
    let (_, answer) = hub.post(&agent, INJECT, json!({"point": "after_tool", "call_id": "2"})).await;
    let block = answer["block"].as_str().unwrap();
    let (_, said) = block.split_once("characters left out; all of it: GET ").unwrap();
    let (_, event) = hub.get(&agent, said.split_once(')').unwrap().0).await;
    assert_eq!(event["payload"]["text"], longest, "the whole stands where the block says");
}

#[tokio::test]
async fn an_old_call_id_with_another_tool_result_is_answered_with_a_warning_and_no_result_is_stored() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    hub.post(&agent, "/v1/events", failure("grep")).await;
    let ask = async |call_id: &str, result: &str| {
        let ask = json!({"point": "after_tool", "call_id": call_id, "tool_result": result});
        hub.post(&agent, INJECT, ask).await.1
    };
    let first = ask("call_0", "4 files, of purple-elephant").await;
    assert_eq!(first.get("warnings"), None);
    assert_eq!(ask("call_0", "4 files, of purple-elephant").await, first, "a repeated request");
    hub.post(&agent, "/v1/events", failure("sed")).await;
    let again = ask("call_0", "5 files").await;
    assert_eq!(
        (&again["block"], &again["content"]),
        (&first["block"], &json!(format!("5 files\n\n{}", first["block"].as_str().unwrap())))
    );
    let warning = again["warnings"][0].as_str().unwrap();
    assert!(warning.starts_with("call_id: it was used at 2") && warning.contains("use a new call_id"), "{warning}");
    assert!(ask("call_1", "5 files").await["block"].as_str().unwrap().contains("sed"), "the news is still there");
    let folder = hub.stop().await;
    for name in ["bellwire.db", "bellwire.db-wal"] {
        let bytes = std::fs::read(folder.path().join(name)).unwrap_or_default();
        assert!(!bytes.windows(15).any(|window| window == b"purple-elephant"), "{name} has the tool's result");
    }
}

#[tokio::test]
async fn at_most_twenty_calls_can_be_unseen_and_unknown_ones_are_named() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let calls = |number: usize| (0..number).map(|number| format!("toolu_{number}")).collect::<Vec<_>>();
    let ask = json!({"point": "after_tool", "call_id": "1", "unseen": calls(21)});
    let (status, answer) = hub.post(&agent, INJECT, ask).await;
    assert_eq!((status, answer["error"]["field"].as_str()), (StatusCode::BAD_REQUEST, Some("unseen")));
    assert_eq!(answer["error"]["message"], "names 21 calls; at most 20 are allowed");
    let (status, answer) =
        hub.post(&agent, INJECT, json!({"point": "after_tool", "call_id": "1", "unseen": calls(20)})).await;
    assert_eq!((status, answer["warnings"].as_array().map(Vec::len)), (StatusCode::OK, Some(20)));
    let (_, answer) = hub.post(&agent, INJECT, json!({"point": "after_tool", "call_id": "2"})).await;
    assert_eq!(answer.get("warnings"), None);
}

#[tokio::test]
async fn unseen_answers_may_follow_each_other_and_the_notification_is_shown_in_the_last() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    hub.post(&agent, "/v1/events", failure("grep")).await;
    let ask = async |call_id: &str, unseen: &[&str]| {
        hub.post(&agent, INJECT, json!({"point": "after_tool", "call_id": call_id, "unseen": unseen})).await
    };
    let (_, first) = ask("c1", &[]).await;
    let shown = &first["notifications"];
    assert_eq!(shown.as_array().map(Vec::len), Some(1), "{first}");
    // Each call takes back what the call before it took back.
    for (call_id, unseen) in [("c2", ["c1"]), ("c3", ["c2"]), ("c4", ["c3"])] {
        let (status, again) = ask(call_id, &unseen).await;
        assert_eq!((status, &again["notifications"]), (StatusCode::OK, shown), "{again}");
        assert!(again["block"].as_str().unwrap().contains("grep"), "{again}");
    }
    let (_, last) = ask("c5", &["c1", "c2", "c3", "c4", "c5"]).await;
    assert_eq!((&last["notifications"], &last["count"]), (shown, &json!(1)), "once, however many took it back");
    for unseen in ["c1", "c2", "c3", "c4"] {
        assert_eq!(ask(unseen, &[]).await.0, StatusCode::CONFLICT, "{unseen} was never seen");
    }
    assert_eq!(ask("c5", &["c1", "c2", "c3", "c4", "c5"]).await.1, last, "the same call gets the same answer");
    let (_, messages) = hub.get(&agent, "/v1/conversations/chat/messages").await;
    let calls: Vec<_> =
        messages["items"].as_array().unwrap().iter().map(|one| one["call_id"].as_str().unwrap()).collect();
    assert_eq!(calls, ["c5"]);
}

#[tokio::test]
async fn what_the_agent_read_itself_is_stored_and_feeds_the_detectors_but_is_not_told_again() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let observed = |outcome| json!({"tool_name": "grep", "outcome": outcome, "arguments": {"q": 1}, "seen": true});
    let ask = |call: usize, outcome| json!({"point": "after_tool", "call_id": call.to_string(), "observed": observed(outcome)});
    let (_, answer) = hub.post(&agent, INJECT, ask(0, "failure")).await;
    assert_eq!(answer["block"], "");
    let (_, events) = hub.get(&agent, "/v1/events").await;
    let (_, event) = hub.get(&agent, &format!("/v1/events/{}", events["items"][0]["id"].as_str().unwrap())).await;
    assert_eq!(event["payload"]["seen_by_agent"], true, "{event}");
    let verdict = &event["verdicts"][0];
    assert_eq!(
        (&verdict["subscriber"], &verdict["filter"]),
        (&json!("tool_failure"), &json!("agent_saw_it")),
        "{event}"
    );

    let mut blocks = String::new();
    for call in 1..10 {
        let (_, answer) = hub.post(&agent, INJECT, ask(call, "success")).await;
        blocks += answer["block"].as_str().unwrap();
    }
    assert!(blocks.contains("loop") && !blocks.contains("tool_fail"), "the loop detector sees the calls: {blocks}");
}

#[tokio::test]
async fn a_conversation_has_the_folder_of_its_session() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let put = async |body| hub.call(&agent, Method::PUT, "/v1/conversations/chat", Some(body)).await;
    let (status, view) = put(json!({"user_id": "ada", "title": "notes", "folder": "/srv/notes"})).await;
    assert_eq!((status, &view["folder"]), (StatusCode::OK, &json!("/srv/notes")), "{view}");
    put(json!({"user_id": "ada", "title": "other"})).await;
    let (_, list) = hub.get(&agent, "/v1/conversations").await;
    assert_eq!(list["items"][0]["folder"], "/srv/notes", "what a PUT leaves out stays");
    let (status, refused) = put(json!({"user_id": "ada", "folder": "two\nlines"})).await;
    assert_eq!((status, &refused["error"]["field"]), (StatusCode::BAD_REQUEST, &json!("folder")), "{refused}");
}

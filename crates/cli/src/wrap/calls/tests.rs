use super::*;
use crate::wrap::splice::insert;
use serde_json::{Value, json};

const CALL: &str = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"grep","arguments":{"q":"x"}}}"#;

/// The calls of a client that has sent these.
fn after(sent: &[&str]) -> Calls {
    let calls = Calls::default();
    for text in sent {
        assert_eq!(calls.client_said(text, Instant::now()), []);
    }
    calls
}

fn answered(calls: &Calls, text: &str) -> Vec<EndedCall> {
    calls.server_said(text, Instant::now())
}

/// The text with a block at each place.
fn with_blocks(text: &str, ended: &[EndedCall]) -> String {
    let places = ended.iter().filter_map(|call| call.place);
    let insertions: Vec<_> = places.map(|place| (place.end, place.insertion("news"))).collect();
    let mut bytes = text.as_bytes().to_vec();
    insert(&mut bytes, &insertions);
    String::from_utf8(bytes).expect("it stays text")
}

#[test]
fn a_result_gets_a_block_at_the_end_of_its_content_and_nothing_else_changes() {
    let block = r#"{"type":"text","text":"news"}"#;
    let texts = [
        (r#"{"result":{"content":[]},"id":1}"#.to_owned(), format!(r#"{{"result":{{"content":[{block}]}},"id":1}}"#)),
        (
            r#" { "id" : 1.0e0, "id": 1 ,"result" :{"content":[{"content":[]} , {} ] ,"isError":true,"x":1.50} } "#
                .to_owned(),
            format!(
                r#" {{ "id" : 1.0e0, "id": 1 ,"result" :{{"content":[{{"content":[]}} , {{}} ,{block}] ,"isError":true,"x":1.50}} }} "#
            ),
        ),
        (
            r#"{"id":1,"result":{"content":[1],"structuredContent":{"content":[]},"\u0063ontent":[ ]}}"#.to_owned(),
            format!(
                r#"{{"id":1,"result":{{"content":[1],"structuredContent":{{"content":[]}},"\u0063ontent":[ {block}]}}}}"#
            ),
        ),
    ];
    for (text, expected) in texts {
        let ended = answered(&after(&[CALL]), &text);
        assert_eq!(with_blocks(&text, &ended), expected);
    }
}

#[test]
fn every_result_of_a_batch_gets_its_own_block() {
    let calls = after(&[&format!("[{CALL}, {}]", CALL.replace("\"id\":1", "\"id\":\"b\""))]);
    let text = r#"[{"id":"b","result":{"content":[]}},{"method":"notifications/x"},{"id":1,"result":{"content":[0]}}]"#;
    let ended = answered(&calls, text);
    let whole: Value = serde_json::from_str(&with_blocks(text, &ended)).expect("JSON");
    assert_eq!(
        (&whole[0]["result"]["content"][0]["text"], &whole[2]["result"]["content"][1]["text"]),
        (&json!("news"), &json!("news"))
    );
}

#[test]
fn only_the_answer_to_a_tool_call_is_touched() {
    let list = r#"{"id":2,"method":"tools/list"}"#;
    for text in [
        r#"{"id":2,"result":{"content":[]}}"#,
        r#"{"id":3,"result":{"content":[]}}"#,
        r#"{"id":1,"method":"sampling/createMessage","params":{"content":[]}}"#,
        r#"{"id":1,"result":{"content":"text"}}"#,
        r#"{"id":1,"result":{"task":{"taskId":"t"}}}"#,
        r#"{"id":1,"result":{"resultType":"input_required","content":[]}}"#,
        r#"{"id":1,"result":{"content":[}}"#,
        r#"{"id":1,"result":{"content":[]}"#,
        "not JSON",
    ] {
        assert_eq!(answered(&after(&[CALL, list]), text), [], "{text}");
    }
    let calls = after(&[CALL]);
    let text = r#"{"id":1,"result":{"content":[]}}"#;
    assert_eq!(answered(&calls, text).len(), 1);
    assert_eq!(answered(&calls, text), [], "a repeated answer is not an answer");
}

#[test]
fn outcomes_are_reported_with_the_name_the_arguments_and_the_error() {
    let one = |text: &str| answered(&after(&[CALL]), text).remove(0);
    let success = one(r#"{"id":1,"result":{"content":[]}}"#);
    assert_eq!((success.tool.name.as_str(), success.tool.outcome), ("grep", Outcome::Success));
    assert_eq!(success.tool.arguments, Some(json!({ "q": "x" })));
    let failed =
        one(r#"{"id":1,"result":{"isError":true,"content":[{"type":"image"},{"type":"text","text":"no \u0066ile"}]}}"#);
    assert_eq!((failed.tool.outcome, failed.tool.error.as_deref()), (Outcome::Failure, Some("no file")));
    assert!(failed.place.is_some());
    let refused = one(r#"{"id":1,"error":{"code":-32602,"message":"unknown tool"}}"#);
    assert_eq!((refused.tool.outcome, refused.tool.error.as_deref()), (Outcome::Failure, Some("unknown tool")));
    assert_eq!(refused.place, None, "a JSON-RPC error has no content");
    let late = one(r#"{"id":1,"error":{"code":-32001,"message":"Request timed out"}}"#);
    assert_eq!(late.tool.outcome, Outcome::Timeout);
}

#[test]
fn a_client_that_shows_only_structured_content_is_given_nothing_beside_it() {
    let initialize =
        |name: &str| format!(r#"{{"id":0,"method":"initialize","params":{{"clientInfo":{{"name":"{name}"}}}}}}"#);
    let place = |client: &str, text: &str| answered(&after(&[&initialize(client), CALL]), text).remove(0).place;
    let both = r#"{"id":1,"result":{"content":[],"structuredContent":{}}}"#;
    assert_eq!(place("codex-mcp-client", both), None);
    assert!(place("codex-mcp-client", r#"{"id":1,"result":{"content":[],"structuredContent":null}}"#).is_some());
    assert!(place("claude-code", both).is_some());
    let stateless = CALL.replace(
        "\"name\":\"grep\"",
        r#""name":"grep","_meta":{"io.modelcontextprotocol/clientInfo":{"name":"codex-mcp-client"},"threadId":"t1"}"#,
    );
    let ended = answered(&after(&[&stateless]), both).remove(0);
    assert_eq!((ended.place, ended.thread.as_deref()), (None, Some("t1")));
}

#[test]
fn a_cancelled_call_is_a_timeout_and_its_late_answer_is_nothing() {
    let calls = after(&[CALL]);
    let cancel = r#"{"method":"notifications/cancelled","params":{"requestId":1,"reason":"Request timed out"}}"#;
    let ended = calls.client_said(cancel, Instant::now());
    assert_eq!(ended[0].tool.outcome, Outcome::Timeout);
    assert_eq!(ended[0].tool.error.as_deref(), Some("the client cancelled the call: Request timed out"));
    assert_eq!(answered(&calls, r#"{"id":1,"result":{"content":[]}}"#), []);
}

#[test]
fn silence_is_a_timeout_once_and_progress_is_not_silence() {
    let with_token = CALL.replace("\"name\"", "\"_meta\":{\"progressToken\":\"p\"},\"name\"");
    let (calls, limit) = (after(&[&with_token]), Duration::from_secs(60));
    let begun = Instant::now();
    let progress = r#"{"method":"notifications/progress","params":{"progressToken":"p","progress":1}}"#;
    calls.server_said(progress, begun + Duration::from_secs(50));
    assert_eq!(calls.overdue(limit, begun + Duration::from_secs(70)), []);
    let late = calls.overdue(limit, begun + Duration::from_secs(120));
    assert_eq!(
        (late[0].tool.outcome, late[0].tool.error.as_deref()),
        (Outcome::Timeout, Some("no answer within 60 s"))
    );
    assert_eq!(calls.overdue(limit, begun + Duration::from_secs(180)), []);
    let ended = answered(&calls, r#"{"id":1,"result":{"content":[]}}"#).remove(0);
    assert!(ended.place.is_some() && !ended.is_news, "the late answer brings news, and is not reported again");
}

#[test]
fn requests_that_will_not_be_answered_keep_their_id_as_it_was_written() {
    let calls = after(&[r#"{"id":"\u0061","method":"tools/list"}"#, CALL]);
    let mut left = calls.abandon(None, "it ended", Instant::now());
    left.sort_by(|one, other| one.id.cmp(&other.id));
    assert_eq!(left[0].id, r#""\u0061""#);
    assert!(left[0].call.is_none());
    assert_eq!(left[1].call.as_ref().and_then(|call| call.tool.error.as_deref()), Some("it ended"));
    assert!(calls.abandon(None, "it ended", Instant::now()).is_empty());

    let calls = after(&[r#"{"id":"a","method":"tools/list"}"#, CALL]);
    let one = ["1".to_owned()];
    assert!(calls.is_any_open(&one));
    assert_eq!(calls.abandon(Some(&one), "it ended", Instant::now()).len(), 1);
    assert!(!calls.is_any_open(&one) && calls.is_any_open(&["\"a\"".to_owned()]));
}

#[test]
fn the_number_of_watched_requests_is_bounded() {
    let calls = Calls::default();
    for id in 0..PENDING_MAX + 10 {
        calls.client_said(&CALL.replace("\"id\":1", &format!("\"id\":{id}")), Instant::now());
    }
    let long = CALL.replace("\"id\":1", &format!("\"id\":\"{}\"", "x".repeat(ID_MAX)));
    calls.client_said(&long, Instant::now());
    assert_eq!(calls.abandon(None, "", Instant::now()).len(), PENDING_MAX);
}

//! `bellwire inbox` and `bellwire say`.

use serde_json::json;

use crate::hub::Hub;
use crate::program::{assert_output, shown, text};

/// A hub with an agent of Ada's that showed her a toast with two buttons and then sent a message; the ids of both.
fn hub_with_an_inbox() -> (Hub, String, String) {
    let hub = Hub::start();
    let agent = hub.agent_token();
    let opened = hub.run(&["inject", "chat", "turn_start", "turn_1", "--token", &agent]);
    assert!(opened.status.success(), "{}", shown(&opened));
    let token =
        ["token", "create", "--scope", "agent", "--user", "ada", "--origin", "butler", "--conversation", "chat"];
    let bound = text(&hub.run(&token).stdout).trim().to_owned();
    let buttons = json!([
        { "label": "View Logs", "action": "prompt", "prompt": "show me the build logs" },
        { "label": "Try again", "action": "prompt", "prompt": "run the build again" },
        { "label": "Close", "action": "dismiss" },
    ]);
    let toast = json!({ "title": "CI", "message": "Build failed", "severity": "error", "actions": buttons });
    let toast = hub.tool(&bound, "show_notification", &toast);
    hub.tool(&agent, "send_notification", &json!({ "message": "Buy\n\u{1b}[31mmilk", "type": "reminder" }));
    let id = toast["notification"]["id"].as_str().expect("an id").to_owned();
    let newest = hub.json(&["inbox", "--user", "ada", "--limit", "1", "--json"]);
    let message = newest["items"][0]["id"].as_str().expect("an id").to_owned();
    (hub, id, message)
}

#[test]
fn a_person_reads_answers_and_dismisses_notifications() {
    let (hub, toast, message) = hub_with_an_inbox();
    let list = hub.run(&["inbox", "--user", "ada"]);
    let read = hub.run(&["inbox", "read", &message, &message, "--user", "ada"]);
    let unread = hub.json(&["inbox", "--state", "unread", "--user", "ada", "--json"]);
    assert_eq!((unread["items"].as_array().map(Vec::len), &unread["items"][0]["id"]), (Some(1), &json!(toast)));
    let pressed = hub.run(&["inbox", "press", &toast, "view logs", "--user", "ada"]);
    let other = hub.run(&["inbox", "press", &toast, "1", "--user", "ada"]);
    let again = hub.json(&["inbox", "press", &toast, "0", "--user", "ada", "--json"]);
    assert_eq!(again["event_id"].as_str(), Some(text(&pressed.stdout).trim()), "{}", shown(&pressed));
    let block = hub.run(&["inject", "chat", "after_tool", "call_1"]);
    let all = hub.run(&["inbox", "read", "--all", "--user", "ada"]);
    let dismissed = hub.run(&["inbox", "--user", "ada", "dismiss", &message]);
    let after = hub.run(&["inbox", "--user", "ada"]);
    let gone = hub.run(&["inbox", "--state", "dismissed", "--type", "reminder", "--user", "ada"]);
    let said = [&list, &read, &pressed, &other, &block, &all, &dismissed, &after, &gone].map(shown);
    assert_output!(said.join("\n"));
}

#[test]
fn a_persons_own_token_needs_no_user_and_reaches_nobody_else() {
    let (hub, toast, message) = hub_with_an_inbox();
    let (ada, bob) = (hub.user_token_of("ada"), hub.user_token_of("bob"));
    let own = hub.json(&["inbox", "--token", &ada, "--limit", "1", "--json"]);
    assert_eq!(own["items"][0]["id"], json!(message));
    let cursor = own["next_cursor"].as_str().expect("there are more");
    let next = hub.json(&["inbox", "--token", &ada, "--limit", "1", "--cursor", cursor, "--json"]);
    assert_eq!(next["items"][0]["id"], json!(toast));
    assert_eq!(hub.json(&["inbox", "--token", &bob, "--json"])["items"], json!([]));
    let foreign = hub.run(&["inbox", "press", &toast, "0", "--user", "ada", "--token", &bob]);
    assert_eq!(foreign.status.code(), Some(2), "{}", shown(&foreign));
}

#[test]
fn mistakes_with_an_inbox_are_explained() {
    let (hub, toast, _) = hub_with_an_inbox();
    let agent = hub.agent_token();
    let absent = "0198c0de-0000-7000-8000-000000000000";
    let mistakes: [&[&str]; 10] = [
        &["inbox"],
        &["inbox", "--user", "ada", "--state", "new"],
        &["inbox", "--user", "ada", "--limit", "1000"],
        &["inbox", "--state", "unread", "read", "--all", "--user", "ada"],
        &["inbox", "read", "--user", "ada"],
        &["inbox", "read", absent, "--user", "ada"],
        &["inbox", "press", &toast, "Logs", "--user", "ada"],
        &["inbox", "press", &toast, "7", "--user", "ada"],
        &["inbox", "press", absent, "Go", "--user", "ada"],
        &["inbox", "--token", &agent],
    ];
    let said = mistakes.map(|arguments| {
        let output = hub.run(arguments);
        assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0), "{arguments:?}");
        format!("$ bellwire {}\n{}", arguments.join(" ").replace(&agent, "AGENT"), text(&output.stderr))
    });
    assert_output!(said.concat());
}

#[test]
fn a_person_speaks_to_an_agent() {
    let hub = Hub::start();
    let opened = hub.run(&["inject", "chat", "turn_start", "turn_1", "--token", &hub.agent_token()]);
    assert!(opened.status.success(), "{}", shown(&opened));
    let said = hub.run(&["say", "chat", "Stop, please."]);
    let id = text(&said.stdout).trim().to_owned();
    hub.json(&["say", "chat", "@lovelace has the logs", "--json"]);
    let piped = hub.run_with(&["say", "chat", "-", "--user", "ada"], "first line\nsecond line\n");
    assert!(piped.status.success(), "{}", shown(&piped));
    let block = hub.run(&["inject", "chat", "after_tool", "call_1"]);
    let trace = hub.json(&["trace", &id, "--json"]);
    assert_eq!(trace["type"], "user.message", "{trace}");
    let own = hub.run(&["say", "chat", "Thank you", "--token", &hub.user_token_of("ada")]);
    assert!(own.status.success(), "{}", shown(&own));
    let mistakes: [&[&str]; 4] = [
        &["say", "chat", "  "],
        &["say", "absent", "hello"],
        &["say", "chat", "hello", "--token", &hub.user_token_of("bob")],
        &["say", "chat", "hello", "--token", &hub.agent_token()],
    ];
    let refused = mistakes.map(|arguments| text(&hub.run(arguments).stderr));
    assert_output!([shown(&said), shown(&block), refused.concat()].join("\n"));
}

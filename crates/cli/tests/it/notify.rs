//! `bellwire notify` and `bellwire ledger`, in one process and in three.

use std::io::{Read as _, Write as _};

use serde_json::{Value, json};
use telegram_standin::{Fault, Message, Standin};

use crate::hub::Hub;
use crate::mcp::Agent;
use crate::program::{assert_output, shown, text};

/// Ada's chat.
const CHAT: i64 = 1815;

/// Telegram without pacing, and no limit that a test reaches.
fn section(telegram: &Standin, mode: &str) -> String {
    let (token, url) = (telegram.token(), telegram.url());
    format!(
        "[limits]\nnotifications_per_hour = 10000\n[telegram]\ntoken = \"{token}\"\napi_url = \"{url}\"\nmode = \
         \"{mode}\"\nmessages_per_second = 0\nchat_interval_ms = 0\n"
    )
}

/// Connects Ada's chat. The bot's first message says so.
fn pair(hub: &Hub, telegram: &Standin) {
    let code = hub.json(&["telegram", "pair", "ada", "--json"])["code"].as_str().expect("a code").to_owned();
    telegram.types(CHAT, &format!("/start {code}"));
    sent(telegram, 1);
}

/// A hub with Telegram, to which Ada's chat is connected.
fn hub_with_telegram(telegram: &Standin) -> Hub {
    let hub = Hub::configured(&section(telegram, "poll"));
    pair(&hub, telegram);
    hub
}

fn sent(telegram: &Standin, count: usize) -> Vec<Message> {
    tokio::runtime::Runtime::new().expect("a runtime").block_on(telegram.wait_for_sent(CHAT, count))
}

/// The texts after the first message.
fn texts(telegram: &Standin) -> Vec<String> {
    telegram.sent(CHAT).into_iter().skip(1).map(|message| message.text).collect()
}

const AS_BACKUP: [&str; 4] = ["--user", "ada", "--origin", "backup"];

fn notify(hub: &Hub, arguments: &[&str]) -> std::process::Output {
    hub.run(&[&["notify"], arguments, &AS_BACKUP].concat())
}

#[test]
fn a_script_sends_a_message_once_and_prints_its_id() {
    let telegram = Standin::start();
    let hub = hub_with_telegram(&telegram);
    let keyed = ["telegram", "The backup is done.", "--idempotency-key", "nightly"];
    let outputs = [notify(&hub, &keyed), notify(&hub, &keyed)];
    let message = telegram.sent(CHAT).pop().expect("a message");
    for output in &outputs {
        assert_eq!(output.status.code(), Some(0), "{}", shown(output));
        assert_eq!(text(&output.stdout).trim(), message.message_id.to_string(), "{}", shown(output));
    }
    assert_eq!(texts(&telegram), ["[backup] The backup is done."]);
    let piped = hub.run_with(&[&["notify", "telegram", "-"][..], &AS_BACKUP].concat(), "from a pipe\n");
    assert_eq!(piped.status.code(), Some(0), "{}", shown(&piped));
    let result = hub.json(&[&["notify", "telegram", "as JSON", "--json"][..], &AS_BACKUP].concat());
    assert_eq!((&result["status"], &result["delivery"]["channel"]), (&json!("ok"), &json!("telegram")));
    assert_eq!(texts(&telegram)[1..], ["[backup] from a pipe", "[backup] as JSON"]);
}

#[test]
fn a_script_learns_what_is_wrong_by_exit_code_and_words() {
    let telegram = Standin::start();
    let hub = hub_with_telegram(&telegram);
    let wrong = [
        &["sms", "Hello"][..],
        &["telegram"],
        &["telegram", "Hello", "--recipient", "99"],
        &["telegram", "--intent", "react"],
        &["telegram", "Yes", "--intent", "reply", "--request-context", "{\"request_id\": 1}"],
        &["telegram", "Yes", "--intent", "reply", "--request-context", "nonsense"],
    ];
    let said: String = wrong
        .iter()
        .map(|arguments| format!("$ notify {}\n{}\n", arguments.join(" "), shown(&notify(&hub, arguments))))
        .collect();
    assert_output!(said);
    assert!(texts(&telegram).is_empty());
    telegram.fail_next("sendMessage", Fault::TooManyRequests(7));
    let busy = notify(&hub, &["telegram", "Hello"]);
    assert_eq!(busy.status.code(), Some(1), "{}", shown(&busy));
    assert!(text(&busy.stderr).contains("(try again in 7 s)"), "{}", shown(&busy));
}

#[test]
fn the_ledger_lists_and_sums_what_was_decided_and_the_doctor_warns() {
    let telegram = Standin::start();
    let hub = hub_with_telegram(&telegram);
    assert!(notify(&hub, &["telegram", "Hello"]).status.success());
    for number in 0..3 {
        let arguments =
            ["notify", "telegram", &number.to_string(), "--user", "ada", "--origin", "lost", "--recipient", "99"];
        assert_eq!(hub.run(&arguments).status.code(), Some(1));
    }
    let lists = [
        &["ledger"][..],
        &["ledger", "--decision", "delivered"],
        &["ledger", "--sums"],
        &["ledger", "--origin", "nobody"],
    ];
    let said: String =
        lists.iter().map(|arguments| format!("$ {}\n{}\n", arguments.join(" "), shown(&hub.run(arguments)))).collect();
    assert_output!(said);
    assert_eq!(hub.json(&["ledger", "--json", "--limit", "2"])["items"].as_array().map(Vec::len), Some(2));
    let doctor = hub.run(&["doctor"]);
    assert!(doctor.status.success(), "a warning is no failure: {}", shown(&doctor));
    let said = text(&doctor.stdout);
    assert!(
        said.contains("warn notify          nothing that 'lost' sent in seven days was delivered: 3 refused"),
        "{said}"
    );
    assert!(!said.contains("'backup'"), "{said}");
}

#[test]
fn any_agent_becomes_a_butler_by_its_origin() {
    let telegram = Standin::start();
    let hub = hub_with_telegram(&telegram);
    let mut agent = Agent::initialized(&mut hub.command(&["mcp", "--origin", "health", "--user", "ada"]));
    let listed = agent.ask("tools/list", json!({}))["result"]["tools"].clone();
    let tool = listed.as_array().and_then(|tools| tools.iter().find(|tool| tool["name"] == "notify").cloned());
    let tool = tool.expect("notify is a core tool");
    assert_eq!(tool["inputSchema"]["properties"]["channel"]["enum"], json!(["telegram"]), "what the hub accepts");
    let answer = agent.call("notify", json!({"channel": "telegram", "message": "Drink water."}));
    assert_eq!((&answer["isError"], &answer["structuredContent"]["status"]), (&json!(false), &json!("ok")), "{answer}");
    assert_eq!(texts(&telegram), ["[health] Drink water."]);
    let refused = agent.call("notify", json!({"channel": "sms", "message": "x"}));
    assert_eq!(refused["isError"], true, "{refused}");
    agent.leave();
}

#[test]
fn an_agents_token_has_its_own_origin_and_no_other() {
    let telegram = Standin::start();
    let hub = hub_with_telegram(&telegram);
    let token = hub.agent_token();
    let call = |origin: &str| -> Value {
        let mut agent = Agent::initialized(hub.command(&["mcp", "--origin", origin]).env("BELLWIRE_TOKEN", &token));
        let answer = agent.call("notify", json!({"channel": "telegram", "message": "Hello"}));
        agent.leave();
        answer
    };
    assert_eq!(call("butler")["structuredContent"]["status"], "ok");
    let forged = call("health");
    assert_eq!(forged["isError"], true, "{forged}");
    let why = forged["structuredContent"]["error"]["message"].as_str().expect("a text");
    assert!(why.contains("this token speaks as 'butler' and as no other origin"), "{why}");
    assert_eq!(texts(&telegram), ["[butler] Hello"]);
    let forged = hub.run(&["notify", "telegram", "x", "--origin", "health", "--token", &token]);
    assert_eq!(forged.status.code(), Some(2), "{}", shown(&forged));
}

/// Hub, Switchboard and Messenger as three processes, each with its own data folder. Only the Messenger can send.
struct Three {
    hub: Hub,
    _switchboard: Hub,
    messenger: Hub,
}

/// A section of the configuration: where a process runs, with a file for its token.
fn remote(section: &str, hub: &Hub, origin: &str) -> String {
    let made = hub.run(&["token", "create", "--scope", "daemon", "--origin", origin]);
    assert!(made.status.success(), "{}", shown(&made));
    let file = hub.home.path().join(format!("{section}.token"));
    std::fs::write(&file, made.stdout).expect("it can be written");
    format!("[{section}]\nurl = \"{}\"\ntoken_file = \"{}\"\n", hub.url, file.display())
}

fn three(telegram: &Standin) -> Three {
    let origins = (0..BUTLERS).map(|number| format!("butler-{number}")).chain(["backup".to_owned()]);
    let lists: Vec<String> = origins.map(|origin| format!("{origin} = [\"telegram:{CHAT}\"]")).collect();
    let allow = format!("[notify]\nallow = {{ {} }}\n", lists.join(", "));
    let messenger = Hub::configured(&format!("{}{allow}", section(telegram, "send")));
    let switchboard = Hub::configured(&remote("messenger", &messenger, "switchboard"));
    let hub = format!("{}{}", section(telegram, "poll"), remote("switchboard", &switchboard, "hub"));
    let hub = Hub::configured(&hub);
    pair(&hub, telegram);
    Three { hub, _switchboard: switchboard, messenger }
}

#[test]
fn three_processes_deliver_once_and_each_knows_its_part() {
    let telegram = Standin::start();
    let three = three(&telegram);
    let keyed = ["telegram", "The backup is done.", "--idempotency-key", "nightly"];
    let outputs = [notify(&three.hub, &keyed), notify(&three.hub, &keyed)];
    assert_eq!(text(&outputs[0].stdout), text(&outputs[1].stdout), "{}", shown(&outputs[0]));
    assert_eq!(texts(&telegram), ["[backup] The backup is done."]);
    let count = |hub: &Hub| hub.json(&["ledger", "--json"])["items"].as_array().map(Vec::len);
    assert_eq!((count(&three.hub), count(&three.messenger)), (Some(1), Some(1)));
    assert_eq!(three.messenger.json(&["ledger", "--json"])["items"][0]["user_id"], Value::Null, "it knows no people");
    assert_eq!(three.hub.json(&["inbox", "--user", "ada", "--json"])["items"].as_array().map(Vec::len), Some(1));
    let foreign = three.hub.run(&["notify", "telegram", "x", "--user", "ada", "--origin", "bank"]);
    assert_eq!(foreign.status.code(), Some(1), "{}", shown(&foreign));
    assert!(text(&foreign.stderr).contains("allow-list"), "the Messenger has its own list: {}", shown(&foreign));
}

#[test]
fn a_messenger_that_is_killed_after_telegram_accepted_leaves_an_unknown_outcome_and_no_second_message() {
    let telegram = Standin::start();
    let Three { hub, _switchboard, mut messenger } = three(&telegram);
    let gate = telegram.hold("sendMessage");
    let keyed = ["telegram", "Once.", "--idempotency-key", "k"];
    let output = std::thread::scope(|scope| {
        let asking = scope.spawn(|| notify(&hub, &keyed));
        sent(&telegram, 2);
        messenger.kill();
        asking.join().expect("it ends")
    });
    gate.open();
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    assert!(text(&output.stderr).contains("Delivery outcome unknown"), "{}", shown(&output));
    let again = notify(&hub, &keyed);
    assert_eq!(text(&again.stderr), text(&output.stderr), "the first answer");
    assert_eq!(texts(&telegram), ["[backup] Once."]);
    assert_eq!(hub.json(&["ledger", "--json"])["items"][0]["decision"], "unknown");
    // What was not attempted can be tried again.
    let second = ["telegram", "Twice.", "--idempotency-key", "l"];
    let away = notify(&hub, &second);
    assert!(text(&away.stderr).contains("the Messenger cannot be reached"), "{}", shown(&away));
    assert!(text(&away.stderr).contains("(try again later)"), "{}", shown(&away));
    let messenger = messenger.restart();
    let arrived = notify(&hub, &second);
    assert_eq!(arrived.status.code(), Some(0), "{}", shown(&arrived));
    assert_eq!(texts(&telegram), ["[backup] Once.", "[backup] Twice."]);
    let ledger = messenger.json(&["ledger", "--json"]);
    let decisions: Vec<&Value> =
        ledger["items"].as_array().expect("a list").iter().map(|one| &one["decision"]).collect();
    assert_eq!(decisions, ["delivered", "unknown"], "a Messenger that starts again ends what it was sending");
}

const BUTLERS: usize = 50;

/// Calls the tool as a butler, over a connection of its own, and returns the result.
fn call_as(hub: &Hub, admin: &str, origin: &str, arguments: &Value) -> Value {
    let host = hub.url.trim_start_matches("http://");
    let body = json!({"arguments": arguments, "context": {"user_id": "ada"}}).to_string();
    let request = format!(
        "POST /v1/tools/notify HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {admin}\r\nbellwire-origin: \
         {origin}\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = std::net::TcpStream::connect(host).expect("the hub listens");
    stream.write_all(request.as_bytes()).expect("it can be sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    let (_, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    serde_json::from_str(body).unwrap_or_else(|_| panic!("{answer}"))
}

/// Each butler makes the same two requests, each twice, all at once. Every one is a message once, and both calls of a pair
/// have one answer.
fn storm(hub: &Hub, telegram: &Standin) {
    let file = hub.home.path().join(".local/share/bellwire/admin.token");
    let admin = std::fs::read_to_string(file).expect("the hub has written it");
    let call = |butler: usize, request: u128| {
        let context = json!({
            "request_id": format!("0190a3c2-7b1e-7000-8000-{request:012}"), "source_channel": "mcp",
            "source_endpoint_identity": "cron", "source_sender_identity": "cron",
        });
        let message = format!("{butler} {request}");
        let arguments = json!({"channel": "telegram", "message": message, "request_context": context});
        call_as(hub, admin.trim(), &format!("butler-{butler}"), &arguments)["delivery"].clone()
    };
    let pairs: Vec<(Value, Value)> = std::thread::scope(|scope| {
        let spawn = |butler, request| scope.spawn(move || call(butler, request));
        let all = (0..BUTLERS).flat_map(|butler| (0..2).map(move |request| (butler, request)));
        let pairs: Vec<_> = all.map(|(butler, request)| (spawn(butler, request), spawn(butler, request))).collect();
        pairs.into_iter().map(|(one, other)| (one.join().expect("it ends"), other.join().expect("it ends"))).collect()
    });
    for (one, other) in &pairs {
        assert!(one["delivery_id"].is_string(), "{one}");
        assert_eq!(one, other, "the duplicate has the first answer");
    }
    let texts = texts(telegram);
    let distinct: std::collections::BTreeSet<&String> = texts.iter().collect();
    assert_eq!((texts.len(), distinct.len()), (2 * BUTLERS, 2 * BUTLERS), "each is delivered exactly once");
}

#[test]
fn fifty_butlers_at_once_in_one_process_reach_telegram_exactly_once() {
    let telegram = Standin::start();
    storm(&hub_with_telegram(&telegram), &telegram);
}

#[test]
fn fifty_butlers_at_once_through_three_processes_reach_telegram_exactly_once() {
    let telegram = Standin::start();
    let three = three(&telegram);
    storm(&three.hub, &telegram);
    let sums = three.messenger.json(&["ledger", "--sums", "--json"]);
    let delivered: u64 =
        sums["items"].as_array().expect("a list").iter().filter_map(|one| one["delivered"].as_u64()).sum();
    assert_eq!(delivered, 2 * BUTLERS as u64);
}

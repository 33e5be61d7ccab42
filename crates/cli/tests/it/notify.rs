//! `bellwire notify` and `bellwire ledger`, in one process and in three.

use serde_json::{Value, json};
use telegram_standin::{Fault, Message, Standin};

use crate::hub::Hub;
use crate::mcp::Agent;
use crate::program::{assert_output, shown, text};

/// Ada's chat.
const CHAT: i64 = 1815;

fn section(telegram: &Standin, mode: &str) -> String {
    let (token, url) = (telegram.token(), telegram.url());
    format!("[telegram]\ntoken = \"{token}\"\napi_url = \"{url}\"\nmode = \"{mode}\"\nchat_interval_ms = 0\n")
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
    let allow = format!("[notify]\nallow = {{ backup = [\"telegram:{CHAT}\"] }}\n");
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

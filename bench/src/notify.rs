//! `notify` calls from HTTP to a stand-in for Telegram and back, in one process and through three.
//!
//! The ceiling is the stand-in itself: the same messages, sent to it directly over as many connections.

use std::path::PathBuf;

use serde_json::{Value, json};
use telegram_standin::Standin;
use tempfile::TempDir;

use crate::hub::print;
use crate::load::{self, Lap, ask_once, request};
use crate::measure::{RunMode, print_section};
use crate::serving::{self, ChildServer};

/// The chats that the calls go to in turn, and their first id.
const CHATS: usize = 200;
const FIRST_CHAT: i64 = 1_000;
const REQUESTS: usize = 20_000;
const ORIGIN: &str = "bench";

pub(crate) fn run(mode: RunMode) {
    print_section("notify", "one call, one message at a stand-in for Telegram; all processes on the same cores");
    let telegram = Standin::start();
    chats().for_each(|chat| telegram.open_chat(chat));
    let one = Path::of_one(&telegram);
    let three = Path::of_three(&telegram);
    let mut number = 0;
    for connections in [1, 16] {
        let (mut ceiling, mut alone, mut apart) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..mode.laps(5) {
            let mut requests = |make: &dyn Fn(usize) -> Vec<u8>| {
                number += REQUESTS;
                (number - REQUESTS..number).map(make).collect::<Vec<_>>()
            };
            ceiling.push(load::send(telegram.address(), connections, requests(&direct)));
            alone.push(one.lap(&telegram, connections, requests(&|number| one.call(number))));
            apart.push(three.lap(&telegram, connections, requests(&|number| three.call(number))));
        }
        let plural = if connections == 1 { "connection" } else { "connections" };
        let most = print(&format!("stand-in alone, {connections} {plural}"), "messages", ceiling, "");
        for (name, laps) in [("one process", alone), ("three processes", apart)] {
            let best = laps.iter().map(Lap::per_second).fold(0.0, f64::max);
            let against = format!("{:.2} of the stand-in", best / most);
            print(&format!("notify, {name}, {connections} {plural}"), "messages", laps, &against);
        }
    }
}

/// The processes that a call goes through.
struct Path {
    hub: ChildServer,
    /// The token of an agent of the hub.
    token: String,
    _others: Vec<ChildServer>,
    _tokens: TempDir,
}

impl Path {
    fn of_one(telegram: &Standin) -> Self {
        let hub = start(&channel(telegram));
        let token = agent_token(&hub);
        Self { hub, token, _others: Vec::new(), _tokens: serving::folder() }
    }

    fn of_three(telegram: &Standin) -> Self {
        let tokens = serving::folder();
        let messenger = start(&channel(telegram));
        let switchboard = start(&remote("MESSENGER", &messenger, "switchboard", &tokens));
        let hub = [channel(telegram), remote("SWITCHBOARD", &switchboard, "hub", &tokens)].concat();
        let hub = start(&hub);
        let token = agent_token(&hub);
        Self { hub, token, _others: vec![messenger, switchboard], _tokens: tokens }
    }

    fn call(&self, number: usize) -> Vec<u8> {
        let arguments = json!({"channel": "telegram", "message": text(number), "recipient": chat(number).to_string()});
        let body = json!({ "arguments": arguments }).to_string();
        request("POST", "/v1/tools/notify", &self.token, "application/json", body.as_bytes())
    }

    /// One lap, after which every answered call must have become exactly one message.
    fn lap(&self, telegram: &Standin, connections: usize, requests: Vec<Vec<u8>>) -> Lap {
        let before = received(telegram);
        let lap = load::send(self.hub.address, connections, requests);
        assert_eq!(received(telegram) - before, lap.answers, "each call is one message");
        lap
    }
}

fn chats() -> impl Iterator<Item = i64> {
    (FIRST_CHAT..).take(CHATS)
}

fn chat(number: usize) -> i64 {
    chats().nth(number % CHATS).unwrap_or(FIRST_CHAT)
}

fn text(number: usize) -> String {
    format!("Build {number} is green; deploy it when you like.")
}

fn received(telegram: &Standin) -> usize {
    chats().map(|chat| telegram.sent(chat).len()).sum()
}

/// The same message without Bellwire.
fn direct(number: usize) -> Vec<u8> {
    let body = json!({"chat_id": chat(number), "text": format!("[{ORIGIN}] {}", text(number))}).to_string();
    let path = format!("/bot{}/sendMessage", Standin::TOKEN);
    request("POST", &path, "none", "application/json", body.as_bytes())
}

/// Telegram without pacing, and all chats allowed.
fn channel(telegram: &Standin) -> Vec<(&'static str, String)> {
    let allow: Vec<String> = chats().map(|chat| format!("{ORIGIN}=telegram:{chat}")).collect();
    vec![
        ("BELLWIRE_TELEGRAM_TOKEN", Standin::TOKEN.to_owned()),
        ("BELLWIRE_TELEGRAM_API_URL", telegram.url()),
        ("BELLWIRE_TELEGRAM_MODE", "send".to_owned()),
        ("BELLWIRE_TELEGRAM_MESSAGES_PER_SECOND", "0".to_owned()),
        ("BELLWIRE_TELEGRAM_CHAT_INTERVAL_MS", "0".to_owned()),
        ("BELLWIRE_LIMITS_NOTIFICATIONS_PER_HOUR", "10000".to_owned()),
        ("BELLWIRE_NOTIFY_ALLOW", allow.join(",")),
    ]
}

/// Where a part of the path runs, with a file for its token.
fn remote(part: &str, hub: &ChildServer, origin: &str, folder: &TempDir) -> Vec<(&'static str, String)> {
    let path: PathBuf = folder.path().join(format!("{part}.token"));
    std::fs::write(&path, token(hub, &json!({"scope": "daemon", "origin": origin}))).expect("the folder is there");
    let (url, file) = match part {
        "MESSENGER" => ("BELLWIRE_MESSENGER_URL", "BELLWIRE_MESSENGER_TOKEN_FILE"),
        _ => ("BELLWIRE_SWITCHBOARD_URL", "BELLWIRE_SWITCHBOARD_TOKEN_FILE"),
    };
    vec![(url, format!("http://{}", hub.address)), (file, path.display().to_string())]
}

fn start(variables: &[(&str, String)]) -> ChildServer {
    let variables: Vec<(&str, &str)> = variables.iter().map(|(name, value)| (*name, value.as_str())).collect();
    ChildServer::hub_with(&variables)
}

fn agent_token(hub: &ChildServer) -> String {
    token(hub, &json!({"scope": "agent", "user_id": "*", "origin": ORIGIN}))
}

fn token(hub: &ChildServer, body: &Value) -> String {
    let ask = request("POST", "/v1/tokens", &hub.token, "application/json", body.to_string().as_bytes());
    let answer = ask_once(hub.address, &ask);
    answer["token"].as_str().expect("a token is made").to_owned()
}

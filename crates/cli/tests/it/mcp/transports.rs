//! The same requests on standard input and output and over HTTP get the same answers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use serde_json::{Value, json};

use super::{Agent, bound_token, hello};
use crate::hub::Hub;

/// A client of the same MCP server over HTTP.
struct HttpAgent<'a> {
    hub: &'a Hub,
    token: &'a str,
    session: Option<String>,
}

impl HttpAgent<'_> {
    /// Posts a message; returns the head of the response and the message in it, which is null if there is none.
    fn post(&self, message: &Value) -> (String, Value) {
        let host = self.hub.url.trim_start_matches("http://");
        let session = self.session.as_ref().map(|id| format!("Mcp-Session-Id: {id}\r\n")).unwrap_or_default();
        let message = message.to_string();
        let mut stream = TcpStream::connect(host).expect("the hub listens");
        let request = format!(
            "POST /mcp HTTP/1.0\r\nHost: {host}\r\nAuthorization: Bearer {}\r\n{session}Content-Type: \
             application/json\r\nAccept: application/json, text/event-stream\r\nContent-Length: {}\r\n\r\n{message}",
            self.token,
            message.len()
        );
        stream.write_all(request.as_bytes()).expect("the hub reads");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).expect("the hub answers");
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let mut messages =
            body.lines().filter_map(|line| serde_json::from_str(line.strip_prefix("data:")?.trim()).ok());
        let message = messages.next().or_else(|| serde_json::from_str(body).ok());
        (head.to_owned(), message.unwrap_or_default())
    }

    fn ask(&mut self, method: &str, params: &Value) -> Value {
        let (head, answer) = self.post(&json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params}));
        let session =
            head.lines().find_map(|line| line.to_lowercase().strip_prefix("mcp-session-id: ").map(str::to_owned));
        if self.session.is_none() && session.is_some() {
            self.session = session;
            self.post(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        }
        answer
    }
}

#[test]
fn both_transports_answer_the_same() {
    let hub = Hub::start();
    let (bound, personal) = (bound_token(&hub), hub.agent_token());
    for token in [&bound, &personal] {
        let mut over_http = HttpAgent { hub: &hub, token, session: None };
        let (mut on_stdio, introduced) = Agent::introduced(hub.command(&["mcp"]).env("BELLWIRE_TOKEN", token));
        assert_eq!(over_http.ask("initialize", &hello())["result"], introduced);
        let named = json!({"_meta": {"bellwire/conversation_id": "chat"}});
        let uri = "bellwire://conversations/chat/notifications";
        for (method, params) in [
            ("tools/list", json!({})),
            ("resources/list", json!({})),
            ("resources/list", named),
            ("resources/templates/list", json!({})),
            ("resources/read", json!({"uri": uri})),
            ("prompts/list", json!({})),
            ("prompts/get", json!({"name": "none"})),
            (
                "completion/complete",
                json!({"ref": {"type": "ref/prompt", "name": "a"}, "argument": {"name": "b", "value": ""}}),
            ),
        ] {
            assert_eq!(on_stdio.ask(method, params.clone()), over_http.ask(method, &params), "{method} {params}");
        }
        let listed = on_stdio.ask("resources/list", json!({}));
        let own: Vec<&str> = if token == &bound { vec![uri] } else { Vec::new() };
        let resources = listed["result"]["resources"].as_array().expect("a list").iter();
        assert_eq!(resources.map(|one| one["uri"].as_str().expect("a URI")).collect::<Vec<_>>(), own);
        on_stdio.leave();
    }
}

#[test]
fn the_instructions_name_the_boundary_of_the_conversation() {
    let hub = Hub::start();
    let token = bound_token(&hub);
    let by_token = Agent::introduced(hub.command(&["mcp"]).env("BELLWIRE_TOKEN", &token));
    let by_flags = Agent::introduced(&mut hub.command(&["mcp", "--user", "bob", "--conversation", "chat"]));
    for (mut agent, introduced) in [by_token, by_flags] {
        agent.call("notify_self", json!({"message": "look at the logs"}));
        let read = agent.call("check_notifications", json!({}));
        let block = read["structuredContent"]["notifications"].as_str().expect("a block");
        let opening = block.split(" count=").next().expect("an opening tag");
        assert!(introduced["instructions"].as_str().expect("text").contains(opening), "{opening} {introduced}");
        agent.leave();
    }
}

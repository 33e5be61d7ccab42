//! The Model Context Protocol at `/mcp`, message by message, with sessions (before 2026-07-28) and without.

use std::time::Duration;

use bellwire_server::Config;
use futures_util::StreamExt as _;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::{Value, json};

use crate::hub::{TestHub, failure};
use crate::mailed::wait_for;

const NEWEST: &str = "2026-07-28";
const ACCEPT: &str = "application/json, text/event-stream";

/// A client that sends exactly the messages of a test.
pub(crate) struct Client<'a> {
    hub: &'a TestHub,
    token: String,
    session: Option<String>,
}

/// The messages of an SSE response.
pub(crate) struct Messages {
    body: std::pin::Pin<Box<dyn futures_util::Stream<Item = reqwest::Result<Vec<u8>>> + Send>>,
    text: String,
}

impl Messages {
    pub(crate) fn of(response: Response) -> Self {
        let body = response.bytes_stream().map(|chunk| chunk.map(|bytes| bytes.to_vec()));
        Self { body: Box::pin(body), text: String::new() }
    }

    /// The next message; `None` when the stream ends.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        loop {
            let event = self.event().await?;
            let data: String = event.lines().filter_map(|line| line.strip_prefix("data:")).collect();
            if let Ok(message) = serde_json::from_str(&data) {
                return Some(message);
            }
        }
    }

    /// The text of the next event; `None` when the stream ends.
    async fn event(&mut self) -> Option<String> {
        let wait = async {
            loop {
                if let Some(end) = self.text.find("\n\n") {
                    return Some(self.text.drain(..end + 2).collect());
                }
                match self.body.next().await {
                    Some(Ok(bytes)) => self.text.push_str(&String::from_utf8_lossy(&bytes).replace('\r', "")),
                    _ => return None,
                }
            }
        };
        tokio::time::timeout(Duration::from_secs(20), wait).await.expect("the stream says something in time")
    }
}

impl<'a> Client<'a> {
    pub(crate) fn new(hub: &'a TestHub, token: &str) -> Self {
        Self { hub, token: token.to_owned(), session: None }
    }

    /// A client with an initialized session.
    pub(crate) async fn introduced(hub: &'a TestHub, token: &str, version: &str) -> (Self, Value) {
        let mut client = Self::new(hub, token);
        let params = json!({
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        });
        let response = client.send("initialize", params).await;
        assert_eq!(response.status(), StatusCode::OK);
        client.session = response.headers().get("mcp-session-id").map(|id| id.to_str().unwrap().to_owned());
        let answer = Messages::of(response).next().await.expect("an answer");
        let told = client.request(Method::POST).json(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        assert_eq!(told.send().await.unwrap().status(), StatusCode::ACCEPTED);
        (client, answer["result"].clone())
    }

    pub(crate) fn request(&self, method: Method) -> RequestBuilder {
        let request = self.hub.client.request(method, format!("{}/mcp", self.hub.base)).bearer_auth(&self.token);
        let request = request.header("accept", ACCEPT);
        match &self.session {
            Some(id) => request.header("mcp-session-id", id),
            None => request,
        }
    }

    pub(crate) async fn send(&self, method: &str, params: Value) -> Response {
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        self.request(Method::POST).json(&message).send().await.expect("the hub answers")
    }

    /// A request of the newest revision, which has no sessions.
    pub(crate) async fn send_alone(&self, method: &str, mut params: Value) -> Response {
        let meta = json!({
            "io.modelcontextprotocol/protocolVersion": NEWEST,
            "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
        });
        for (key, value) in meta.as_object().unwrap() {
            params["_meta"][key] = value.clone();
        }
        let mut request =
            self.request(Method::POST).header("mcp-protocol-version", NEWEST).header("mcp-method", method);
        if let Some(name) = params["name"].as_str() {
            request = request.header("mcp-name", name);
        }
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params});
        request.json(&message).send().await.expect("the hub answers")
    }

    pub(crate) async fn ask(&self, method: &str, params: Value) -> Value {
        answer(self.send(method, params).await).await
    }

    async fn call(&self, tool: &str, arguments: Value, meta: Value) -> Value {
        self.ask("tools/call", json!({"name": tool, "arguments": arguments, "_meta": meta})).await["result"].clone()
    }

    async fn stream(&self) -> Messages {
        let response = self.request(Method::GET).header("accept", "text/event-stream").send().await.unwrap();
        assert_eq!(response.status(), StatusCode::OK);
        Messages::of(response)
    }
}

/// Opens the event stream of revision 2024-11-05; returns the URL for messages too.
async fn open_sse(hub: &TestHub, token: &str) -> (String, Messages) {
    let response = hub.client.get(format!("{}/mcp/sse", hub.base)).bearer_auth(token).send().await.unwrap();
    assert_eq!(response.status(), StatusCode::OK);
    assert_eq!(response.headers()["content-type"], "text/event-stream");
    let mut messages = Messages::of(response);
    let event = messages.event().await.expect("the first event");
    let path = event.strip_prefix("event: endpoint\ndata: ").expect("the endpoint").trim_end();
    assert!(path.starts_with("/mcp/messages?sessionId="), "{path}");
    (format!("{}{path}", hub.base), messages)
}

async fn answer(response: Response) -> Value {
    let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
    match kind.starts_with("application/json") {
        true => response.json().await.unwrap(),
        false => Messages::of(response).next().await.expect("an answer"),
    }
}

fn chat() -> Value {
    json!({"bellwire/conversation_id": "chat"})
}

const CHAT_URI: &str = "bellwire://conversations/chat/notifications";

#[tokio::test]
async fn every_protocol_revision_is_supported() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let (client, result) = Client::introduced(&hub, &agent, version).await;
        assert_eq!(result["protocolVersion"], version);
        assert_eq!(result["serverInfo"]["name"], "bellwire");
        let tools = client.ask("tools/list", json!({})).await;
        assert!(tools["result"]["tools"].as_array().unwrap().len() >= 2, "{tools}");
    }
    let client = Client::new(&hub, &agent);
    let found = answer(client.send_alone("server/discover", json!({})).await).await;
    assert!(found["result"]["supportedVersions"].as_array().unwrap().contains(&json!(NEWEST)), "{found}");
    let listed = answer(client.send_alone("tools/list", json!({})).await).await;
    assert_eq!(listed["result"]["tools"][0]["name"], "check_notifications", "{listed}");
}

#[tokio::test]
async fn a_tool_result_is_structured_and_text_with_the_call_id_in_meta() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let (client, _) = Client::introduced(&hub, &agent, "2025-11-25").await;
    hub.post(&agent, "/v1/events", failure("grep")).await;
    let left = client.call("notify_self", json!({"message": "logs"}), chat()).await;
    assert_eq!(left["isError"], false, "{left}");
    let text: Value = serde_json::from_str(left["content"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(text, left["structuredContent"]);
    assert!(text["notifications"].as_str().unwrap().contains("grep"), "{text}");
    assert!(left["_meta"]["bellwire/call_id"].is_string(), "{left}");

    let arguments = json!({"name": "check_notifications", "_meta": chat()});
    let read = answer(Client::new(&hub, &agent).send_alone("tools/call", arguments).await).await;
    let read = &read["result"]["structuredContent"];
    assert!(read["notifications"].as_str().unwrap().contains("logs"), "{read}");

    let refused = client.call("notify_self", json!({"message": ""}), chat()).await;
    assert_eq!((&refused["isError"], &refused["structuredContent"]["success"]), (&json!(true), &json!(false)));
    let unknown = client.ask("tools/call", json!({"name": "shout"})).await;
    assert!(unknown["error"]["message"].as_str().unwrap().contains("shout"), "{unknown}");
}

#[tokio::test]
async fn a_note_for_the_next_tool_does_not_come_back_in_its_own_result() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let (client, _) = Client::introduced(&hub, &agent, "2025-11-25").await;
    let note = json!({"message": "look at the logs", "deliver_at": "after_tool"});
    let left = client.call("notify_self", note, chat()).await;
    assert!(left["isError"] == false && left["structuredContent"].get("notifications").is_none(), "{left}");
    let next = client.call("notify_self", json!({"message": "another"}), chat()).await;
    let said = next["structuredContent"]["notifications"].as_str().unwrap();
    assert!(said.contains("note: look at the logs") && !said.contains("another"), "{said}");
}

#[tokio::test]
async fn the_context_comes_from_the_token_and_no_meta_can_widen_it() {
    let hub = TestHub::start().await;
    let body = json!({"scope": "agent", "user_id": "ada", "origin": "butler", "conversation_id": "chat"});
    let (_, made) = hub.post(&hub.admin, "/v1/tokens", body).await;
    let (client, _) = Client::introduced(&hub, made["token"].as_str().unwrap(), "2025-06-18").await;
    let left = client.call("notify_self", json!({"message": "no context needed"}), json!({})).await;
    assert_eq!(left["isError"], false, "{left}");
    for (key, value) in [("user_id", json!("bob")), ("conversation_id", json!("other")), ("agent", json!({}))] {
        let refused =
            client.call("notify_self", json!({"message": "x"}), json!({format!("bellwire/{key}"): value})).await;
        assert_eq!(refused["isError"], true, "{refused}");
        assert!(refused["structuredContent"]["message"].as_str().unwrap().contains(key), "{refused}");
    }
    let bob = hub.token("agent", "bob").await;
    let (stranger, _) = Client::introduced(&hub, &bob, "2025-06-18").await;
    for method in ["resources/read", "resources/subscribe"] {
        let refused = stranger.ask(method, json!({"uri": CHAT_URI})).await;
        assert_eq!(refused["error"]["message"], "there is no such resource", "{refused}");
    }
    let his = stranger.call("check_notifications", json!({}), chat()).await;
    assert_eq!(his["structuredContent"]["count"], 0, "his own conversation of that name is empty: {his}");
}

#[tokio::test]
async fn requests_without_a_token_get_401_and_sessions_are_bound_to_their_token() {
    let hub = TestHub::start().await;
    let refused = hub.client.post(format!("{}/mcp", hub.base)).json(&json!({})).send().await.unwrap();
    assert_eq!(
        (refused.status(), &refused.headers()["www-authenticate"]),
        (StatusCode::UNAUTHORIZED, &"Bearer".parse().unwrap())
    );
    let ada = hub.token("agent", "ada").await;
    let (client, _) = Client::introduced(&hub, &ada, "2025-11-25").await;
    let thief = Client { hub: &hub, token: hub.token("agent", "bob").await, session: client.session.clone() };
    assert_eq!(thief.send("tools/list", json!({})).await.status(), StatusCode::NOT_FOUND);
    assert_eq!(thief.request(Method::DELETE).send().await.unwrap().status(), StatusCode::NOT_FOUND);
    assert_eq!(client.send("tools/list", json!({})).await.status(), StatusCode::OK, "it lives on");
    let user = hub.token("user", "ada").await;
    assert_eq!(Client::new(&hub, &user).send("ping", json!({})).await.status(), StatusCode::FORBIDDEN);
    assert_eq!(client.request(Method::DELETE).send().await.unwrap().status(), StatusCode::NO_CONTENT);
    let gone = client.send("tools/list", json!({})).await;
    assert_eq!(gone.status(), StatusCode::NOT_FOUND);
    assert!(gone.json::<Value>().await.unwrap()["error"]["hint"].as_str().unwrap().contains("initialize"));
}

#[tokio::test]
async fn another_host_name_or_origin_is_refused() {
    let hub = TestHub::start().await;
    let client = Client::new(&hub, &hub.admin);
    let params =
        json!({"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "x", "version": "1"}});
    let message = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    let ask = |name: &'static str, value: &'static str| {
        client.request(Method::POST).header(name, value).json(&message).send()
    };
    assert_eq!(ask("host", "evil.example").await.unwrap().status(), StatusCode::MISDIRECTED_REQUEST);
    assert_eq!(ask("origin", "http://evil.example").await.unwrap().status(), StatusCode::FORBIDDEN);
    assert_eq!(ask("accept-language", "en").await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_session_lives_while_its_stream_is_open_and_ends_when_idle() {
    let mut config = Config::default();
    config.limits.mcp_session_idle_seconds = 1;
    let hub = TestHub::start_with(config).await;
    let agent = hub.token("agent", "ada").await;
    hub.call(&agent, Method::PUT, "/v1/conversations/chat", Some(json!({"user_id": "ada"}))).await;
    let (read, _) = Client::introduced(&hub, &agent, "2025-11-25").await;
    let mut stream = read.stream().await;
    let (silent, _) = Client::introduced(&hub, &agent, "2025-11-25").await;
    assert!(read.ask("resources/subscribe", json!({"uri": CHAT_URI})).await["error"].is_null());
    // Each request uses the session, so the interval is long enough for it to become idle.
    let ended = async {
        loop {
            tokio::time::sleep(Duration::from_secs(2)).await;
            if silent.send("ping", json!({})).await.status() == StatusCode::NOT_FOUND {
                return;
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(20), ended).await.expect("a silent session ends");
    hub.post(&agent, "/v1/events", failure("grep")).await;
    let pushed = stream.next().await.expect("the session under an open stream lives");
    assert_eq!(
        (&pushed["method"], &pushed["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!(CHAT_URI))
    );
}

#[tokio::test]
async fn a_lost_push_loses_no_notification() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    hub.call(&agent, Method::PUT, "/v1/conversations/chat", Some(json!({"user_id": "ada"}))).await;
    let (client, _) = Client::introduced(&hub, &agent, "2025-11-25").await;
    client.ask("resources/subscribe", json!({"uri": CHAT_URI})).await;
    // Forty updates go to a client without an open stream; rmcp reports all of them as sent.
    for at in 0..40 {
        hub.post(&agent, "/v1/events", failure(&format!("tool{at}"))).await;
    }
    let pending = client.ask("resources/read", json!({"uri": CHAT_URI})).await;
    let pending: Value = serde_json::from_str(pending["result"]["contents"][0]["text"].as_str().unwrap()).unwrap();
    assert_eq!(pending["conversation_id"], "chat");
    let mut told = 0;
    while let Some(showing) =
        client.call("check_notifications", json!({}), chat()).await["structuredContent"]["count"].as_u64()
        && showing > 0
    {
        told += 1;
        assert!(told < 50, "it ends");
    }
    assert!(told >= 1);
    // A new subscription gets an update at once because something is pending.
    hub.post(&agent, "/v1/events", failure("late")).await;
    let mut stream = client.stream().await;
    client.ask("resources/subscribe", json!({"uri": CHAT_URI})).await;
    assert_eq!(stream.next().await.unwrap()["method"], "notifications/resources/updated");
}

#[tokio::test]
async fn a_listen_request_gets_an_update_when_something_is_pending() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    hub.call(&agent, Method::PUT, "/v1/conversations/chat", Some(json!({"user_id": "ada"}))).await;
    let client = Client::new(&hub, &agent);
    let listen = json!({"notifications": {"resourceSubscriptions": [CHAT_URI, "file:///etc/passwd"]}});
    let mut stream = Messages::of(client.send_alone("subscriptions/listen", listen.clone()).await);
    let accepted = stream.next().await.unwrap();
    assert_eq!(accepted["method"], "notifications/subscriptions/acknowledged");
    assert_eq!(accepted["params"]["notifications"]["resourceSubscriptions"], json!([CHAT_URI]), "{accepted}");
    hub.post(&agent, "/v1/events", failure("grep")).await;
    let told = stream.next().await.unwrap();
    assert_eq!(
        (&told["method"], &told["params"]["uri"]),
        (&json!("notifications/resources/updated"), &json!(CHAT_URI))
    );
    assert!(!told.to_string().contains("grep"), "a hint carries no text: {told}");

    let bob = hub.token("agent", "bob").await;
    let mut stream = Messages::of(Client::new(&hub, &bob).send_alone("subscriptions/listen", listen).await);
    stream.next().await;
    assert!(stream.next().await.unwrap()["error"].is_object(), "what is not theirs is not there");
}

#[tokio::test]
async fn revoking_a_token_ends_its_sessions_and_listen_requests() {
    let hub = TestHub::start().await;
    let body = json!({"scope": "agent", "user_id": "ada", "origin": "butler"});
    let (_, made) = hub.post(&hub.admin, "/v1/tokens", body).await;
    let agent = made["token"].as_str().unwrap();
    hub.call(agent, Method::PUT, "/v1/conversations/chat", Some(json!({"user_id": "ada"}))).await;
    let (client, _) = Client::introduced(&hub, agent, "2025-11-25").await;
    let mut old = client.stream().await;
    let listen = json!({"notifications": {"resourceSubscriptions": [CHAT_URI]}});
    let mut new = Messages::of(Client::new(&hub, agent).send_alone("subscriptions/listen", listen).await);
    new.next().await.expect("it is acknowledged");
    let path = format!("/v1/tokens/{}", made["id"].as_str().unwrap());
    hub.call(&hub.admin, Method::DELETE, &path, None).await;
    assert_eq!(old.next().await, None, "the session's stream ended");
    while let Some(last) = new.next().await {
        assert!(last["result"].is_object(), "the last word is the end: {last}");
    }
    assert_eq!(client.send("ping", json!({})).await.status(), StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_hub_that_stops_ends_its_streams_and_a_body_too_large_is_refused() {
    let mut config = Config::default();
    config.limits.body_bytes = 131_072;
    let hub = TestHub::start_with(config).await;
    let agent = hub.token("agent", "ada").await;
    hub.call(&agent, Method::PUT, "/v1/conversations/chat", Some(json!({"user_id": "ada"}))).await;
    let client = Client::new(&hub, &agent);
    let large =
        client.send("tools/call", json!({"name": "notify_self", "arguments": {"message": "x".repeat(200_000)}}));
    assert_eq!(large.await.status(), StatusCode::PAYLOAD_TOO_LARGE);
    let (session, _) = Client::introduced(&hub, &agent, "2025-11-25").await;
    let mut old = session.stream().await;
    let listen = json!({"notifications": {"resourceSubscriptions": [CHAT_URI]}});
    let mut new = Messages::of(client.send_alone("subscriptions/listen", listen).await);
    new.next().await.expect("it is acknowledged");
    let started = std::time::Instant::now();
    drop((session, client));
    hub.stop().await;
    assert!(started.elapsed() < Duration::from_secs(4), "nobody had to be waited for");
    assert_eq!(old.next().await, None);
    while new.next().await.is_some() {}
}

/// One tool call by a new client, for tests of tools rather than of the protocol.
pub(crate) async fn call_once(hub: &TestHub, token: &str, tool: &str, arguments: Value, meta: Value) -> Value {
    let (client, _) = Client::introduced(hub, token, "2025-11-25").await;
    client.call(tool, arguments, meta).await
}

/// Whether a response begins with an event of empty data, on which clients older than 2025-11-25 fail.
async fn is_primed(response: Response) -> bool {
    let text = response.text().await.expect("a text").replace('\r', "");
    assert!(text.contains("jsonrpc"), "{text}");
    text.lines().any(|line| line.trim_end() == "data:")
}

#[tokio::test]
async fn priming_events_go_only_to_clients_that_support_them() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let mut primed = Vec::new();
    for version in ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"] {
        let hello = json!({
            "protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
        });
        let hello = is_primed(Client::new(&hub, &agent).send("initialize", hello).await).await;
        let (client, said) = Client::introduced(&hub, &agent, version).await;
        assert_eq!(said["protocolVersion"], version);
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/list"});
        // The header is part of the protocol since 2025-06-18.
        let asked = [("mcp-protocol-version", version)].into_iter().filter(|(_, version)| *version >= "2025-06-18");
        let list = asked.fold(client.request(Method::POST), |request, (name, value)| request.header(name, value));
        primed.push((version, hello, is_primed(list.json(&message).send().await.expect("the hub answers")).await));
    }
    let expected = [
        ("2024-11-05", false, false),
        ("2025-03-26", false, false),
        ("2025-06-18", false, false),
        ("2025-11-25", true, true),
    ];
    assert_eq!(primed, expected);
}

#[tokio::test]
async fn the_transport_of_the_first_revision_answers_on_its_event_stream() {
    let hub = TestHub::start().await;
    let (ada, bob) = (hub.token("agent", "ada").await, hub.token("agent", "bob").await);
    let (url, mut messages) = open_sse(&hub, &ada).await;
    let post = |token: &str, url: &str, message: Value| {
        let request = hub.client.post(url).bearer_auth(token).json(&message);
        async { request.send().await.unwrap() }
    };
    let params = json!({
        "protocolVersion": "2024-11-05", "capabilities": {}, "clientInfo": {"name": "test", "version": "1"},
    });
    let hello = json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params});
    for (token, url, status) in [
        (&bob, url.clone(), StatusCode::NOT_FOUND),
        (&ada, format!("{}/mcp/messages?sessionId=other", hub.base), StatusCode::NOT_FOUND),
        (&ada, format!("{}/mcp/messages", hub.base), StatusCode::BAD_REQUEST),
    ] {
        assert_eq!(post(token, &url, hello.clone()).await.status(), status, "{url}");
    }
    assert_eq!(post(&ada, &url, json!({"nonsense": 1})).await.status(), StatusCode::BAD_REQUEST);
    let taken = post(&ada, &url, hello).await;
    assert_eq!((taken.status(), taken.bytes().await.unwrap().len()), (StatusCode::ACCEPTED, 0));
    let hello = messages.next().await.unwrap();
    assert_eq!((&hello["id"], &hello["result"]["protocolVersion"]), (&json!(1), &json!("2024-11-05")), "{hello}");
    post(&ada, &url, json!({"jsonrpc": "2.0", "method": "notifications/initialized"})).await;
    let note = json!({"name": "notify_self", "arguments": {"message": "look"}, "_meta": chat()});
    post(&ada, &url, json!({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": note})).await;
    let noted = messages.next().await.unwrap();
    assert_eq!((&noted["id"], &noted["result"]["isError"]), (&json!(2), &json!(false)), "{noted}");
    post(&ada, &url, json!({"jsonrpc": "2.0", "id": 3, "method": "resources/subscribe", "params": {"uri": CHAT_URI}}))
        .await;
    let both = [messages.next().await.unwrap(), messages.next().await.unwrap()];
    assert!(both.iter().any(|message| message["method"] == "notifications/resources/updated"), "{both:?}");
    drop(messages);
    let gone = || async { post(&ada, &url, json!({"jsonrpc": "2.0", "id": 4, "method": "ping"})).await.status() };
    wait_for("the session to end with its stream", || async { gone().await == StatusCode::NOT_FOUND }).await;
}

#[tokio::test]
async fn an_event_stream_of_the_first_revision_is_a_session_and_ends_with_its_token() {
    let mut config = Config::default();
    (config.limits.mcp_sessions_per_token, config.limits.streams_per_token) = (1, 5);
    let hub = TestHub::start_with(config).await;
    let body = json!({"scope": "agent", "user_id": "ada", "origin": "butler"});
    let (_, made) = hub.post(&hub.admin, "/v1/tokens", body).await;
    let agent = made["token"].as_str().unwrap();
    let open = || async { hub.client.get(format!("{}/mcp/sse", hub.base)).bearer_auth(agent).send().await.unwrap() };
    let (_, first) = open_sse(&hub, agent).await;
    let refused = open().await;
    assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
    assert!(refused.text().await.unwrap().contains("limits.mcp_sessions_per_token"));
    drop(first);
    let mut last = loop {
        let response = open().await;
        if response.status() == StatusCode::OK {
            break Messages::of(response);
        }
    };
    let path = format!("/v1/tokens/{}", made["id"].as_str().unwrap());
    hub.call(&hub.admin, Method::DELETE, &path, None).await;
    while last.event().await.is_some() {}
    let anonymous = hub.client.get(format!("{}/mcp/sse", hub.base)).send().await.unwrap();
    assert_eq!(anonymous.status(), StatusCode::UNAUTHORIZED);
    let foreign =
        hub.client.get(format!("{}/mcp/sse", hub.base)).bearer_auth(&hub.admin).header("origin", "http://evil.example");
    assert_eq!(foreign.send().await.unwrap().status(), StatusCode::FORBIDDEN);
}

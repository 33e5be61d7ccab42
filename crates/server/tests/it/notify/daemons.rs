//! The endpoints between processes: who may call them, and what a request cannot claim.

use reqwest::StatusCode;
use serde_json::{Value, json};

use super::{ADAS, Scene, allowing};
use crate::sessions::sign_in;

pub(super) const PROTOCOL: &str = "2026-07-28";

pub(super) fn request(origin: &str) -> Value {
    json!({
        "schema_version": "notify.v1", "origin_butler": origin,
        "delivery": {"intent": "send", "channel": "pager", "message": "Hello", "recipient": ADAS},
    })
}

pub(super) fn deliver(origin: &str) -> Value {
    json!({"source_butler": origin, "notify_request": request(origin), "user_id": "ada"})
}

pub(super) fn route(origin: &str) -> Value {
    json!({
        "schema_version": "route.v1",
        "request_context": {
            "request_id": uuid::Uuid::from_u128(5), "source_channel": "mcp", "source_endpoint_identity": "switchboard",
            "source_sender_identity": origin, "received_at": "2026-01-03T15:30:00Z",
        },
        "input": {"prompt": "Deliver it.", "context": {"notify_request": request(origin), "user_id": "ada"}},
        "target": {"butler": "messenger", "tool": "route.execute"},
    })
}

impl Scene {
    pub(super) async fn daemon(&self, origin: Option<&str>) -> String {
        let body = json!({"scope": "daemon", "origin": origin});
        let (status, answer) = self.hub.post(&self.hub.admin, "/v1/tokens", body).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
        answer["token"].as_str().unwrap().to_owned()
    }

    /// Calls a tool of an endpoint between processes, in a revision with or without sessions.
    pub(super) async fn mcp(&self, token: &str, path: &str, tool: &str, arguments: &Value) -> (StatusCode, Value) {
        self.mcp_with(token, path, tool, arguments, json!({})).await
    }

    /// The same with more `_meta`.
    pub(super) async fn mcp_with(
        &self,
        token: &str,
        path: &str,
        tool: &str,
        arguments: &Value,
        mut meta: Value,
    ) -> (StatusCode, Value) {
        meta["io.modelcontextprotocol/protocolVersion"] = json!(PROTOCOL);
        meta["io.modelcontextprotocol/clientInfo"] = json!({"name": "test", "version": "1"});
        meta["io.modelcontextprotocol/clientCapabilities"] = json!({});
        let params = json!({"name": tool, "arguments": arguments, "_meta": meta});
        let request = self.hub.client.post(format!("{}{path}", self.hub.base)).bearer_auth(token);
        let request = request.header("accept", "application/json, text/event-stream");
        let request = request.header("mcp-protocol-version", PROTOCOL).header("mcp-method", "tools/call");
        let request = request.header("mcp-name", tool);
        let message = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
        let response = request.json(&message).send().await.unwrap();
        let status = response.status();
        (status, response.json().await.unwrap())
    }

    pub(super) async fn deliver(&self, token: &str, arguments: &Value) -> Value {
        let (status, answer) = self.mcp(token, "/mcp/switchboard", "deliver", arguments).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        let result = answer["result"].clone();
        assert_eq!(result["isError"].as_bool().unwrap(), result["structuredContent"]["status"] == "failed", "{answer}");
        result["structuredContent"].clone()
    }

    pub(super) async fn execute(&self, token: &str, arguments: &Value) -> Value {
        let (status, answer) = self.mcp(token, "/mcp/messenger", "route.execute", arguments).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        answer["result"]["structuredContent"].clone()
    }
}

#[tokio::test]
async fn only_daemon_and_admin_tokens_deliver_and_only_daemon_tokens_execute_routes() {
    let scene = Scene::open().await;
    for scope in ["agent", "user", "ingest"] {
        let token = scene.hub.token(scope, "ada").await;
        for (path, tool) in [("/mcp/switchboard", "deliver"), ("/mcp/messenger", "route.execute")] {
            assert_eq!(scene.mcp(&token, path, tool, &json!({})).await.0, StatusCode::FORBIDDEN, "{scope} {path}");
        }
    }
    let admin = scene.hub.admin.clone();
    assert_eq!(scene.mcp(&admin, "/mcp/messenger", "route.execute", &route("health")).await.0, StatusCode::FORBIDDEN);
    let daemon = scene.daemon(Some("switchboard")).await;
    assert_eq!(scene.deliver(&daemon, &deliver("health")).await["status"], "sent");
    assert_eq!(scene.execute(&daemon, &route("health")).await["status"], "ok");
    let (status, _) = scene.mcp(&daemon, "/mcp", "notify", &json!({})).await;
    assert_eq!(status, StatusCode::FORBIDDEN, "a daemon is no agent");
}

#[tokio::test]
async fn the_answers_have_the_shape_of_the_contract() {
    let scene = Scene::open().await;
    let daemon = scene.daemon(Some("switchboard")).await;
    let mut answer = scene.execute(&daemon, &route("health")).await;
    assert!(answer["timing"]["duration_ms"].take().is_u64());
    let id = uuid::Uuid::from_u128(5);
    assert_eq!(
        answer,
        json!({
            "schema_version": "route_response.v1",
            "request_context": route("health")["request_context"],
            "status": "ok",
            "result": {"notify_response": {
                "schema_version": "notify_response.v1", "request_context": {"request_id": id}, "status": "ok",
                "delivery": {"channel": "pager", "delivery_id": "page-1"},
            }},
            "timing": {"duration_ms": null},
        })
    );
    let answer = scene.deliver(&daemon, &deliver("health")).await;
    assert_eq!((&answer["status"], &answer["result"]["delivery"]["delivery_id"]), (&json!("sent"), &json!("page-2")));
    assert!(answer["notification_id"].is_string() && answer.get("error").is_none(), "{answer}");
}

#[tokio::test]
async fn a_forged_origin_is_refused_and_recorded() {
    let scene = Scene::open().await;
    let daemon = scene.daemon(None).await;
    for reserved in ["switchboard", "Messenger", "bellwire", "user", "operator", "\u{ff55}ser", "a\u{200b}b", ""] {
        let answer = scene.deliver(&daemon, &deliver(reserved)).await;
        assert_eq!(
            (&answer["status"], &answer["error_class"]),
            (&json!("failed"), &json!("validation_error")),
            "{reserved}"
        );
    }
    let mut other = deliver("health");
    other["source_butler"] = json!("bank");
    assert!(scene.deliver(&daemon, &other).await["error"].as_str().unwrap().contains("origin_butler"));
    let admin = scene.hub.admin.clone();
    let answer = scene.deliver(&admin, &deliver("health")).await;
    assert!(answer["error"].as_str().unwrap().contains("this token speaks as 'operator'"), "{answer}");
    let session = sign_in(&scene.hub, "me", "admin").await;
    let answer = scene.deliver(session["token"].as_str().unwrap(), &deliver("operator")).await;
    assert!(answer["error"].as_str().unwrap().contains("A session cannot call deliver"), "{answer}");
    assert_eq!(scene.pager.messages().len(), 0);
    let ledger = scene.ledger().await;
    let reasons: Vec<&str> = ledger.iter().filter_map(|entry| entry.decided.reason.as_deref()).collect();
    assert_eq!(reasons, [["invalid origin"; 10].as_slice(), &["invalid caller"]].concat(), "{ledger:?}");
}

#[tokio::test]
async fn a_forged_route_from_an_untrusted_caller_is_an_error_and_recorded() {
    let scene = Scene::open().await;
    let (plain, messenger) = (scene.daemon(None).await, scene.daemon(Some("messenger")).await);
    for token in [&plain, &messenger] {
        let answer = scene.execute(token, &route("health")).await;
        assert_eq!((&answer["status"], &answer["error"]["class"]), (&json!("error"), &json!("validation_error")));
        assert_eq!(answer.get("result"), None, "{answer}");
    }
    let trusted = scene.daemon(Some("switchboard")).await;
    let mut forged = vec![route("health"); 4];
    forged[0]["request_context"]["source_sender_identity"] = json!("bank");
    forged[1]["request_context"]["source_endpoint_identity"] = json!("butler:health");
    forged[2]["input"]["context"]["notify_request"]["request_context"] = json!({
        "request_id": uuid::Uuid::from_u128(6), "source_channel": "mcp", "source_endpoint_identity": "x",
        "source_sender_identity": "x",
    });
    forged[3]["target"]["tool"] = json!("shell");
    for route in &forged {
        assert_eq!(scene.execute(&trusted, route).await["status"], "error", "{route}");
    }
    assert_eq!(scene.pager.messages().len(), 0);
    assert_eq!(scene.decisions().await, ["refused"; 6]);
}

#[tokio::test]
async fn the_target_is_checked_again_where_it_is_used() {
    let scene = Scene::open_with(allowing(&["pager:555:7"])).await;
    let trusted = scene.daemon(Some("switchboard")).await;
    let to = |target: &str, user: Value, id: u128| {
        let mut route = route("health");
        route["request_context"]["request_id"] = json!(uuid::Uuid::from_u128(id));
        route["input"]["context"]["notify_request"]["delivery"]["recipient"] = json!(target);
        route["input"]["context"]["user_id"] = user;
        route
    };
    for (target, user) in [("555:2", json!("ada")), (ADAS, json!("bob")), (ADAS, Value::Null)] {
        let answer = scene.execute(&trusted, &to(target, user.clone(), 9)).await;
        assert_eq!(answer["error"]["class"], "validation_error", "{target} {user}");
    }
    assert_eq!(scene.execute(&trusted, &to("555:7", Value::Null, 10)).await["status"], "ok");
    scene.change(json!({"pager": {"enabled": false}})).await;
    let off = scene.execute(&trusted, &to(ADAS, json!("ada"), 11)).await;
    assert!(off["error"]["message"].as_str().unwrap().contains("switched pager off"), "{off}");
    assert_eq!(scene.pager.messages().len(), 1);
}

#[tokio::test]
async fn in_quiet_hours_a_direct_delivery_is_rejected_until_they_end() {
    let scene = Scene::open().await;
    let (now, later) = (super::clock(-1), super::clock(3));
    scene.change(json!({"quiet_hours": {"start": now, "end": later, "timezone": "UTC"}})).await;
    let daemon = scene.daemon(None).await;
    let answer = scene.deliver(&daemon, &deliver("health")).await;
    assert_eq!((&answer["error_class"], &answer["retryable"]), (&json!("overload_rejected"), &json!(true)), "{answer}");
    assert!(answer["retry_after_seconds"].as_u64() > Some(3_600), "{answer}");
}

#[tokio::test]
async fn a_repeated_route_and_a_repeated_delivery_get_the_first_answer() {
    let scene = Scene::open().await;
    let daemon = scene.daemon(Some("switchboard")).await;
    let first = scene.execute(&daemon, &route("health")).await;
    assert_eq!(scene.execute(&daemon, &route("health")).await, first);
    let mut arguments = deliver("health");
    arguments["notify_request"]["request_context"] = json!({
        "request_id": uuid::Uuid::from_u128(5), "source_channel": "mcp", "source_endpoint_identity": "butler:health",
        "source_sender_identity": "health",
    });
    let delivered = scene.deliver(&daemon, &arguments).await;
    assert_eq!(delivered["result"], first["result"]["notify_response"], "it is the same request");
    assert_eq!(scene.pager.messages().len(), 1);
}

#[tokio::test]
async fn notify_is_not_offered_to_the_switchboard_and_the_messenger_themselves() {
    let scene = Scene::open().await;
    let daemon = scene.daemon(Some("switchboard")).await;
    for (path, only) in [("/mcp/switchboard", "deliver"), ("/mcp/messenger", "route.execute")] {
        for (method, version) in [("tools/list", "2025-06-18"), ("tools/list", PROTOCOL)] {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
                "io.modelcontextprotocol/clientCapabilities": {},
            });
            let request = scene.hub.client.post(format!("{}{path}", scene.hub.base)).bearer_auth(&daemon);
            let request = request.header("accept", "application/json, text/event-stream");
            let request = request.header("mcp-protocol-version", version).header("mcp-method", method);
            let message = json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": meta}});
            let listed: Value = request.json(&message).send().await.unwrap().json().await.unwrap();
            let tools = listed["result"]["tools"].as_array().unwrap_or_else(|| panic!("{listed}"));
            let names: Vec<&str> = tools.iter().filter_map(|tool| tool["name"].as_str()).collect();
            assert_eq!(names, [only], "{version}");
            assert_eq!(tools[0]["inputSchema"]["additionalProperties"], false);
        }
        let (_, answer) = scene.mcp(&daemon, path, "notify", &json!({"channel": "pager", "message": "x"})).await;
        assert!(answer["error"]["message"].as_str().unwrap().contains(only), "{answer}");
    }
}

#[tokio::test]
async fn an_admin_speaks_as_any_agent_by_a_header_and_an_agent_only_as_itself() {
    let scene = Scene::open().await;
    let call = async |token: &str, origin: &str| {
        let body = json!({"arguments": {"channel": "pager", "message": "Hello"}, "context": {"user_id": "ada"}});
        let request = scene.hub.client.post(format!("{}/v1/tools/notify", scene.hub.base)).bearer_auth(token);
        let response = request.header("Bellwire-Origin", origin).json(&body).send().await.unwrap();
        (response.status(), response.json::<Value>().await.unwrap())
    };
    let admin = scene.hub.admin.clone();
    assert_eq!(call(&admin, "bank").await.1["status"], "ok");
    assert_eq!(call(&scene.health, "health").await.1["status"], "ok");
    let (status, refused) = call(&scene.health, "bank").await;
    assert_eq!((status, &refused["error"]["field"]), (StatusCode::FORBIDDEN, &json!("Bellwire-Origin")), "{refused}");
    for wrong in ["bellwire", "Operator", "switchboard", ""] {
        assert_ne!(call(&admin, wrong).await.0, StatusCode::OK, "{wrong}");
    }
    let origins: Vec<String> = scene.pager.messages().into_iter().map(|message| message.origin).collect();
    assert_eq!(origins, ["bank", "health"]);
}

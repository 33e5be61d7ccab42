//! Access control, tested for every route of the route table: a new route without a rule fails here.

use bellwire_server::Config;
use bellwire_server::auth::Scope;
use bellwire_server::http::router::{ROUTES, Route};
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::hub::{TestHub, failure};
use crate::mcp::call_once;
use crate::people::tool;
use crate::sessions::sign_in;

/// Ids of another user's objects.
struct Theirs {
    event: String,
    notification: String,
    reminder: String,
}

impl Theirs {
    /// Ids that do not exist.
    fn none() -> Self {
        let nothing = || "0198c0de-0000-7000-8000-000000000000".to_owned();
        Self { event: nothing(), notification: nothing(), reminder: nothing() }
    }

    /// Creates an event, a notification with a button and a reminder of Ada's.
    async fn made(hub: &TestHub, agent: &str) -> Self {
        let button = json!({"label": "Go", "action": "prompt", "prompt": "go on"});
        let toast = json!({"message": "Look", "severity": "info", "actions": [button]});
        let shown = tool(hub, agent, "show_notification", toast).await;
        let reminds = tool(hub, agent, "remind", json!({"message": "Later", "in_minutes": 5})).await;
        // Last, because tool results would take its notification.
        let (_, answer) = hub.post(agent, "/v1/events", failure("grep")).await;
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        Self {
            event: text(&answer["events"][0]["id"]),
            notification: text(&shown["notification"]["id"]),
            reminder: text(&reminds["reminder_id"]),
        }
    }

    fn path_for(&self, path: &str) -> String {
        let id = match path {
            path if path.starts_with("/v1/events/") => &self.event,
            path if path.starts_with("/v1/reminders/") => &self.reminder,
            path if path.starts_with("/v1/conversations/") => "chat",
            path if path.starts_with("/v1/subscribers/") => "tool_failure",
            _ => "ada",
        };
        path.replace("{id}", id)
            .replace("{nid}", &self.notification)
            .replace("{index}", "0")
            .replace("{channel}", "email")
    }
}

/// A valid body for a route that acts on Ada's data.
fn body_for(route: &Route) -> Value {
    match route.path {
        "/v1/conversations/{id}" => json!({"user_id": "ada"}),
        "/v1/conversations/{id}/messages" => json!({"text": "hello"}),
        "/v1/users/{id}/notifications/{nid}" => json!({"read": true}),
        "/v1/reminders" if route.method == "POST" => json!({"message": "Pay me", "in_minutes": 5, "user_id": "ada"}),
        "/v1/users/{id}/{channel}/confirm" => json!({"code": "123456"}),
        _ => json!({}),
    }
}

#[tokio::test]
async fn without_a_token_only_the_probes_answer() {
    let hub = TestHub::start().await;
    for route in ROUTES {
        let method: Method = route.method.parse().unwrap();
        let url = format!("{}{}", hub.base, Theirs::none().path_for(route.path));
        for header in [None, Some("Bearer nonsense"), Some("Basic YTpi")] {
            let mut request = hub.client.request(method.clone(), &url);
            if let Some(value) = header {
                request = request.header("authorization", value);
            }
            let status = request.send().await.unwrap().status();
            let expected = match route.path {
                // A signed link needs no token; this one has no valid signature.
                "/u/{signed}" => StatusCode::NOT_FOUND,
                // A code in the body is needed instead.
                "/v1/sessions" if route.method == "POST" => StatusCode::BAD_REQUEST,
                // There is no file of this name.
                "/assets/{file}" => StatusCode::NOT_FOUND,
                // The channel authenticates its provider; this hub has none that takes calls.
                "/{channel}/webhook" => StatusCode::NOT_FOUND,
                // The source authenticates its sender; this hub has none.
                "/v1/ingest/{source}" => StatusCode::NOT_FOUND,
                _ if route.scopes.is_empty() => StatusCode::OK,
                _ => StatusCode::UNAUTHORIZED,
            };
            assert_eq!(status, expected, "{} {}", route.method, route.path);
        }
    }
}

#[tokio::test]
async fn scopes_missing_in_the_route_table_are_forbidden() {
    let hub = TestHub::start().await;
    for scope in Scope::ALL {
        let token = hub.token(scope.as_str(), "ada").await;
        for route in ROUTES.iter().filter(|route| !route.scopes.is_empty() && !route.scopes.contains(&scope)) {
            let method: Method = route.method.parse().unwrap();
            let (status, _) = hub.call(&token, method, &Theirs::none().path_for(route.path), Some(json!({}))).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{} {} as {}", route.method, route.path, scope.as_str());
        }
    }
}

#[tokio::test]
async fn no_route_reads_or_changes_another_users_data() {
    let hub = TestHub::start().await;
    let ada = hub.token("agent", "ada").await;
    let theirs = Theirs::made(&hub, &ada).await;
    for scope in [Scope::Agent, Scope::User] {
        let bob = hub.token(scope.as_str(), "bob").await;
        // Access over MCP is tested in mcp.rs. Creating a conversation creates Bob's own, even if Ada's has the same id: that is
        // tested below.
        let personal = |path: &str| {
            !matches!(path, "/v1/token" | "/v1/tools" | "/v1/event_types" | "/v1/channels")
                && !path.starts_with("/v1/subscribers")
                && !path.starts_with("/mcp")
                && path != "/v1/conversations/{id}/inject"
        };
        let publishes = |route: &&Route| (route.method, route.path) == ("POST", "/v1/events");
        let routes = ROUTES.iter().filter(|route| route.scopes.contains(&scope) && personal(route.path));
        for route in routes.filter(|route| !publishes(route)) {
            let method: Method = route.method.parse().unwrap();
            let body = body_for(route);
            let (status, answer) =
                hub.call(&bob, method.clone(), &theirs.path_for(route.path), Some(body.clone())).await;
            let is_list = route.method == "GET";
            let lists = [
                "/v1/reminders",
                "/v1/deliveries",
                "/v1/events",
                "/v1/conversations",
                "/v1/sessions",
                "/v1/ledger",
                "/v1/ledger/sums",
            ];
            if is_list && lists.contains(&route.path) {
                assert_eq!(
                    (status, &answer["items"]),
                    (StatusCode::OK, &json!([])),
                    "{}: his own, and he has none",
                    route.path
                );
                continue;
            }
            assert_eq!(status, StatusCode::NOT_FOUND, "{} {}: {answer}", route.method, route.path);
            // Another user's object and a missing one give the same error. Tools have no owner, and their error has the name.
            if route.path == "/v1/tools/{id}" {
                continue;
            }
            let absent = Theirs::none().path_for(route.path).replace("/ada", "/nobody").replace("/chat", "/absent");
            let unknown = hub.call(&bob, method, &absent, Some(body)).await;
            assert_eq!((status, answer), unknown, "{} {}", route.method, route.path);
        }
    }
    // Two users may use the same conversation id; neither sees the other's conversation.
    let bob = hub.token("agent", "bob").await;
    let hers = json!({"user_id": "ada", "type": "x.y", "source": "ci", "severity": "info", "payload": {}});
    let theirs = [
        (
            "/v1/events",
            failure("forged")
                .as_object()
                .unwrap()
                .clone()
                .into_iter()
                .chain(hers.as_object().unwrap().clone())
                .collect(),
        ),
        ("/v1/conversations/chat/inject?user_id=ada", json!({"point": "turn_start", "call_id": "1"})),
    ];
    for (path, body) in theirs {
        assert_eq!(hub.post(&bob, path, body).await.0, StatusCode::NOT_FOUND, "{path}");
    }
    let (status, _) = hub.post(&bob, "/v1/events", failure("forged")).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let take = json!({"point": "turn_start", "call_id": "1"});
    let (_, his) = hub.post(&bob, "/v1/conversations/chat/inject", take.clone()).await;
    let (_, block) = hub.post(&ada, "/v1/conversations/chat/inject", take).await;
    for (block, own, others) in [(&his, "forged", "grep"), (&block, "grep", "forged")] {
        let text = block["block"].as_str().unwrap();
        assert!(text.contains(own) && !text.contains(others), "{text}");
    }
    assert!(!block["block"].as_str().unwrap().contains("pressed"), "nobody pressed her button: {block}");
    let (_, inbox) = hub.get(&hub.admin, "/v1/users/ada/notifications?state=unread").await;
    assert_eq!(inbox["items"].as_array().unwrap().len(), 1, "{inbox}");
    assert_eq!(hub.get(&hub.admin, "/v1/reminders").await.1["items"].as_array().unwrap().len(), 1);
}

/// Calls of people that are also an operator's work: an admin's session makes them for everyone.
const OPERATORS_CALLS: [&str; 4] =
    ["/v1/deliveries/{id}/retry", "/v1/deliveries/{id}/cancel", "/v1/subscribers/{id}/test", "/v1/users/{id}"];

#[tokio::test]
async fn an_admins_session_reads_the_data_of_others_and_acts_only_for_its_own_person() {
    let hub = TestHub::start().await;
    let session = sign_in(&hub, "me", "admin").await;
    let session = session["token"].as_str().unwrap();
    let theirs = Theirs::made(&hub, &hub.token("agent", "ada").await).await;
    let acts = |route: &&Route| {
        let is_own = route.path == "/v1/sessions/{id}" || OPERATORS_CALLS.contains(&route.path);
        route.scopes.contains(&Scope::User) && route.method != "GET" && !is_own
    };
    for route in ROUTES.iter().filter(acts) {
        let call = format!("{} {}", route.method, route.path);
        let (path, body) = (theirs.path_for(route.path), body_for(route));
        let method: Method = route.method.parse().unwrap();
        let (status, answer) = hub.call(session, method.clone(), &path, Some(body.clone())).await;
        let hint = answer["error"]["hint"].as_str().unwrap_or_default();
        assert!(hint.contains("an admin token"), "{call}: {answer}");
        // A reminder is found among those of the session's person only.
        let refused = if route.path == "/v1/reminders/{id}" { StatusCode::NOT_FOUND } else { StatusCode::FORBIDDEN };
        assert_eq!(status, refused, "{call}: {answer}");
        let mine = path.replace("/ada", "/me");
        if mine != path {
            let (status, answer) = hub.call(session, method, &mine, Some(body)).await;
            assert_ne!(status, StatusCode::FORBIDDEN, "{call}: {answer}");
        }
    }
    let (_, inbox) = hub.get(session, "/v1/users/ada/notifications?state=unread").await;
    assert_eq!(inbox["items"].as_array().unwrap().len(), 1, "nothing was read or pressed: {inbox}");
    assert_eq!(hub.get(session, "/v1/reminders?user_id=ada").await.1["items"].as_array().unwrap().len(), 1);
    for route in ROUTES.iter().filter(acts).filter(|route| route.path != "/v1/users/{id}/{channel}/test") {
        let method: Method = route.method.parse().unwrap();
        let (status, answer) = hub.call(&hub.admin, method, &theirs.path_for(route.path), Some(body_for(route))).await;
        let expected = |status: StatusCode| status.is_success() || status == StatusCode::CONFLICT;
        let has_channel = route.path.contains("{channel}");
        assert!(expected(status) || has_channel, "{} {} with an admin token: {answer}", route.method, route.path);
    }
    let own = json!({"user_id": "me"});
    assert_eq!(hub.call(session, Method::PUT, "/v1/conversations/mine", Some(own)).await.0, StatusCode::OK);
    let said = hub.post(session, "/v1/conversations/mine/messages?user_id=me", json!({"text": "hello"})).await;
    assert_eq!(said.0, StatusCode::ACCEPTED, "{said:?}");
}

#[tokio::test]
async fn an_admins_session_publishes_injects_and_calls_tools_for_its_own_person_only() {
    let hub = TestHub::start().await;
    let session = sign_in(&hub, "me", "admin").await;
    let session = session["token"].as_str().unwrap();
    let ada = hub.token("agent", "ada").await;
    hub.post(&ada, "/v1/events", failure("grep")).await;
    let event = |user: &str| {
        let mut event = failure("curl");
        event["user_id"] = json!(user);
        event
    };
    let note = |user: &str| {
        let context = json!({"user_id": user, "conversation_id": "chat"});
        json!({"arguments": {"message": "Hello", "severity": "info"}, "context": context})
    };
    let take = json!({"point": "turn_start", "call_id": "1"});
    let calls = |user: &str| {
        [
            ("/v1/events".to_owned(), event(user)),
            ("/v1/tools/show_notification".to_owned(), note(user)),
            ("/v1/tools/check_notifications".to_owned(), note(user)),
            (format!("/v1/conversations/chat/inject?user_id={user}"), take.clone()),
            (format!("/v1/conversations/chat/system_prompt/rotate?user_id={user}"), json!({})),
        ]
    };
    let (_, before) = hub.get(&ada, "/v1/conversations/chat").await;
    for (path, body) in calls("ada") {
        let (status, answer) = hub.post(session, &path, body).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{path}: {answer}");
        let message = answer["error"]["message"].as_str().unwrap();
        assert!(message.contains("this session is that of 'me'"), "{path}: {message}");
        assert!(answer["error"]["hint"].as_str().unwrap().contains("an admin token"), "{path}: {answer}");
    }
    // A list is refused as a whole, and the error names the event.
    let (status, answer) = hub.post(session, "/v1/events", json!([event("me"), event("ada")])).await;
    assert_eq!((status, answer["error"]["field"].as_str()), (StatusCode::FORBIDDEN, Some("events[1].user_id")));
    let meta = json!({"bellwire/user_id": "ada", "bellwire/conversation_id": "chat"});
    let answer = call_once(&hub, session, "check_notifications", json!({}), meta).await;
    assert!(answer.to_string().contains("this session is that of 'me'"), "{answer}");
    assert_eq!(hub.get(&ada, "/v1/conversations/chat").await.1, before, "nothing of hers has changed");
    assert_eq!(hub.get(session, "/v1/users/ada/notifications").await.1["items"], json!([]));

    // Without a name the conversation is the session's own, also where only Ada has one of this id.
    let (_, answer) = hub.post(session, "/v1/conversations/chat/inject", take.clone()).await;
    assert_eq!(answer["block"], "", "{answer}");
    for (path, body) in calls("me") {
        let (status, answer) = hub.post(session, &path, body).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
    }
    for (path, body) in calls("ada") {
        let (status, answer) = hub.post(&hub.admin, &path, body).await;
        assert!(status.is_success(), "{path} with an admin token: {status} {answer}");
    }
}

#[tokio::test]
async fn another_host_name_reaches_only_the_probes() {
    let hub = TestHub::start().await;
    let ask = |path: &str| hub.client.get(format!("{}{path}", hub.base)).header("host", "evil.example").send();
    assert_eq!(ask("/v1/subscribers").await.unwrap().status(), StatusCode::MISDIRECTED_REQUEST);
    assert_eq!(ask("/healthz").await.unwrap().status(), StatusCode::OK);
    assert_eq!(ask("/readyz").await.unwrap().status(), StatusCode::OK);
}

#[tokio::test]
async fn a_token_revoked_during_its_first_use_is_not_cached() {
    let hub = TestHub::start().await;
    for round in 0..40 {
        let (_, made) = hub.post(&hub.admin, "/v1/tokens", json!({"scope": "ingest"})).await;
        let (secret, id) = (made["token"].as_str().unwrap(), made["id"].as_str().unwrap());
        let uses = (0..4).map(|_| hub.get(secret, "/v1/tokens"));
        let path = format!("/v1/tokens/{id}");
        let revoke = hub.call(&hub.admin, Method::DELETE, &path, None);
        tokio::join!(futures_util::future::join_all(uses), revoke);
        let (status, _) = hub.get(secret, "/v1/tokens").await;
        assert_eq!(status, StatusCode::UNAUTHORIZED, "round {round}");
    }
}

#[tokio::test]
async fn a_secret_is_shown_once_and_never_listed() {
    let hub = TestHub::start().await;
    let secret = hub.token("ingest", "ada").await;
    let made = hub.client.post(format!("{}/v1/tokens", hub.base)).bearer_auth(&hub.admin);
    let made = made.json(&json!({"scope": "ingest"})).send().await.unwrap();
    assert_eq!(made.headers()["cache-control"], "no-store", "no cache keeps a secret");
    let (_, list) = hub.get(&hub.admin, "/v1/tokens").await;
    assert!(!list.to_string().contains(&secret[3..]));
    let (status, answer) = hub.post(&hub.admin, "/v1/tokens", json!({"scope": "agent", "origin": "x"})).await;
    assert_eq!((status, answer["error"]["field"].as_str()), (StatusCode::BAD_REQUEST, Some("user_id")));
}

#[tokio::test]
async fn every_token_reads_what_it_is_bound_to_and_no_other() {
    let hub = TestHub::start().await;
    for scope in Scope::ALL {
        let token = hub.token(scope.as_str(), "ada").await;
        let (status, own) = hub.get(&token, "/v1/token").await;
        assert_eq!((status, &own["scope"]), (StatusCode::OK, &json!(scope.as_str())), "{own}");
        let bound = !matches!(scope, Scope::Admin | Scope::Daemon);
        assert_eq!(own["user_id"], json!(bound.then_some("ada")), "{own}");
        assert!(!own.to_string().contains(&token[3..]), "{own}");
    }
    let everyones = json!({"scope": "agent", "user_id": "*", "origin": "butler", "conversation_id": "chat"});
    let (_, made) = hub.post(&hub.admin, "/v1/tokens", everyones).await;
    let (_, own) = hub.get(made["token"].as_str().unwrap(), "/v1/token").await;
    assert_eq!((&own["user_id"], &own["conversation_id"]), (&Value::Null, &json!("chat")), "{own}");
    assert_eq!((&own["id"], &own["origin"]), (&made["id"], &json!("butler")), "{own}");
}

#[tokio::test]
async fn a_token_is_bound_only_by_fields_of_its_scope() {
    let hub = TestHub::start().await;
    let wrong = [
        (json!({"scope": "admin", "user_id": "ada"}), "user_id"),
        (json!({"scope": "admin", "conversation_id": "chat"}), "conversation_id"),
        (json!({"scope": "daemon", "user_id": "*"}), "user_id"),
        (json!({"scope": "daemon", "conversation_id": "chat"}), "conversation_id"),
        (json!({"scope": "user", "user_id": "ada", "conversation_id": "chat"}), "conversation_id"),
    ];
    for (body, field) in wrong {
        let (status, answer) = hub.post(&hub.admin, "/v1/tokens", body.clone()).await;
        assert_eq!((status, answer["error"]["field"].as_str()), (StatusCode::BAD_REQUEST, Some(field)), "{body}");
        assert!(answer["error"]["message"].as_str().unwrap().contains("leave it out"), "{answer}");
    }
    let fine = [
        json!({"scope": "admin", "user_id": null}),
        json!({"scope": "ingest", "user_id": "ada", "conversation_id": "chat"}),
        json!({"scope": "agent", "user_id": "ada", "origin": "butler", "conversation_id": "chat"}),
    ];
    for body in fine {
        let (status, answer) = hub.post(&hub.admin, "/v1/tokens", body.clone()).await;
        assert_eq!(status, StatusCode::CREATED, "{body}: {answer}");
    }
}

#[tokio::test]
async fn agents_need_an_origin_that_is_not_reserved() {
    let hub = TestHub::start().await;
    for origin in ["bellwire", "Operator", "USER", " user ", "b\u{200b}ell\u{feff}wire", " ", "\u{202e}\u{200b}"] {
        let token = json!({"scope": "agent", "user_id": "ada", "origin": origin});
        let (status, answer) = hub.post(&hub.admin, "/v1/tokens", token).await;
        let field = answer["error"]["field"].as_str();
        assert_eq!((status, field), (StatusCode::BAD_REQUEST, Some("origin")), "{origin:?}: {answer}");
    }
}

#[tokio::test]
async fn only_allowed_origins_may_call_from_a_browser() {
    let config = Config { allowed_origins: vec!["https://console.example".into()], ..Config::default() };
    let hub = TestHub::start_with(config).await;
    let ask = |origin: &str| {
        let request = hub.client.get(format!("{}/v1/subscribers", hub.base)).bearer_auth(&hub.admin);
        request.header("origin", origin).send()
    };
    let allowed = ask("https://console.example").await.unwrap();
    assert_eq!(allowed.status(), StatusCode::OK);
    assert_eq!(allowed.headers()["access-control-allow-origin"], "https://console.example");
    let own = hub.base.clone();
    assert_eq!(ask(&own).await.unwrap().status(), StatusCode::OK, "a page of its own");
    for foreign in ["https://evil.example", "null", "http://127.0.0.1:1", "https://console.example.evil"] {
        let refused = ask(foreign).await.unwrap();
        assert_eq!(refused.status(), StatusCode::FORBIDDEN, "{foreign}");
        assert!(!refused.headers().contains_key("access-control-allow-origin"), "{foreign}");
    }
    let preflight = hub.client.request(Method::OPTIONS, format!("{}/v1/events", hub.base));
    let preflight =
        preflight.header("origin", "https://console.example").header("access-control-request-method", "POST");
    let answer = preflight.send().await.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(answer.headers()["access-control-allow-headers"].to_str().unwrap().contains("authorization"));
}

#[tokio::test]
async fn cors_and_compression_apply_only_to_requests_that_ask_for_them() {
    let config = Config { allowed_origins: vec!["https://console.example".into()], ..Config::default() };
    let hub = TestHub::start_with(config).await;
    let event = json!({
        "type": "cli.event", "source": "shell", "severity": "info", "conversation_id": "chat", "payload": {},
    });
    let agent = hub.token("agent", "ada").await;
    let publish = |events: usize, name: &str, value: &str| {
        let request = hub.client.post(format!("{}/v1/events", hub.base)).bearer_auth(&agent);
        request.json(&vec![event.clone(); events]).header(name, value).send()
    };
    let from_a_page = publish(1, "origin", "https://console.example").await.unwrap();
    assert_eq!(from_a_page.status(), StatusCode::ACCEPTED);
    assert_eq!(from_a_page.headers()["access-control-allow-origin"], "https://console.example");
    let refused = publish(1, "origin", "https://evil.example").await.unwrap();
    assert_eq!(refused.status(), StatusCode::FORBIDDEN);
    for (events, packed) in [(1, None), (20, Some("gzip"))] {
        let answer = publish(events, "accept-encoding", "gzip").await.unwrap();
        assert_eq!(answer.status(), StatusCode::ACCEPTED);
        let encoding = answer.headers().get("content-encoding").map(|value| value.to_str().unwrap());
        assert_eq!(encoding, packed, "{events} events");
    }
    let plain = publish(20, "x-nothing", "at all").await.unwrap();
    assert_eq!(plain.status(), StatusCode::ACCEPTED);
    for header in ["access-control-allow-origin", "content-encoding"] {
        assert!(!plain.headers().contains_key(header), "{header}");
    }
    assert!(plain.headers().contains_key("x-correlation-id"));
}

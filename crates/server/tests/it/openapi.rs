//! The OpenAPI document: complete, consistent, equal to the committed file, and the source of the documentation page.

use std::collections::BTreeSet;
use std::path::Path;

use bellwire_server::http::router::ROUTES;
use reqwest::{Method, StatusCode};
use serde_json::{Value, json};

use crate::hub::{TestHub, failure};

async fn description() -> Value {
    let hub = TestHub::start().await;
    let response = hub.client.get(format!("{}/openapi.json", hub.base)).send().await.unwrap();
    assert_eq!(response.headers()["content-type"], "application/json");
    response.json().await.unwrap()
}

/// Calls `visit` with every object of a document.
fn walk<'a>(value: &'a Value, visit: &mut impl FnMut(&'a Value)) {
    visit(value);
    match value {
        Value::Object(map) => map.values().for_each(|value| walk(value, visit)),
        Value::Array(list) => list.iter().for_each(|value| walk(value, visit)),
        _ => {}
    }
}

/// `make openapi` regenerates the file.
#[tokio::test]
async fn the_description_is_the_one_that_is_committed() {
    let described = description().await;
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
    if std::env::var_os("BELLWIRE_UPDATE_OPENAPI").is_some() {
        let text = serde_json::to_string_pretty(&described).unwrap() + "\n";
        std::fs::write(&path, text).expect("the file can be written");
    }
    let committed: Value = serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
    assert!(committed == described, "the API has changed; `make openapi` writes docs/openapi.json anew");
}

#[tokio::test]
async fn every_reference_resolves_and_every_schema_is_used() {
    let described = description().await;
    let mut references = BTreeSet::new();
    walk(&described, &mut |value| {
        if let Some(reference) = value["$ref"].as_str() {
            references.insert(reference.to_owned());
        }
    });
    for reference in &references {
        let pointer = reference.strip_prefix('#').expect("references stay in the document");
        assert!(described.pointer(pointer).is_some(), "{reference}");
    }
    for kind in ["schemas", "responses", "parameters"] {
        for name in described["components"][kind].as_object().unwrap().keys() {
            assert!(references.contains(&format!("#/components/{kind}/{name}")), "{kind} {name} is used nowhere");
        }
    }
}

#[tokio::test]
async fn the_document_has_exactly_the_routes_of_the_table() {
    let described = description().await;
    let mut names = BTreeSet::new();
    for route in ROUTES {
        let operation = &described["paths"][route.path][route.method.to_lowercase()];
        assert!(names.insert(operation["operationId"].as_str().expect("a name")), "{operation}");
        assert!(!operation["summary"].as_str().unwrap().is_empty());
        let scopes: Vec<&str> = route.scopes.iter().map(|scope| scope.as_str()).collect();
        assert_eq!(operation["x-scopes"], json!(scopes), "{} {}", route.method, route.path);
        assert_eq!(operation["security"] == json!([]), scopes.is_empty());
        let parameters = operation["parameters"].as_array().unwrap();
        let in_path = parameters.iter().filter(|one| one["in"] == "path" && one["required"] == true).count();
        assert_eq!(in_path, route.path.matches('{').count(), "{}", route.path);
        assert!(operation["responses"].get(route.status.as_str()).is_some());
    }
    let operations = described["paths"].as_object().unwrap().values().map(|path| path.as_object().unwrap().len());
    assert_eq!(operations.sum::<usize>(), ROUTES.len());
}

#[tokio::test]
async fn requests_refuse_unknown_fields_and_responses_list_required_fields() {
    let described = description().await;
    let schemas = described["components"]["schemas"].as_object().unwrap();
    for (path, operations) in described["paths"].as_object().unwrap() {
        for operation in operations.as_object().unwrap().values() {
            let body = operation["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str();
            if let Some(name) = body.and_then(|reference| reference.rsplit('/').next()) {
                assert_eq!(schemas[name]["additionalProperties"], false, "{path}: {name}");
            }
        }
    }
    assert_eq!(schemas["Conversation"]["required"].as_array().unwrap().len(), 7);
    assert_eq!(schemas["Error"]["required"], json!(["error"]));
}

#[tokio::test]
async fn only_optional_subscribers_can_be_disabled() {
    let described = description().await;
    let change = &described["components"]["schemas"]["SettingsChange"]["properties"]["disabled_subscribers"];
    let offered = change["items"]["enum"].as_array().unwrap();
    assert!(offered.contains(&json!("source_stale")) && !offered.contains(&json!("tool_failure")), "{offered:?}");
}

#[tokio::test]
async fn the_documentation_is_one_page_that_loads_nothing() {
    let hub = TestHub::start().await;
    let response = hub.client.get(format!("{}/docs", hub.base)).send().await.unwrap();
    let policy = response.headers()["content-security-policy"].to_str().unwrap().to_owned();
    assert!(policy.starts_with("default-src 'none'; style-src 'sha256-"), "{policy}");
    assert!(!policy.contains("unsafe"), "{policy}");
    let page = response.text().await.unwrap();
    for fetched in ["src=", "url(", "@import", "http://", "https://", " onclick", " style=", "<iframe"] {
        assert!(!page.contains(fetched), "the page has {fetched}");
    }
    for route in ROUTES {
        assert!(page.contains(&format!("<article id=\"{}\"", route.operation_id())), "{}", route.operation_id());
    }
}

#[tokio::test]
async fn other_media_types_are_refused_and_the_default_of_curl_is_accepted() {
    let hub = TestHub::start().await;
    let agent = hub.token("agent", "ada").await;
    let send = |kind: &'static str| {
        let request = hub.client.post(format!("{}/v1/events", hub.base)).bearer_auth(&agent);
        request.header("content-type", kind).body(failure("grep").to_string()).send()
    };
    for kind in ["application/json; charset=utf-8", "application/x-www-form-urlencoded", "Application/JSON"] {
        assert_eq!(send(kind).await.unwrap().status(), StatusCode::ACCEPTED, "{kind}");
    }
    for kind in ["text/plain", "multipart/form-data", "application/xml"] {
        let response = send(kind).await.unwrap();
        assert_eq!(response.status(), StatusCode::UNSUPPORTED_MEDIA_TYPE, "{kind}");
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer["error"]["code"], "unsupported_media_type");
    }
}

#[tokio::test]
async fn every_error_has_the_same_body() {
    let hub = TestHub::start().await;
    let url = |path: &str| format!("{}{path}", hub.base);
    let get = |path: &str| hub.client.get(url(path)).bearer_auth(&hub.admin);
    let large = vec![b' '; 17 * 1024 * 1024];
    let wrong = [
        (hub.client.post(url("/v1/events")).bearer_auth(&hub.admin).body(large), 413, "too_large"),
        (hub.client.put(url("/v1/events")).bearer_auth(&hub.admin), 405, "method_not_allowed"),
        (get("/v1/nothing"), 404, "not_found"),
        (get("/v1/conversations/%ff"), 400, "validation_error"),
        (get("/v1/users/a%00b/settings"), 400, "validation_error"),
        (get("/v1/subscribers?colour=red"), 400, "validation_error"),
        (get("/v1/conversations/chat/messages?limit=0"), 400, "validation_error"),
        (get("/v1/conversations/chat/messages?cursor=-1"), 400, "validation_error"),
        (get("/v1/conversations/chat/messages?colour=red"), 400, "validation_error"),
    ];
    for (request, status, code) in wrong {
        let response = request.send().await.unwrap();
        let name = response.url().to_string();
        assert_eq!(response.status().as_u16(), status, "{name}");
        assert_eq!(response.headers()["content-type"], "application/json", "{name}");
        let answer: Value = response.json().await.unwrap();
        assert_eq!(answer["error"]["code"], code, "{name}");
        assert!(answer["error"]["message"].is_string(), "{name}");
    }
}

#[tokio::test]
async fn invalid_fields_in_a_body_are_named_by_their_path() {
    let hub = TestHub::start().await;
    let inject = "/v1/conversations/chat/inject";
    let wrong = [
        (Method::PUT, "/v1/conversations/chat", json!(["ada", "a list is no object"]), None),
        (Method::PUT, "/v1/conversations/chat", json!({"user_id": ""}), Some("user_id")),
        (Method::PUT, "/v1/conversations/chat", json!({"user_id": "a\u{0}b"}), Some("user_id")),
        (Method::POST, inject, json!({"point": "later", "call_id": "1"}), Some("point")),
        (Method::POST, inject, json!({"point": "after_tool", "call_id": "1", "max_items": 0}), Some("max_items")),
        (Method::POST, inject, json!({"point": "after_tool", "call_id": "1", "max_items": "5"}), Some("max_items")),
        (Method::POST, inject, json!({"point": "after_tool", "call_id": "1", "unseen": ["a", ""]}), Some("unseen[1]")),
        (Method::POST, "/v1/subscribers/tool_failure/test", json!({"events": [failure("a"), 5]}), Some("events[1]")),
        (Method::POST, "/v1/events", json!([failure("a"), [1]]), Some("events[1]")),
        (Method::POST, "/v1/tokens", json!({"scope": "root"}), Some("scope")),
        (Method::POST, "/v1/tokens", json!({"scope": "admin", "expires_at": "soon"}), Some("expires_at")),
        (
            Method::POST,
            "/v1/tokens",
            json!({"scope": "admin", "expires_at": "2020-01-01T00:00:00Z"}),
            Some("expires_at"),
        ),
    ];
    for (method, path, body, field) in wrong {
        let (status, answer) = hub.call(&hub.admin, method, path, Some(body.clone())).await;
        assert_eq!((status, answer["error"]["field"].as_str()), (StatusCode::BAD_REQUEST, field), "{body}: {answer}");
    }
}

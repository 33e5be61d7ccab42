//! The OpenAPI 3.1 document, generated from the route table and its types. This module knows no single route, only what
//! the routes share: authentication, parameters and errors.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bellwire_core::subscriber::Subscribers;
use schemars::generate::{SchemaGenerator, SchemaSettings};
use schemars::{JsonSchema, Schema};
use serde_json::{Map, Value, json};

use super::error::ErrorBody;
use super::field::{ID_MAX, NO_CONTROLS};
use super::path::OWNER;
use super::router::{ROUTES, Route};
use super::shape::{HandlerArgument, ResponseShape};
use super::{ApiError, channel_settings};
use crate::auth::Scope;
use crate::channels::Channels;

const ABOUT: &str = "The notification layer for AI agents: programs publish events, and agents take notifications when \
    they can use them.\n\nEvery request except the probes needs `Authorization: Bearer TOKEN`. Errors are `{error: {code, \
    message, field?, hint?}}` with stable codes. Unknown fields are refused. Data of another owner gives 404, like missing \
    data. A method that a path does not support gives 405. A 2xx response is sent only after the data is durable.";

/// The meaning of `{id}` by path prefix: (prefix, description, example).
const IDS: [(&str, &str, &str); 10] = [
    ("/v1/events/", "The event: the hub's id (`event_id`), or the id its sender gave it.", "build-17"),
    ("/v1/conversations/", "The id of the conversation, chosen by its owner.", "chat"),
    ("/v1/tools/", "The tool's name.", "check_notifications"),
    ("/v1/subscribers/", "The subscriber.", "tool_failure"),
    ("/v1/users/{id}/", "The person.", "ada"),
    ("/v1/users/", "The person.", "bob"),
    ("/v1/reminders/", "The reminder.", "0198c0de-0000-7000-8000-000000000000"),
    ("/v1/deliveries/", "The delivery.", "0198c0de-0000-7000-8000-000000000000"),
    ("/v1/tokens/", "The token's id; not its secret.", "0198c0de-0000-7000-8000-000000000000"),
    ("/v1/sessions/", "The session's id.", "0198c0de-0000-7000-8000-000000000000"),
];

/// The other path parameters: (name, description, example).
const NAMES: [(&str, &str, &str); 6] = [
    // The registry replaces the example.
    ("channel", "The name of the channel.", ""),
    ("nid", "The notification.", "0198c0de-0000-7000-8000-000000000000"),
    ("index", "The button, counted from 0.", "0"),
    ("signed", "The signed part of the link.", "AAAA"),
    ("file", "The name of the file.", "console.js"),
    ("source", "The name of the source in the hub's configuration.", "github"),
];

/// The error responses: (status, name in the document, description).
const ERRORS: [(u16, &str, &str); 16] = [
    (400, "BadRequest", "The request is invalid; `field` names the invalid field."),
    (401, "Unauthorized", "The token is missing, unknown, expired or revoked."),
    (403, "Forbidden", "The scope of the token does not allow this, or the event is reserved for a person."),
    (404, "NotFound", "It does not exist, or it belongs to another owner."),
    (405, "MethodNotAllowed", "The path does not support this method."),
    (406, "NotAcceptable", "The client must accept both `application/json` and `text/event-stream`."),
    (408, "TooSlow", "The body was sent too slowly."),
    (409, "Conflict", "It conflicts with an earlier request or with the current state, or the person is being erased."),
    (413, "TooLarge", "The body is too large."),
    (415, "UnsupportedMediaType", "The content type is not supported here."),
    (421, "HostNotAllowed", "The host name is not allowed (`server.allowed_hosts`)."),
    (422, "TooCostly", "The call exceeds a limit per call: the message is too long, or there are too many events."),
    (429, "TooMany", "A rate limit is reached or the mailbox is full; `Retry-After` says when to retry."),
    (500, "Failed", "Internal error; the hub's log has the cause."),
    (503, "TryAgain", "The hub cannot do this now; retry."),
    (504, "Timeout", "The request took too long."),
];
const NO_SPACE: (u16, &str, &str) = (507, "NoSpace", "The disk is full. Nothing was changed.");

/// One operation of the document, while it is built.
pub(super) struct Operation<'a> {
    /// Collects the schemas of requests.
    pub(super) requests: &'a mut SchemaGenerator,
    /// Collects the schemas of responses.
    pub(super) answers: &'a mut SchemaGenerator,
    parameters: Vec<Value>,
    bodies: Map<String, Value>,
    answer: Map<String, Value>,
    /// Whether a client that has the current version gets 304.
    not_modified: bool,
    /// Whether browsers get errors as pages.
    errors_as_pages: bool,
}

impl Operation<'_> {
    /// Adds a request body.
    pub(super) fn body(&mut self, media_type: &str, schema: Value) {
        let content = content(schema, self.requests);
        self.bodies.insert(media_type.to_owned(), content);
    }

    /// Adds one query parameter per field of the schema.
    pub(super) fn query(&mut self, schema: &Value) {
        for (name, schema) in schema["properties"].as_object().into_iter().flatten() {
            let mut schema = schema.clone();
            let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
            // Optional fields allow null in JSON; a missing query parameter is left out instead.
            if let Some(kind) = schema["type"].get(0).cloned() {
                schema["type"] = kind;
            }
            self.parameters.push(json!({
                "name": name, "in": "query", "required": false, "description": description, "schema": schema,
            }));
        }
    }

    /// Adds a response body.
    pub(super) fn answer(&mut self, media_type: &str, schema: Value) {
        let content = content(schema, self.answers);
        self.answer.insert(media_type.to_owned(), content);
    }

    /// Adds 304, for a client that names the current version in `If-None-Match`.
    pub(super) fn not_modified(&mut self) {
        self.not_modified = true;
    }

    /// Describes errors as JSON, or as pages for browsers.
    pub(super) fn errors_as_pages(&mut self) {
        self.errors_as_pages = true;
    }

    /// Adds a JSON response body of type `T`.
    pub(super) fn answer_json<T: JsonSchema>(&mut self) {
        let schema = self.answers.subschema_for::<T>().to_value();
        self.answer("application/json", schema);
    }
}

/// Generates the document for a hub with these subscribers and channels.
pub(super) fn document(subscribers: &Subscribers, channels: &Channels) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = "/components/schemas".into();
        settings.meta_schema = None;
    });
    let mut requests = settings.clone().for_deserialize().into_generator();
    let mut answers = settings.for_serialize().into_generator();
    let error = answers.subschema_for::<ErrorBody>();
    let mut paths = Map::new();
    for route in ROUTES {
        let path = paths.entry(route.path).or_insert_with(|| json!({}));
        path[route.method.to_ascii_lowercase()] = operation(route, &mut requests, &mut answers);
    }
    let mut schemas = requests.take_definitions(true);
    schemas.extend(answers.take_definitions(true));
    list_optional_subscribers(&mut schemas, subscribers);
    channel_settings::describe(&mut schemas, channels);
    for path in paths.values_mut() {
        show_channels(path, &schemas, channels);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Bellwire", "version": env!("CARGO_PKG_VERSION"), "description": ABOUT,
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [{ "url": "/" }],
        "tags": tags(),
        "paths": paths,
        "components": {
            "schemas": schemas,
            "responses": responses(&error),
            "parameters": shared_parameters(),
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer", "description": "A token of `bellwire token create`." },
            },
        },
    })
}

fn operation(route: &Route, requests: &mut SchemaGenerator, answers: &mut SchemaGenerator) -> Value {
    let (parameters, bodies, answer) = (Vec::new(), Map::new(), Map::new());
    let mut operation =
        Operation { requests, answers, parameters, bodies, answer, not_modified: false, errors_as_pages: false };
    if let Some((_, description, example)) =
        IDS.iter().find(|(start, ..)| route.path.starts_with(start) && route.path.contains("{id}"))
    {
        let schema = operation.requests.subschema_for::<super::field::SingleLineText<{ super::field::ID_MAX }>>();
        operation.parameters.push(json!({
            "name": "id", "in": "path", "required": true, "description": description, "schema": schema,
            "example": example,
        }));
    }
    for (name, description, example) in NAMES.iter().filter(|(name, ..)| route.path.contains(&format!("{{{name}}}"))) {
        let (schema, example) = match *name {
            "index" => (json!({ "type": "integer", "minimum": 0 }), json!(0)),
            _ => (json!({ "type": "string", "minLength": 1 }), json!(example)),
        };
        operation.parameters.push(json!({
            "name": name, "in": "path", "required": true, "description": description, "schema": schema,
            "example": example,
        }));
    }
    (route.request)(&mut operation);
    (route.answer)(&mut operation);
    let Operation { mut parameters, bodies, answer, not_modified, errors_as_pages, .. } = operation;
    let scopes: Vec<&str> = route.scopes.iter().map(|scope| scope.as_str()).collect();
    if !scopes.is_empty() {
        let shared = ["traceparent", "X-Correlation-Id"].into_iter();
        let shared = shared.chain(route.takes_idempotency_key().then_some("Idempotency-Key"));
        let shared = shared.chain(route.takes_owner().then_some(OWNER));
        parameters.extend(shared.map(|name| json!({ "$ref": format!("#/components/parameters/{name}") })));
    }
    let who = match scopes.as_slice() {
        [] => "Anyone may call it, without a token.".to_owned(),
        scopes => format!("May be called with a token of scope {}.", scopes.join(", ")),
    };
    let mut responses = Map::new();
    let mut success = json!({ "description": route.status.canonical_reason().unwrap_or("Done") });
    if !answer.is_empty() {
        success["content"] = answer.into();
    }
    responses.insert(route.status.as_str().to_owned(), success);
    if not_modified {
        let description = "The client has this version: its `ETag` is in `If-None-Match`.";
        responses.insert("304".to_owned(), json!({ "description": description }));
    }
    for (status, name, description) in errors(route, !bodies.is_empty(), !parameters.is_empty()) {
        let shared = json!({ "$ref": format!("#/components/responses/{name}") });
        let page = || {
            json!({
                "description": format!("{description} With `Accept: text/html` it is a page."),
                "content": {
                    "application/json": { "schema": { "$ref": "#/components/schemas/Error" } },
                    "text/html": { "schema": { "type": "string" } },
                },
            })
        };
        responses.insert(status.to_string(), if errors_as_pages { page() } else { shared });
    }
    let mut described = json!({
        "tags": [route.tag], "summary": route.summary.trim(), "description": who, "operationId": route.operation_id(),
        "security": if scopes.is_empty() { json!([]) } else { json!([{ "token": [] }]) },
        "x-scopes": scopes, "parameters": parameters, "responses": responses,
    });
    if !bodies.is_empty() {
        described["requestBody"] = json!({ "required": true, "content": bodies });
    }
    described
}

/// The error responses of a route, derived from its parameters, body and method.
fn errors(route: &Route, has_body: bool, has_parameters: bool) -> Vec<(u16, &'static str, &'static str)> {
    let guarded = !route.scopes.is_empty();
    let applies = |status: u16| match status {
        400 => has_body || has_parameters,
        401 | 403 | 429 | 500 | 504 => guarded,
        404 => route.path.contains('{'),
        // Requests about a user who is being erased fail with 409.
        409 => route.takes_owner() || route.scopes.contains(&Scope::User),
        408 | 413 | 415 => has_body,
        // Probes are exempt from the check of the host name and from the limit of concurrent requests.
        421 | 503 => !route.is_probe(),
        507 => guarded && route.method != "GET",
        _ => false,
    };
    let all = ERRORS.into_iter().chain([NO_SPACE]);
    all.filter(|(status, ..)| applies(*status) || route.errors.contains(status)).collect()
}

fn responses(error: &Schema) -> Value {
    let mut responses = Map::new();
    for (status, name, description) in ERRORS.into_iter().chain([NO_SPACE]) {
        let mut response =
            json!({ "description": description, "content": { "application/json": { "schema": error } } });
        if matches!(status, 429 | 503 | 507) {
            response["headers"] = json!({
                "Retry-After": { "description": "Seconds to wait.", "schema": { "type": "integer", "minimum": 0 } },
            });
        }
        responses.insert(name.to_owned(), response);
    }
    responses.into()
}

/// The header parameters that many operations share.
fn shared_parameters() -> Value {
    let header = |name: &str, description: &str, example: &str| {
        let schema = json!({ "type": "string" });
        json!({
            "name": name, "in": "header", "required": false, "description": description, "schema": schema,
            "example": example,
        })
    };
    let mut key = header(
        "Idempotency-Key",
        "The caller's own name for this call. Sent again within a day it gets the first answer; with another body, 409.",
        "retry-1",
    );
    key["schema"] = json!({ "type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[\\x21-\\x7e]+$" });
    let owner = json!({
        "name": OWNER, "in": "query", "required": false, "example": "ada",
        "description": "The owner of the conversation, for callers that may act for every user: two users may use the same \
            conversation id. Without it, the one that such a caller created is used, or else the only one.",
        "schema": { "type": "string", "minLength": 1, "maxLength": ID_MAX, "pattern": NO_CONTROLS },
    });
    json!({
        OWNER: owner,
        "Idempotency-Key": key,
        "traceparent": header(
            "traceparent",
            "The trace this call belongs to, as W3C Trace Context writes it. One that is malformed is ignored.",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        ),
        "X-Correlation-Id": header(
            "X-Correlation-Id",
            "The thread of work this call belongs to; it comes back with the answer and stands in the log.",
            "build-17",
        ),
    })
}

fn tags() -> Vec<Value> {
    let mut tags: Vec<Value> = Vec::new();
    for route in ROUTES {
        if tags.last().is_none_or(|tag| tag["name"] != route.tag) {
            tags.push(json!({ "name": route.tag }));
        }
    }
    tags
}

/// A media type object: the schema, with its example if it has one.
fn content(schema: Value, generator: &mut SchemaGenerator) -> Value {
    let name = schema["$ref"].as_str().and_then(|path| path.rsplit('/').next()).map(str::to_owned);
    let named = name.and_then(|name| generator.definitions().get(&name));
    let example = named.unwrap_or(&schema)["examples"].get(0).cloned();
    let mut content = json!({ "schema": schema });
    if let Some(example) = example {
        content["example"] = example;
    }
    content
}

/// Lists the ids of subscribers that can be disabled. Core subscribers cannot, and the others depend on the hub.
fn list_optional_subscribers(schemas: &mut Map<String, Value>, subscribers: &Subscribers) {
    let optional: Vec<&str> = subscribers.iter().filter(|one| !one.output.core).map(|one| one.id.as_str()).collect();
    let change = schemas.get_mut("SettingsChange").expect("the route table uses SettingsChange");
    change["properties"]["disabled_subscribers"]["items"] = json!({ "type": "string", "enum": optional });
}

/// Names the channels where a path has one, and repeats the examples of schemas that channels have completed.
fn show_channels(part: &mut Value, schemas: &Map<String, Value>, channels: &Channels) {
    if part["in"] == "path" && part["name"] == "channel" {
        let names: Vec<String> = channels.iter().map(|channel| channel.name().to_string()).collect();
        part["example"] = json!(names.first());
        part["schema"] = json!({ "type": "string", "enum": names });
    }
    if part["example"].is_object() {
        let name = part["schema"]["$ref"].as_str().and_then(|path| path.rsplit('/').next());
        if let Some(example) = name.and_then(|name| schemas.get(name)).and_then(|schema| schema["examples"].get(0)) {
            part["example"] = example.clone();
        }
        return;
    }
    match part {
        Value::Object(fields) => fields.values_mut().for_each(|field| show_channels(field, schemas, channels)),
        Value::Array(list) => list.iter_mut().for_each(|part| show_channels(part, schemas, channels)),
        _ => {}
    }
}

/// The serialized document.
#[derive(Clone)]
pub(super) struct OpenApiDocument(pub(super) Bytes);

/// Serves the document.
pub(super) async fn serve(State(document): State<OpenApiDocument>) -> Result<OpenApiDocument, ApiError> {
    Ok(document)
}

impl HandlerArgument for State<OpenApiDocument> {
    type Request = ();
}

impl ResponseShape for OpenApiDocument {
    const STATUS: StatusCode = StatusCode::OK;
    fn describe(operation: &mut Operation<'_>) {
        operation.answer("application/json", json!({ "type": "object", "required": ["openapi", "paths"] }));
    }
}

impl IntoResponse for OpenApiDocument {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, "application/json")], self.0).into_response()
    }
}

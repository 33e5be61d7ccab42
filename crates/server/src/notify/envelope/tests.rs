use bellwire_core::Time;
use bellwire_core::notify::{ErrorClass, NotifyError};
use proptest::prelude::*;
use serde_json::{Value, json};
use uuid::Uuid;

use super::answer::ErrorFields;
use super::*;

const REQUEST: Uuid = Uuid::from_u128(0x0190_a3c2_7b1e_7000_8000_0000_0000_0001);

fn context() -> Value {
    json!({
        "request_id": REQUEST, "source_channel": "telegram", "source_endpoint_identity": "telegram:42",
        "source_sender_identity": "7", "source_thread_identity": "12:34", "received_at": "2026-01-03T15:30:00Z",
    })
}

fn deliver() -> Value {
    json!({
        "source_butler": "health",
        "notify_request": {
            "schema_version": "notify.v1",
            "origin_butler": "health",
            "delivery": {"intent": "reply", "channel": "telegram", "message": "Yes", "subject": "S"},
            "request_context": context(),
        },
        "user_id": "ada",
    })
}

fn request() -> NotifyRequest {
    DeliverArguments::read(deliver()).unwrap().notify_request
}

fn route() -> Value {
    serde_json::to_value(RouteEnvelope::of(request(), Some("ada".into()), REQUEST, Time::ZERO)).unwrap()
}

fn delivered() -> Delivered {
    Delivered { channel: "telegram".into(), delivery_id: "35".into() }
}

fn route_response(outcome: Outcome) -> Value {
    let response = NotifyResponse::of(REQUEST, outcome);
    let context = WireContext(bellwire_core::notify::RequestContext::parse(&context()).unwrap());
    serde_json::to_value(RouteResponse::of(Some(context), Ok(response), 12)).unwrap()
}

fn deliver_answer(outcome: Outcome) -> Value {
    serde_json::to_value(DeliverAnswer::of(REQUEST, REQUEST, outcome)).unwrap()
}

fn refused() -> Failure {
    NotifyError::new(ErrorClass::TargetUnavailable, "busy").retry_after(Some(7)).into()
}

/// Changes the value at a path such as `notify_request.delivery`; `Null` removes it.
fn with(mut value: Value, path: &str, new: Value) -> Value {
    let (parent, name) = path.rsplit_once('.').unwrap_or(("", path));
    let pointer = parent.split('.').filter(|part| !part.is_empty()).map(|part| format!("/{part}")).collect::<String>();
    let parent = value.pointer_mut(&pointer).and_then(Value::as_object_mut).expect("the path exists");
    match new {
        Value::Null => drop(parent.remove(name)),
        new => drop(parent.insert(name.to_owned(), new)),
    }
    value
}

fn at<'a>(value: &'a Value, path: &str) -> &'a Value {
    value.pointer(&format!("/{}", path.replace('.', "/"))).expect("the path exists")
}

/// Every object of an envelope may be a string of JSON, must not be a list, and takes no unknown field.
fn is_strict<T: Envelope + PartialEq + std::fmt::Debug>(whole: &Value) {
    let expected = T::read(whole.clone()).unwrap();
    assert_eq!(T::read(json!(whole.to_string())).unwrap(), expected);
    for path in T::OBJECTS {
        let object = at(whole, path).clone();
        let text = with(whole.clone(), path, json!(object.to_string()));
        assert_eq!(T::read(text).unwrap(), expected, "{path} as a string");
        for wrong in [json!("text"), json!("[1]"), json!([]), json!(5), json!(true)] {
            let error = T::read(with(whole.clone(), path, wrong.clone())).unwrap_err();
            assert!(error.path == *path && error.message.starts_with("must be an object"), "{path}: {error}");
        }
        if *path != "trace_context" {
            let unknown = T::read(with(whole.clone(), &format!("{path}.colour"), json!(1))).unwrap_err();
            let named = format!("{}: {}", unknown.path, unknown.message);
            assert!(named.contains("colour") && unknown.path.starts_with(path), "{path}: {named}");
        }
    }
    let unknown = T::read(with(whole.clone(), "colour", json!(1))).unwrap_err();
    assert!(unknown.to_string().contains("colour"), "{unknown}");
}

#[test]
fn every_envelope_is_read_strictly_and_objects_may_be_strings_of_json() {
    is_strict::<DeliverArguments>(&deliver());
    is_strict::<RouteEnvelope>(&with(route(), "trace_context", json!({"traceparent": "00-1"})));
    let partial = Failure { error: refused().error, first_part: Some(delivered()) };
    is_strict::<RouteResponse>(&route_response(Err(partial.clone())));
    is_strict::<DeliverAnswer>(&deliver_answer(Err(partial)));
}

#[test]
fn errors_have_the_path_of_the_field() {
    let error = |path: &str, new: Value| DeliverArguments::read(with(deliver(), path, new)).unwrap_err().to_string();
    let delivery = "notify_request.delivery";
    let snapshot: Vec<String> = vec![
        error("source_butler", Value::Null),
        error("notify_request", Value::Null),
        error("notify_request.schema_version", json!("notify.v2")),
        error("notify_request.origin_butler", json!(5)),
        error("notify_request.delivery", Value::Null),
        error(&format!("{delivery}.intent"), json!("insight")),
        error(&format!("{delivery}.channel"), Value::Null),
        error(&format!("{delivery}.message"), json!({"text": 1})),
        error("notify_request.request_context.request_id", json!("abc")),
        error("notify_request.request_context.source_channel", Value::Null),
        error("notify_request.decision_dossier", json!({})),
        DeliverArguments::read(json!([1])).unwrap_err().to_string(),
        RouteEnvelope::read(with(route(), "target.butler", json!("health"))).unwrap_err().to_string(),
        RouteEnvelope::read(with(route(), "target.tool", json!("shell"))).unwrap_err().to_string(),
        RouteEnvelope::read(with(route(), "schema_version", Value::Null)).unwrap_err().to_string(),
    ];
    let expected = [
        "source_butler: missing field `source_butler`",
        "notify_request: missing field `notify_request`",
        "notify_request.schema_version: unknown variant `notify.v2`, expected `notify.v1`",
        "notify_request.origin_butler: invalid type: integer `5`, expected a string",
        "notify_request.delivery: missing field `delivery`",
        "notify_request.delivery.intent: unknown variant `insight`, expected one of `send`, `reply`, `react`",
        "notify_request.delivery.channel: missing field `channel`",
        "notify_request.delivery.message: invalid type: map, expected a string",
        "notify_request.request_context: Invalid request_context field 'request_id': 'abc' is not a UUID such as \
         0190a3c2-7b1e-7000-8000-000000000001",
        "notify_request.request_context: Missing required request_context field 'source_channel'. Copy the whole \
         request_context of the message you answer",
        "notify_request.decision_dossier: unknown field `decision_dossier`, expected one of `schema_version`, \
         `origin_butler`, `delivery`, `request_context`",
        "must be an object, not a list",
        "target.butler: unknown variant `health`, expected `messenger`",
        "target.tool: unknown variant `shell`, expected `route.execute`",
        "schema_version: missing field `schema_version`",
    ];
    assert_eq!(snapshot, expected);
}

#[test]
fn a_route_has_the_switchboards_own_context_and_keeps_the_requests() {
    let route = route();
    assert_eq!(at(&route, "input.context.notify_request.request_context"), &context());
    assert_eq!(
        at(&route, "request_context"),
        &json!({
            "request_id": REQUEST, "source_channel": "mcp", "source_endpoint_identity": "switchboard",
            "source_sender_identity": "health", "received_at": "1970-01-01T00:00:00Z",
        })
    );
    assert_eq!(at(&route, "target"), &json!({"butler": "messenger", "tool": "route.execute"}));
}

#[test]
fn an_answer_is_a_delivery_only_if_everything_in_it_says_so() {
    let of_route = |value: Value| RouteResponse::read(value).unwrap().outcome(REQUEST, "telegram");
    let of_deliver = |value: Value| DeliverAnswer::read(value).unwrap().outcome(REQUEST, "telegram");
    assert_eq!(of_route(route_response(Ok(delivered()))), Ok(delivered()));
    assert_eq!(of_deliver(deliver_answer(Ok(delivered()))), Ok(delivered()));
    assert_eq!(of_route(route_response(Err(refused()))), Err(refused()));
    assert_eq!(of_deliver(deliver_answer(Err(refused()))), Err(refused()));

    let error = json!({"class": "internal_error", "message": "x", "retryable": false});
    let other = json!(Uuid::from_u128(1));
    let ok = || route_response(Ok(delivered()));
    let unproven = [
        with(ok(), "result", Value::Null),
        with(ok(), "error", error.clone()),
        with(ok(), "status", json!("error")),
        with(ok(), "request_context.request_id", other.clone()),
        with(ok(), "result.notify_response.status", json!("error")),
        with(ok(), "result.notify_response.error", error.clone()),
        with(ok(), "result.notify_response.delivery", Value::Null),
        with(ok(), "result.notify_response.delivery.channel", json!("email")),
        with(ok(), "result.notify_response.delivery.delivery_id", json!(" ")),
        with(ok(), "result.notify_response.request_context.request_id", other.clone()),
        with(with(ok(), "status", json!("error")), "result", Value::Null),
    ];
    for value in unproven {
        let failure = of_route(value.clone()).unwrap_err();
        assert!(failure.error.is_unknown_outcome(), "{value}: {failure:?}");
    }
    let ok = || deliver_answer(Ok(delivered()));
    for value in [
        with(ok(), "result", Value::Null),
        with(ok(), "error", json!("x")),
        with(ok(), "status", json!("failed")),
        with(ok(), "result.request_context.request_id", other),
        with(with(ok(), "status", json!("failed")), "result", Value::Null),
    ] {
        let failure = of_deliver(value.clone()).unwrap_err();
        assert!(failure.error.is_unknown_outcome(), "{value}: {failure:?}");
    }
}

#[test]
fn an_error_without_a_notify_response_is_an_error() {
    let error = NotifyError::invalid("the caller is not trusted");
    let answer = serde_json::to_value(RouteResponse::of(None, Err(error.clone()), 1)).unwrap();
    assert_eq!(answer["status"], "error");
    let outcome = RouteResponse::read(answer).unwrap().outcome(REQUEST, "telegram");
    assert_eq!(outcome, Err(error.clone().into()));
    let answer = serde_json::to_value(DeliverAnswer::refused(error.clone())).unwrap();
    assert_eq!(DeliverAnswer::read(answer).unwrap().outcome(REQUEST, "telegram"), Err(error.into()));
}

#[test]
fn an_unknown_class_is_internal_and_only_retryable_classes_can_be_retried() {
    let read = |class: &str, retryable: bool| {
        let message = "it\u{202e} failed".to_owned();
        NotifyError::from(ErrorFields { class: class.into(), message, retryable, retry_after_seconds: None })
    };
    assert_eq!(read("routing_error", true), NotifyError::new(ErrorClass::InternalError, "it failed"));
    assert!(!read("validation_error", true).retryable);
    assert!(!read("internal_error", true).retryable);
    assert!(read("timeout", true).retryable);
    assert!(read("timeout", false).is_unknown_outcome());
    let long = ErrorFields { message: "x".repeat(5_000), ..ErrorFields::from(read("timeout", true)) };
    assert_eq!(NotifyError::from(long).message.len(), 1_000);
}

/// Any JSON, also with the names and values of the envelopes.
fn any_json() -> impl Strategy<Value = Value> {
    let words = [
        "notify_request",
        "delivery",
        "request_context",
        "input",
        "context",
        "status",
        "ok",
        "sent",
        "result",
        "error",
        "schema_version",
        "notify.v1",
        "route.v1",
        "{\"a\":1}",
        "notify_response",
        "telegram",
        "x",
    ];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        ".{0,12}".prop_map(Value::from),
        prop::sample::select(words.to_vec()).prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        let key =
            prop_oneof![prop::sample::select(words.to_vec()).prop_map(str::to_owned), ".{0,6}".prop_map(String::from)];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec((key, inner), 0..6).prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}

/// All paths of fields in an envelope.
fn paths(value: &Value, prefix: &str, into: &mut Vec<String>) {
    for (name, inner) in value.as_object().into_iter().flatten() {
        let path = if prefix.is_empty() { name.clone() } else { format!("{prefix}.{name}") };
        paths(inner, &path, into);
        into.push(path);
    }
}

proptest! {
    #[test]
    fn hostile_json_is_refused_without_a_panic_and_never_a_delivery(value in any_json()) {
        let _ = DeliverArguments::read(value.clone());
        let _ = RouteEnvelope::read(value.clone());
        if let Ok(answer) = RouteResponse::read(value.clone()) {
            prop_assert!(answer.outcome(REQUEST, "telegram").is_err());
        }
        if let Ok(answer) = DeliverAnswer::read(value) {
            prop_assert!(answer.outcome(REQUEST, "telegram").is_err());
        }
    }

    #[test]
    fn one_changed_field_never_makes_a_failure_a_delivery(at_most in any::<prop::sample::Index>(), new in any_json()) {
        let failed = route_response(Err(refused()));
        let mut all = Vec::new();
        paths(&failed, "", &mut all);
        let changed = with(failed, at_most.get(all.as_slice()).as_str(), new);
        if let Ok(answer) = RouteResponse::read(changed) {
            prop_assert!(answer.outcome(REQUEST, "telegram").is_err());
        }
    }

    #[test]
    fn what_is_written_is_read_back(message in ".{1,40}", subject in proptest::option::of(".{1,20}"), origin in "[a-z]{1,12}") {
        let mut whole = request();
        whole.origin_butler = origin.clone();
        whole.delivery.message = Some(message);
        whole.delivery.subject = subject;
        let arguments = DeliverArguments { source_butler: origin, notify_request: whole, user_id: None };
        let value = serde_json::to_value(&arguments).unwrap();
        prop_assert_eq!(DeliverArguments::read(value).unwrap(), arguments.clone());
        let route = RouteEnvelope::of(arguments.notify_request, None, REQUEST, Time::ZERO);
        prop_assert_eq!(RouteEnvelope::read(serde_json::to_value(&route).unwrap()).unwrap(), route);
    }
}

//! CloudEvents 1.0 on the publish endpoint (structured, batched and binary mode), converted to Bellwire's event JSON.
//!
//! Values that a Bellwire event does not allow are adapted, not refused: types and sources are normalised, and attributes
//! without a counterpart go into `payload.extensions`. `source` and `id` together become the client's event id, so that a
//! CloudEvent sent twice is accepted once.

use axum::http::{HeaderMap, HeaderName};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};

use super::{ApiError, body};

/// The media type of one CloudEvent in structured mode.
pub(super) const STRUCTURED: &str = "application/cloudevents+json";
/// The media type of an array of CloudEvents.
pub(super) const BATCHED: &str = "application/cloudevents-batch+json";
/// A request with this header is a CloudEvent in binary mode.
static VERSION_HEADER: HeaderName = HeaderName::from_static("ce-specversion");
/// The maximum number of dot-separated parts of an event type, and of its characters.
const TYPE_PARTS_MAX: usize = 6;
const PART_MAX: usize = 20;
const SOURCE_MAX: usize = 64;
/// The attributes that CloudEvents 1.0 defines; all others are extensions.
const STANDARD_ATTRIBUTES: [&str; 9] =
    ["specversion", "id", "source", "type", "time", "subject", "datacontenttype", "dataschema", "data"];
/// Extensions that map to fields of a Bellwire event: (extension, field).
const KNOWN_EXTENSIONS: [(&str, &str); 5] = [
    ("severity", "severity"),
    ("conversationid", "conversation_id"),
    ("agent", "agent"),
    ("userid", "user_id"),
    ("dedupekey", "dedupe_key"),
];

/// Whether a request is a CloudEvent in binary mode.
pub(super) fn is_binary(headers: &HeaderMap) -> bool {
    headers.contains_key(&VERSION_HEADER)
}

/// Converts a CloudEvent to the JSON of a Bellwire event and returns it with its client event id.
pub(super) fn to_event_json(event: Value) -> Result<(Value, String), ApiError> {
    let Value::Object(mut event) = event else { return Err(ApiError::invalid("body", "must be a JSON object")) };
    if event.get("specversion").and_then(Value::as_str) != Some("1.0") {
        return Err(ApiError::invalid("specversion", "must be \"1.0\""));
    }
    let id = required(&event, "id")?;
    let source = required(&event, "source")?;
    let kind = required(&event, "type")?;
    let mut draft = Map::from_iter([
        ("type".to_owned(), json!(normal_type(&kind))),
        ("source".to_owned(), json!(normal_source(&source))),
        ("severity".to_owned(), json!("info")),
    ]);
    if let Some(time) = event.remove("time").filter(|time| !time.is_null()) {
        draft.insert("timestamp".to_owned(), time);
    }
    for (theirs, ours) in KNOWN_EXTENSIONS {
        match event.remove(theirs) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => drop(draft.insert(ours.to_owned(), Value::String(text))),
            Some(_) => return Err(ApiError::invalid(theirs, "must be a text")),
        }
    }
    draft.insert("payload".to_owned(), payload(event)?);
    // `source` and `id` may be longer than a client event id, so it is the hash of both.
    let name = Sha256::new().chain_update(source.as_bytes()).chain_update([0]).chain_update(id.as_bytes()).finalize();
    let name: String = name.iter().map(|byte| format!("{byte:02x}")).collect();
    Ok((Value::Object(draft), format!("cloudevent:{name}")))
}

/// Builds the structured form of a CloudEvent in binary mode: the attributes are headers, the data is the body.
pub(super) fn binary(headers: &HeaderMap, media: &str, body: &[u8]) -> Result<Value, ApiError> {
    let mut event = Map::new();
    for (name, value) in headers {
        if let Some(attribute) = name.as_str().strip_prefix("ce-") {
            let text = decode(value.as_bytes()).ok_or_else(|| {
                ApiError::invalid(name.as_str(), "must be UTF-8, percent-encoded where it is not ASCII")
            })?;
            event.insert(attribute.to_owned(), Value::String(text));
        }
    }
    if !media.is_empty() {
        event.insert("datacontenttype".to_owned(), json!(media));
    }
    let is_json = media.is_empty() || media == "application/json" || media == "text/json" || media.ends_with("+json");
    match (body.is_empty(), is_json) {
        (true, _) => {}
        (false, true) => {
            event.insert("data".to_owned(), body::read(body)?);
        }
        (false, false) => match std::str::from_utf8(body).ok().filter(|_| media.starts_with("text/")) {
            Some(text) => drop(event.insert("data".to_owned(), json!(text))),
            None => drop(event.insert("data_base64".to_owned(), json!(STANDARD.encode(body)))),
        },
    }
    Ok(Value::Object(event))
}

/// The event's data as an object, with the attributes that map to no field under `extensions`.
fn payload(mut event: Map<String, Value>) -> Result<Value, ApiError> {
    let data = event.remove("data").filter(|data| !data.is_null());
    let encoded = event.remove("data_base64").filter(|data| !data.is_null());
    let mut payload = match (data, encoded) {
        (Some(_), Some(_)) => return Err(ApiError::invalid("data", "and data_base64 cannot both be there")),
        (Some(Value::Object(data)), None) => data,
        (Some(data), None) => Map::from_iter([("data".to_owned(), data)]),
        (None, Some(encoded)) if !encoded.is_string() => {
            return Err(ApiError::invalid("data_base64", "must be a text"));
        }
        (None, Some(encoded)) => Map::from_iter([("data_base64".to_owned(), encoded)]),
        (None, None) => Map::new(),
    };
    let told = |name: &str| !STANDARD_ATTRIBUTES.contains(&name) || matches!(name, "subject" | "dataschema");
    let extensions: Map<String, Value> =
        event.into_iter().filter(|(name, value)| told(name) && !value.is_null()).collect();
    if extensions.is_empty() {
        return Ok(Value::Object(payload));
    }
    // Data with a field `extensions` of its own is moved one level down.
    if payload.contains_key("extensions") {
        payload = Map::from_iter([("data".to_owned(), Value::Object(payload))]);
    }
    payload.insert("extensions".to_owned(), Value::Object(extensions));
    Ok(Value::Object(payload))
}

fn required(event: &Map<String, Value>, name: &'static str) -> Result<String, ApiError> {
    match event.get(name) {
        Some(Value::String(text)) if !text.is_empty() => Ok(text.clone()),
        Some(_) => Err(ApiError::invalid(name, "must be a text that is not empty")),
        None => Err(ApiError::invalid(name, "is missing; a CloudEvent needs specversion, id, source and type")),
    }
}

/// Normalises an event type: lower case, two to six parts, each a letter followed by letters, digits or `_`.
fn normal_type(kind: &str) -> String {
    let part = |part: &str| {
        let clean: String = part
            .chars()
            .map(|c| c.to_ascii_lowercase())
            .map(|c| if c.is_ascii_lowercase() || c.is_ascii_digit() { c } else { '_' })
            .collect();
        let clean = if clean.starts_with(|c: char| c.is_ascii_lowercase()) { clean } else { format!("x{clean}") };
        clean.chars().take(PART_MAX).collect::<String>()
    };
    let mut parts: Vec<String> = kind.split(['.', '/']).filter(|text| !text.is_empty()).map(part).collect();
    if parts.len() > TYPE_PARTS_MAX {
        let rest = parts.split_off(TYPE_PARTS_MAX - 1).join("_");
        parts.push(rest.chars().take(PART_MAX).collect());
    }
    while parts.len() < 2 {
        parts.insert(0, "cloudevent".to_owned());
    }
    parts.join(".")
}

/// Replaces the characters that a source may not contain with `_`.
fn normal_source(source: &str) -> String {
    let legal = |c: char| c.is_ascii_alphanumeric() || matches!(c, ' ' | '_' | '.' | ':' | '/' | '-');
    let clean: String = source.chars().map(|c| if legal(c) { c } else { '_' }).take(SOURCE_MAX).collect();
    match clean.trim() {
        "" => "_".to_owned(),
        trimmed => trimmed.to_owned(),
    }
}

/// Decodes a header value, which is percent-encoded UTF-8.
fn decode(value: &[u8]) -> Option<String> {
    percent_encoding::percent_decode(value).decode_utf8().ok().map(Into::into)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn any_type_is_normalised_to_a_valid_type() {
        for (theirs, ours) in [
            ("com.github.pull_request.opened", "com.github.pull_request.opened"),
            ("com.example.SomeEvent-v2", "com.example.someevent_v2"),
            ("Opened", "cloudevent.opened"),
            ("a.b.c.d.e.f.g.h", "a.b.c.d.e.f_g_h"),
            ("io.2024.x", "io.x2024.x"),
            ("..", "cloudevent.cloudevent"),
            ("ünder.score", "x_nder.score"),
        ] {
            assert_eq!(normal_type(theirs), ours);
            assert!(bellwire_core::event::EventType::parse(&normal_type(theirs)).is_ok(), "{theirs}");
        }
    }

    #[test]
    fn any_source_is_normalised_to_a_valid_source() {
        assert_eq!(normal_source("https://ci.example/job?x=1"), "https://ci.example/job_x_1");
        assert_eq!(normal_source(" \u{202e} "), "_");
        assert_eq!(normal_source(&"a".repeat(100)).len(), 64);
    }

    #[test]
    fn unknown_attributes_go_into_extensions() {
        let event = json!({
            "specversion": "1.0", "id": "1", "source": "/ci", "type": "ci.build.done", "time": "2026-01-03T15:30:00Z",
            "subject": "main", "severity": "error", "conversationid": "chat", "traceid": "t", "data": {"ok": false},
        });
        let (event, _) = to_event_json(event).unwrap_or_else(|error| panic!("{}", error.message));
        let expected = json!({
            "type": "ci.build.done", "source": "/ci", "severity": "error", "timestamp": "2026-01-03T15:30:00Z",
            "conversation_id": "chat", "payload": {"ok": false, "extensions": {"subject": "main", "traceid": "t"}},
        });
        assert_eq!(event, expected);
    }

    #[test]
    fn non_object_data_is_wrapped_and_its_own_extensions_field_is_kept() {
        let event = |data: Value| json!({"specversion": "1.0", "id": "1", "source": "s", "type": "a.b", "traceid": "t", "data": data});
        let payload = |data: Value| to_event_json(event(data)).map(|(event, _)| event["payload"].clone()).ok();
        assert_eq!(payload(json!([1])), Some(json!({"data": [1], "extensions": {"traceid": "t"}})));
        let own = json!({"extensions": 7});
        assert_eq!(payload(own.clone()), Some(json!({"data": own, "extensions": {"traceid": "t"}})));
    }

    #[test]
    fn header_values_are_percent_encoded() {
        assert_eq!(decode(b"caf%C3%A9 100%").as_deref(), Some("caf\u{e9} 100%"));
        assert_eq!(decode(b"%FF"), None);
    }
}

//! Splits a publish request's body into events: one JSON object, a JSON array, NDJSON or CloudEvents.
//!
//! The body is first split into the texts of its events without deserializing them, so that a body with too many events
//! or invalid JSON is refused before it takes memory. Then each event is deserialized alone. The fast path deserializes
//! `NewEvent` directly; it serves valid events in Bellwire's own form without a client event id. All others go through a
//! `serde_json::Value`: to report the path of an invalid field, to hash an event with an id, or to convert a CloudEvent.
//! Both paths accept and refuse the same events.

use std::cell::Cell;
use std::fmt;
use std::hash::Hasher as _;

use axum::http::HeaderMap;
use bellwire_store::ClientEventId;
use serde::Deserialize as _;
use serde::de::{DeserializeSeed, Deserializer, Error as _, SeqAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use siphasher::sip128::{Hasher128 as _, SipHasher13};

use super::body::{self, Object};
use super::new_event::NewEvent;
use super::{ApiError, cloudevents};

const LINES: &str = "application/x-ndjson";

/// The text of one event, not deserialized yet.
pub(super) enum ReceivedEvent<'a> {
    /// The JSON of a Bellwire event.
    Own(&'a [u8]),
    /// A line of NDJSON with a Bellwire event, and the line's number in the body, from 1.
    Line(usize, &'a [u8]),
    /// A CloudEvent in structured mode.
    Cloud(&'a [u8]),
    /// A CloudEvent in binary mode: its attributes are headers, its data is the body.
    BinaryCloud(&'a HeaderMap, &'a [u8]),
}

impl ReceivedEvent<'_> {
    /// Deserializes the event and its client event id, by which the store detects a repeat.
    pub(super) fn read(&self) -> Result<(NewEvent, Option<ClientEventId>), ApiError> {
        match self {
            Self::Own(json) | Self::Line(_, json) => read_own(json),
            Self::Cloud(json) => read_cloud_event(body::read(json)?),
            Self::BinaryCloud(headers, data) => {
                read_cloud_event(cloudevents::binary(headers, &body::media_type(headers), data)?)
            }
        }
    }

    /// Adds to an error of this event, the `index`th of its request, where the event is: its index in the field and, for
    /// NDJSON, its line in the message.
    pub(super) fn locate(&self, error: ApiError, index: usize) -> ApiError {
        let error = error.within(index);
        match self {
            // The position of a syntax error is one within the line.
            Self::Line(number, _) => {
                let message = format!("line {number}: {}", error.message.replace(" at line 1 column ", " at column "));
                ApiError { message, ..error }
            }
            _ => error,
        }
    }
}

fn read_own(json: &[u8]) -> Result<(NewEvent, Option<ClientEventId>), ApiError> {
    body::check_values(json)?;
    match serde_json::from_slice(json) {
        Ok(Object::<NewEvent>(event)) if event.client_id().is_none() => Ok((event, None)),
        _ => read_value(body::read(json)?, None),
    }
}

/// Converts and deserializes a CloudEvent.
fn read_cloud_event(event: Value) -> Result<(NewEvent, Option<ClientEventId>), ApiError> {
    let content = fingerprint(&event);
    let (event, id) = cloudevents::to_event_json(event)?;
    read_value(event, Some(ClientEventId { id, content }))
}

fn read_value(
    sent: Value,
    cloud_event_id: Option<ClientEventId>,
) -> Result<(NewEvent, Option<ClientEventId>), ApiError> {
    let Object(event) = match Object::<NewEvent>::deserialize(&sent) {
        Ok(event) => event,
        // Again, for the path of the invalid field.
        Err(_) => body::from_tree(sent.clone().into())?,
    };
    let client_event_id = match event.client_id() {
        // Only an event with a client event id is hashed: without one a repeat is not detected.
        Some(id) => Some(ClientEventId { id: id.to_owned(), content: fingerprint(&sent) }),
        None => cloud_event_id,
    };
    Ok((event, client_event_id))
}

/// Splits the body into 1 to `max` events by its media type.
pub(super) fn drafts<'a>(
    headers: &'a HeaderMap,
    body: &'a [u8],
    max: usize,
) -> Result<Vec<ReceivedEvent<'a>>, ApiError> {
    let kind = body::media_type(headers);
    body::check_batch_values(body)?;
    let is_list = body.trim_ascii_start().starts_with(b"[");
    let drafts: Vec<ReceivedEvent<'a>> = match &*kind {
        cloudevents::STRUCTURED => vec![ReceivedEvent::Cloud(body)],
        cloudevents::BATCHED => elements(body, max)?.into_iter().map(ReceivedEvent::Cloud).collect(),
        _ if cloudevents::is_binary(headers) => vec![ReceivedEvent::BinaryCloud(headers, body)],
        LINES => lines(body).take(max + 1).map(|(number, json)| ReceivedEvent::Line(number, json)).collect(),
        kind if !body::is_json(kind) => {
            return Err(body::unsupported(kind, "application/json or application/x-ndjson"));
        }
        _ if is_list => elements(body, max)?.into_iter().map(ReceivedEvent::Own).collect(),
        _ => vec![ReceivedEvent::Own(body)],
    };
    match drafts.len() {
        0 => Err(wrong_count("no event came", max)),
        count if count > max => Err(too_many(max)),
        _ => Ok(drafts),
    }
}

/// The texts of a JSON array's elements. Parsing stops at element `max + 1`.
fn elements(body: &[u8], max: usize) -> Result<Vec<&[u8]>, ApiError> {
    let overflow = Cell::new(false);
    let mut reader = serde_json::Deserializer::from_slice(body);
    let elements = ArrayElements { max, overflow: &overflow }.deserialize(&mut reader);
    let elements = elements.and_then(|elements| reader.end().map(|()| elements));
    elements.map_err(|error| match error {
        _ if overflow.get() => too_many(max),
        error if error.is_data() => ApiError::invalid("body", "must be a JSON array"),
        error => ApiError::syntax(&error),
    })
}

struct ArrayElements<'a> {
    max: usize,
    overflow: &'a Cell<bool>,
}

impl<'de> DeserializeSeed<'de> for ArrayElements<'_> {
    type Value = Vec<&'de [u8]>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de> Visitor<'de> for ArrayElements<'_> {
    type Value = Vec<&'de [u8]>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON array")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Self::Value, A::Error> {
        let mut elements = Vec::new();
        while let Some(element) = sequence.next_element::<&RawValue>()? {
            if elements.len() == self.max {
                self.overflow.set(true);
                return Err(A::Error::custom("too many elements"));
            }
            elements.push(element.get().as_bytes());
        }
        Ok(elements)
    }
}

fn lines(body: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    (1..).zip(body.split(|byte| *byte == b'\n')).filter(|(_, line)| !line.trim_ascii().is_empty())
}

fn too_many(max: usize) -> ApiError {
    wrong_count(&format!("more than {max} events came"), max)
}

fn wrong_count(came: &str, max: usize) -> ApiError {
    ApiError::invalid("events", format!("{came}; 1 to {max} are allowed in one call"))
}

/// A hash of the event's canonical JSON, so that key order does not matter. It detects that a sender reused an event id
/// with other content; it is not a defence against forged collisions.
fn fingerprint(event: &Value) -> [u8; 16] {
    let mut hasher = SipHasher13::new();
    hasher.write(bellwire_core::event::canonical_json(event).as_bytes());
    hasher.finish128().as_u128().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::http::header::CONTENT_TYPE;
    use bellwire_core::{Event, Time};

    use super::*;

    const EVENT: &str =
        r#"{"type":"cli.event","source":"shell","severity":"info","conversation_id":"chat","payload":{}}"#;

    /// Reads all events of a body, or returns the first error.
    fn read(kind: &'static str, body: &str, max: usize) -> Result<Vec<(Event, Option<ClientEventId>)>, ApiError> {
        let headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(kind))]);
        let drafts = drafts(&headers, body.as_bytes(), max)?;
        drafts.iter().map(|draft| draft.read().and_then(checked)).collect()
    }

    fn checked(
        (event, client_event_id): (NewEvent, Option<ClientEventId>),
    ) -> Result<(Event, Option<ClientEventId>), ApiError> {
        Ok((event.into_event(Time::ZERO)?, client_event_id))
    }

    /// Reads one event by the slow path.
    fn read_by_value(json: &str) -> Result<(Event, Option<ClientEventId>), ApiError> {
        read_value(body::read(json.as_bytes())?, None).and_then(checked)
    }

    fn error_parts(error: ApiError) -> (axum::http::StatusCode, Option<String>, String) {
        (error.status, error.field, error.message)
    }

    #[test]
    fn the_last_value_of_a_repeated_field_counts() {
        let events = read("application/json", &EVENT.replacen('{', r#"{"source":"before","#, 1), 1);
        let (event, _) = events.unwrap_or_else(|error| panic!("{}", error.message)).remove(0);
        assert_eq!(event.source().as_str(), "shell");
    }

    #[test]
    fn both_paths_give_the_same_event() {
        let all = r#"{"type":"a.b","source":"s","severity":"error","timestamp":"2026-01-03T15:30:00.5Z","agent":"sub",
            "payload":{"b":[1,2.5,-0,1e15,null,{"x":"\u00e9\n"}],"a":{}},"dedupe_key":"k","conversation_id":"c","user_id":"u",
            "correlation_id":"w","id":null}"#;
        for body in [EVENT, all] {
            let directly = read("", body, 1).unwrap_or_else(|error| panic!("{}", error.message)).remove(0);
            assert_eq!(directly, read_by_value(body).unwrap_or_else(|error| panic!("{}", error.message)));
        }
    }

    #[test]
    fn both_paths_refuse_with_the_same_error() {
        let deep = EVENT.replace("{}", &format!("{{\"a\":{}{}}}", "[".repeat(129), "]".repeat(129)));
        let events = [
            "",
            " ",
            "null",
            "7",
            "{",
            r#"{"type":"cli.event"}"#,
            &format!("\u{feff}{EVENT}"),
            &format!("{EVENT} {EVENT}"),
            &EVENT.replace("info", "loud"),
            &EVENT.replace("{}", "[]"),
            &EVENT.replace("{}", "null"),
            &EVENT.replace("\"chat\"", "\"\""),
            &EVENT.replacen('{', r#"{"colour":"red","#, 1),
            &EVENT.replacen('{', r#"{"timestamp":"yesterday","#, 1),
            &deep,
        ];
        for event in events {
            let wrong = read("application/json", event, 10).map_err(error_parts).expect_err(event);
            assert_eq!(wrong, read_by_value(event).map_err(error_parts).expect_err(event), "{event}");
        }
    }

    #[test]
    fn a_list_is_refused_as_a_whole_or_at_the_invalid_event() {
        let number = format!("[{EVENT}, 1]");
        let nested = format!("[[{EVENT}]]");
        for (body, message) in [
            ("[]", "no event came; 1 to 2 are allowed in one call"),
            ("[", "EOF while parsing a list at line 1 column 1"),
            ("[1,2,3,nonsense", "more than 2 events came; 1 to 2 are allowed in one call"),
            (&number, "invalid type: integer `1`, expected a JSON object"),
            (&nested, "invalid type: sequence, expected a JSON object"),
            (r#"["type", "source"]"#, "invalid type: string \"type\", expected a JSON object"),
        ] {
            assert_eq!(read("application/json", body, 2).map_err(error_parts).expect_err(body).2, message, "{body}");
        }
        let lines = format!("{EVENT}\n\n{EVENT}\n{EVENT}\n");
        assert_eq!(read(LINES, &lines, 3).map_or(0, |events| events.len()), 3);
        assert!(read(LINES, &lines, 2).is_err());
        let batch = read(cloudevents::BATCHED, "{}", 2).map_err(error_parts).expect_err("the body is not an array");
        assert_eq!((batch.1.as_deref(), &*batch.2), (Some("body"), "must be a JSON array"));
    }
}

//! The events of a body, in whichever of their forms they came: JSON, NDJSON or CloudEvents.
//!
//! A body that is right, in our own form and without names of its sender's is read once, straight into events. Only
//! what remains is read into values first: to say exactly what is wrong, to hash what may come again, to adapt what was
//! made for others. Both readings take and refuse the same.

use std::hash::Hasher as _;

use axum::http::HeaderMap;
use bellwire_store::Brought;
use serde_json::Value;
use siphasher::sip128::{Hasher128 as _, SipHasher13};

use super::body::{self, Object};
use super::new_event::NewEvent;
use super::{ApiError, cloudevents};

const LINES: &str = "application/x-ndjson";

/// One event on its way to being checked.
pub(super) enum Draft {
    /// Read, and nobody will send it again.
    Read(NewEvent),
    /// As it was sent, and the name it is remembered by where that is not its own id.
    Sent(Value, Option<Brought>),
}

impl Draft {
    /// The event, and the name it is remembered by.
    pub(super) fn read(self) -> Result<(NewEvent, Option<Brought>), ApiError> {
        let (sent, remembered) = match self {
            Self::Read(event) => return Ok((event, None)),
            Self::Sent(sent, remembered) => (sent, remembered),
        };
        let Object(event) = serde_path_to_error::deserialize::<_, Object<NewEvent>>(&sent).map_err(body::at_path)?;
        let brought = match event.name() {
            // Only what has a name can come again.
            Some(id) => Some(Brought { id: id.to_owned(), content: fingerprint(&sent) }),
            None => remembered,
        };
        Ok((event, brought))
    }
}

/// What a body brings, if it brings as much as one call may.
pub(super) fn drafts(headers: &HeaderMap, body: &[u8], max: usize) -> Result<Vec<Draft>, ApiError> {
    let kind = body::media_type(headers);
    if let Some(events) = cloudevents::read(headers, &kind, body)? {
        check_count(events.len(), max)?;
        return events.into_iter().enumerate().map(|(at, event)| adapted(event, at)).collect();
    }
    let drafts = match read_at_once(&kind, body) {
        Some(events) => events.into_iter().map(|Object(event)| Draft::Read(event)).collect(),
        None => read_as_sent(&kind, body)?,
    };
    check_count(drafts.len(), max)?;
    Ok(drafts)
}

/// Events that are right and have no names of their own; none where anything asks for a closer look.
fn read_at_once(kind: &str, body: &[u8]) -> Option<Vec<Object<NewEvent>>> {
    let events: Vec<Object<NewEvent>> = if kind == LINES {
        lines(body).map(serde_json::from_slice).collect::<Result<_, _>>().ok()?
    } else if !body::is_json(kind) {
        return None;
    } else if body.trim_ascii_start().starts_with(b"[") {
        serde_json::from_slice(body).ok()?
    } else {
        vec![serde_json::from_slice(body).ok()?]
    };
    events.iter().all(|Object(event)| event.name().is_none()).then_some(events)
}

fn read_as_sent(kind: &str, body: &[u8]) -> Result<Vec<Draft>, ApiError> {
    let sent: Vec<Value> = match kind {
        LINES => lines(body).map(body::read).collect::<Result<_, _>>()?,
        kind if body::is_json(kind) => match body::read(body)? {
            Value::Array(sent) => sent,
            one => vec![one],
        },
        kind => return Err(body::unsupported(kind, "application/json or application/x-ndjson")),
    };
    Ok(sent.into_iter().map(|event| Draft::Sent(event, None)).collect())
}

/// A CloudEvent as an event of ours.
fn adapted(event: Value, at: usize) -> Result<Draft, ApiError> {
    let content = fingerprint(&event);
    let (event, id) = cloudevents::into_draft(event).map_err(|error| error.within(at))?;
    Ok(Draft::Sent(event, Some(Brought { id, content })))
}

fn lines(body: &[u8]) -> impl Iterator<Item = &[u8]> {
    body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty())
}

fn check_count(count: usize, max: usize) -> Result<(), ApiError> {
    match (1..=max).contains(&count) {
        true => Ok(()),
        false => Err(ApiError::invalid("events", format!("{count} events came; 1 to {max} are allowed in one call"))),
    }
}

/// A hash of an event as it came; key order does not matter. It only compares what one sender sent twice.
fn fingerprint(draft: &Value) -> [u8; 16] {
    let mut hasher = SipHasher13::new();
    hasher.write(bellwire_core::event::canonical_json(draft).as_bytes());
    hasher.finish128().as_u128().to_le_bytes()
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;
    use axum::http::header::CONTENT_TYPE;

    use super::*;

    const EVENT: &str =
        r#"{"type":"cli.event","source":"shell","severity":"info","conversation_id":"chat","payload":{}}"#;

    fn read(body: &str) -> Vec<Draft> {
        drafts(&HeaderMap::new(), body.as_bytes(), 10).unwrap_or_else(|error| panic!("{}", error.message))
    }

    #[test]
    fn what_is_right_and_has_no_name_is_read_at_once() {
        let is_read_at_once = |body: &str| read(body).iter().all(|draft| matches!(draft, Draft::Read(_)));
        assert!(is_read_at_once(EVENT));
        assert!(is_read_at_once(&format!(" [{EVENT}, {EVENT}]")));
        assert!(!is_read_at_once(&EVENT.replacen('{', r#"{"id":"mine","#, 1)));
    }

    #[test]
    fn a_field_that_is_there_twice_counts_as_it_was_written_last() {
        let draft = read(&EVENT.replacen('{', r#"{"source":"before","#, 1)).remove(0);
        let (event, _) = draft.read().unwrap_or_else(|error| panic!("{}", error.message));
        let event = event.into_event(bellwire_core::Time::ZERO).expect("it is right");
        assert_eq!(event.source().as_str(), "shell");
    }

    #[test]
    fn both_readings_give_the_same_event() {
        let all = r#"{"type":"a.b","source":"s","severity":"error","timestamp":"2026-01-03T15:30:00.5Z","agent":"sub",
            "payload":{"b":[1,2.5,-0,1e15,null,{"x":"\u00e9\n"}],"a":{}},"dedupe_key":"k","conversation_id":"c","user_id":"u",
            "correlation_id":"w","id":null}"#;
        for body in [EVENT, all] {
            let [once, twice] =
                [read(body), read_as_sent("", body.as_bytes()).unwrap_or_default()].map(|mut drafts| {
                    let (event, brought) = drafts.remove(0).read().unwrap_or_else(|error| panic!("{}", error.message));
                    assert_eq!(brought, None);
                    event.into_event(bellwire_core::Time::ZERO).expect("it is right")
                });
            assert_eq!(once, twice);
        }
    }

    #[test]
    fn both_readings_refuse_the_same_in_the_same_words() {
        let deep = EVENT.replace("{}", &format!("{{\"a\":{}{}}}", "[".repeat(129), "]".repeat(129)));
        let bodies = [
            "",
            " ",
            "null",
            "7",
            "[]",
            "{",
            r#"["type", "source"]"#,
            r#"{"type":"cli.event"}"#,
            &format!("\u{feff}{EVENT}"),
            &format!("{EVENT} {EVENT}"),
            &format!("[[{EVENT}]]"),
            &format!("[{EVENT}, 1]"),
            &EVENT.replace("info", "loud"),
            &EVENT.replace("{}", "[]"),
            &EVENT.replace("{}", "null"),
            &EVENT.replace("\"chat\"", "\"\""),
            &EVENT.replacen('{', r#"{"colour":"red","#, 1),
            &EVENT.replacen('{', r#"{"timestamp":"yesterday","#, 1),
            &deep,
        ];
        let refused = |drafts: Result<Vec<Draft>, ApiError>| {
            let error = drafts.and_then(events).err()?;
            Some((error.status, error.field, error.message))
        };
        for body in bodies {
            let as_json = drafts(&HeaderMap::new(), body.as_bytes(), 10);
            let wrong = refused(as_json);
            assert!(wrong.is_some(), "{body} is wrong");
            assert_eq!(wrong, refused(read_as_sent("", body.as_bytes())), "{body}");
            let ndjson = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static(LINES))]);
            let as_lines = drafts(&ndjson, body.as_bytes(), 10);
            assert_eq!(refused(as_lines), refused(read_as_sent(LINES, body.as_bytes())), "{body}");
        }
    }

    /// The events that drafts come to, all or none.
    fn events(drafts: Vec<Draft>) -> Result<Vec<bellwire_core::Event>, ApiError> {
        check_count(drafts.len(), 10)?;
        let event = |draft: Draft| Ok(draft.read()?.0.into_event(bellwire_core::Time::ZERO)?);
        drafts.into_iter().map(event).collect()
    }
}

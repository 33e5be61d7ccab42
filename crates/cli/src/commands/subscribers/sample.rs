//! Made-up events on which templates are tried.

use std::sync::Arc;

use bellwire_core::event::{KNOWN_TYPES, KnownType, TypePattern};
use bellwire_core::subscriber::Subscriber;
use bellwire_core::{Event, EventType, Severity, Time};
use serde_json::{Map, Value, json};

/// Events that the subscriber listens for, with every payload field that its templates read. They are numbered, so that
/// they differ.
pub(super) fn samples(one: &Subscriber, count: usize) -> Vec<Arc<Event>> {
    let made = |texts: bool| -> Vec<_> {
        let event = |number| Arc::new(sample(one, number, texts).at(sample_time().plus(number as u64 * 1000)));
        (1..=count).map(event).collect()
    };
    // A field of unknown meaning is a text, or a number where the template needs one.
    let texts = made(true);
    match super::check::first_error(one, &texts).is_none() {
        true => texts,
        false => Some(made(false)).filter(|numbers| super::check::first_error(one, numbers).is_none()).unwrap_or(texts),
    }
}

/// An event whose payload has only the fields that known types have too, and none of the subscriber's own; `None` where
/// only the hub publishes such events.
pub(super) fn sparse(one: &Subscriber) -> Option<Arc<Event>> {
    let is_known = |name: &str| KNOWN_TYPES.iter().flat_map(|known| known.fields).any(|field| field.name == name);
    let fields = one.shown_fields().unwrap_or_default();
    let payload = fields.iter().filter(|name| is_known(name)).map(|name| (name.to_string(), made_up(name, 1, true)));
    let event = event(one, known_type(one), payload.collect())?;
    Some(Arc::new(event.at(sample_time())))
}

pub(super) fn sample_time() -> Time {
    "2026-01-03T15:30:00Z".parse().expect("the constant is a time")
}

/// The event as it would be published.
pub(super) fn as_json(event: &Event) -> Value {
    json!({
        "type": event.kind().as_str(), "source": event.source().as_str(), "severity": event.severity().as_str(),
        "payload": event.payload().as_map(),
    })
}

fn sample(one: &Subscriber, number: usize, texts: bool) -> Event {
    let known = known_type(one);
    let usual = known.map(|known| known.sample(number));
    let mut payload = usual.as_ref().map(|event| event.payload().as_map().clone()).unwrap_or_default();
    let alternatives = |name: &str| known.is_some_and(|known| known.fields.iter().any(|field| field.name == name));
    for field in one.shown_fields().unwrap_or_else(|| vec!["message".into()]) {
        // The fields of a known type are the usual ones; the others stand in for them.
        let stands_in =
            usual.is_some() && (alternatives(&field) || ["message", "error_message", "text"].contains(&&*field));
        if !stands_in && !payload.contains_key(&*field) {
            payload.insert(field.to_string(), made_up(&field, number, texts));
        }
    }
    event(one, known, payload).or(usual).expect("an event of the hub itself has a known type")
}

/// The value that a known type has in this field, or one that shows the field's name.
fn made_up(name: &str, number: usize, text: bool) -> Value {
    let known = KNOWN_TYPES.iter().flat_map(|known| known.fields).find(|field| field.name == name);
    match known.map(bellwire_core::event::PayloadField::value) {
        Some(value) => value,
        None if text => json!(format!("{} {number}", name.replace('_', " "))),
        None => json!(10 + number),
    }
}

/// `None` for the types and sources that only the hub itself may use.
fn event(one: &Subscriber, known: Option<&KnownType>, payload: Map<String, Value>) -> Option<Event> {
    let kind = known.map_or_else(|| made_up_type(one), |known| known.name.to_owned());
    let listed = one.sources.as_ref().and_then(|sources| sources.first()).map(|source| source.as_str());
    let source = listed.or(known.map(|known| known.source)).unwrap_or("sample");
    let severity = known.map_or(Severity::Info, |known| known.severity).max(one.severity_filter);
    Event::new(&kind, source, severity, Value::Object(payload)).ok()
}

/// The first known type that the subscriber listens for.
fn known_type(one: &Subscriber) -> Option<&'static KnownType> {
    let matches = |pattern: &TypePattern, name: &str| EventType::parse(name).is_ok_and(|kind| pattern.matches(&kind));
    one.types.iter().find_map(|pattern| KNOWN_TYPES.iter().find(|known| matches(pattern, known.name)))
}

fn made_up_type(one: &Subscriber) -> String {
    match one.types.first() {
        Some(TypePattern::Exact(kind)) => kind.to_string(),
        Some(TypePattern::Below(prefix)) => format!("{prefix}sample"),
        Some(TypePattern::Form { parts, below }) => {
            format!("{}{}", parts.replace('*', "sample"), if *below { ".sample" } else { "" })
        }
        None => "sample.event".to_owned(),
    }
}

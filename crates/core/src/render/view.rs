//! Events as a template sees them: values are copied only when they are read, and every read spends the budget.

use std::fmt;
use std::sync::Arc;

use minijinja::value::{Enumerator, Object, ObjectRepr, Value};
use serde_json::{Map, Value as Json};

use super::render_budget::RenderBudget;
use super::template::TemplateEvent;
use crate::event::{CanonicalJson, Event, cut_display};

/// The most elements of a list or object that a template sees.
const ELEMENTS_MAX: usize = 100;

/// One event, as a template object.
pub(super) struct EventView {
    event: Arc<Event>,
    repeats: u32,
    budget: Arc<RenderBudget>,
}

impl EventView {
    pub(super) fn new(shown: &TemplateEvent, budget: &Arc<RenderBudget>) -> Self {
        Self { event: shown.event.clone(), repeats: shown.repeats, budget: budget.clone() }
    }

    fn message(&self) -> String {
        self.budget.read(self.event.payload().as_map().len());
        self.event.message()
    }
}

impl Object for EventView {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        let event = &self.event;
        if !self.budget.spend(1) {
            return None;
        }
        Some(match key {
            "id" => event.id().to_string().into(),
            "type" => event.kind().as_str().into(),
            "verb" => event.kind().verb().into(),
            "source" => event.source().as_str().into(),
            "severity" => event.severity().as_str().into(),
            "timestamp" => event.timestamp().to_string().into(),
            "time" => event.timestamp().clock().into(),
            "message" => self.message().into(),
            "payload" => Value::from_object(JsonView::payload(event.clone(), self.budget.clone())),
            "repeats" => self.repeats.into(),
            _ => return None,
        })
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&[
            "id",
            "type",
            "verb",
            "source",
            "severity",
            "timestamp",
            "time",
            "message",
            "payload",
            "repeats",
        ])
    }

    /// An event without a field name renders as its message.
    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

/// The engine uses this for an event inside a list.
impl fmt::Debug for EventView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message())
    }
}

/// An object or list in an event's payload. Rendered as a whole, it is canonical JSON.
pub(super) struct JsonView {
    place: Place,
    depth: usize,
    is_list: bool,
    budget: Arc<RenderBudget>,
}

/// The path of a value in a payload. It is resolved at every read, because a part of a JSON value cannot be shared.
enum Place {
    Payload(Arc<Event>),
    Key(Arc<JsonView>, Box<str>),
    Index(Arc<JsonView>, usize),
}

enum Node<'a> {
    Object(&'a Map<String, Json>),
    List(&'a [Json]),
}

impl JsonView {
    fn payload(event: Arc<Event>, budget: Arc<RenderBudget>) -> Self {
        Self { place: Place::Payload(event), depth: 0, is_list: false, budget }
    }

    fn node(&self) -> Option<Node<'_>> {
        let json = match (&self.place, self.parent_node()) {
            (Place::Payload(event), _) => return Some(Node::Object(event.payload().as_map())),
            (Place::Key(_, key), Some(Node::Object(map))) => map.get(&**key)?,
            (Place::Index(_, at), Some(Node::List(items))) => items.get(*at)?,
            _ => return None,
        };
        match json {
            Json::Object(map) => Some(Node::Object(map)),
            Json::Array(items) => Some(Node::List(items)),
            _ => None,
        }
    }

    fn parent_node(&self) -> Option<Node<'_>> {
        match &self.place {
            Place::Payload(_) => None,
            Place::Key(parent, _) | Place::Index(parent, _) => parent.node(),
        }
    }

    /// A child value: a scalar, or a view that resolves later.
    fn child(self: &Arc<Self>, json: &Json, place: impl FnOnce(Arc<Self>) -> Place) -> Value {
        match json {
            Json::Null => Value::from(()),
            Json::Bool(bit) => Value::from(*bit),
            Json::Number(number) => match (number.as_i64(), number.as_u64()) {
                (Some(signed), _) => Value::from(signed),
                (None, Some(unsigned)) => Value::from(unsigned),
                (None, None) => Value::from(number.as_f64().unwrap_or(0.0)),
            },
            Json::String(text) => {
                let text = clipped(text, self.budget.text_max);
                self.budget.read(text.len());
                Value::from(text)
            }
            Json::Array(_) | Json::Object(_) => Value::from_object(Self {
                place: place(self.clone()),
                depth: self.depth + 1,
                is_list: json.is_array(),
                budget: self.budget.clone(),
            }),
        }
    }

    fn length(&self) -> usize {
        let length = match self.node() {
            Some(Node::Object(map)) => map.len(),
            Some(Node::List(items)) => items.len(),
            None => 0,
        };
        length.min(ELEMENTS_MAX)
    }

    /// Spends the budget for resolving the path, which every read does anew.
    fn spend_lookup(&self) -> bool {
        self.budget.spend(1 + self.depth / 4)
    }
}

impl Object for JsonView {
    fn repr(self: &Arc<Self>) -> ObjectRepr {
        if self.is_list { ObjectRepr::Seq } else { ObjectRepr::Map }
    }

    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        if !self.spend_lookup() {
            return None;
        }
        match self.node()? {
            Node::Object(map) => {
                let key = key.as_str()?;
                Some(self.child(map.get(key)?, |parent| Place::Key(parent, key.into())))
            }
            Node::List(items) => {
                let at = key.as_usize().filter(|at| *at < ELEMENTS_MAX)?;
                Some(self.child(items.get(at)?, |parent| Place::Index(parent, at)))
            }
        }
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        match self.node() {
            _ if !self.spend_lookup() => Enumerator::Empty,
            Some(Node::Object(map)) => {
                let keys = map.keys().take(ELEMENTS_MAX);
                self.budget.read(keys.clone().map(|key| BYTES_PER_KEY + key.len()).sum());
                Enumerator::Values(keys.map(|key| Value::from(key.as_str())).collect())
            }
            Some(Node::List(_)) => Enumerator::Seq(self.length()),
            None => Enumerator::Empty,
        }
    }

    fn enumerator_len(self: &Arc<Self>) -> Option<usize> {
        self.spend_lookup();
        Some(self.length())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self, f)
    }
}

/// What returning a key costs besides its text.
const BYTES_PER_KEY: usize = 32;

/// The engine uses this for a view inside a list.
impl fmt::Debug for JsonView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entries = match self.node() {
            Some(Node::Object(map)) => map.len(),
            _ => 0,
        };
        let max = self.budget.text_max;
        if !self.budget.read(max + entries) {
            return Ok(());
        }
        match self.node() {
            Some(Node::Object(map)) => f.write_str(&cut_display(CanonicalJson::Object(map), max)),
            Some(Node::List(items)) => f.write_str(&cut_display(CanonicalJson::List(items), max)),
            None => Ok(()),
        }
    }
}

/// The first `max` characters of a text, and the number of characters cut off.
pub(super) fn clipped(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let end = text.char_indices().nth(max).map_or(text.len(), |(end, _)| end);
    match text[end..].chars().count() {
        0 => text.to_owned(),
        left => format!("{}… ({left} characters left out)", &text[..end]),
    }
}

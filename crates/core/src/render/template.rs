//! A subscriber's words: a sandboxed Jinja template whose every interpolated value stays a value.
//!
//! Templates are an operator's configuration, and still nothing they do may hurt: instructions are limited by fuel,
//! output by a counting writer, and memory by what the language here cannot express. There are no macros, includes,
//! recursive loops, captured blocks or namespaces, no filter makes its input larger, and the operators that do (`~`, `+`)
//! may be used a few times only.

use std::fmt;
use std::io;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::{Enumerator, Kwargs, Object, Value};
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior, filters};
use serde_json::{Map, Number, Value as Json};

use super::marked;
use super::toon::{Document, Scalar};
use crate::event::{Event, canonical_json, cut};
use crate::subscriber::Subscriber;

/// The longest template.
const SOURCE_MAX: usize = 16 * 1024;
/// The most instructions one rendering may take.
const FUEL: u64 = 20_000;
/// The deepest nesting of expressions and blocks.
const DEPTH_MAX: usize = 32;
/// The most bytes one rendering may print.
const OUTPUT_MAX: usize = 256 * 1024;
/// The longest text one value may print; a block holds no more.
const TEXT_MAX: usize = 4096;
/// The most elements of a list or object a template sees.
const ELEMENTS_MAX: usize = 100;
/// How often a template may join texts; each time can double what is in memory.
const JOINS_MAX: usize = 4;
/// The only tags there are.
const TAGS: [&str; 9] = ["for", "else", "endfor", "if", "elif", "endif", "set", "break", "continue"];

/// A template, checked and compiled.
#[derive(Clone)]
pub struct Template {
    environment: Arc<Environment<'static>>,
}

/// What is wrong with a template, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// The line, counted from 1; 0 where the whole template is meant.
    pub line: usize,
    /// What is wrong.
    pub message: String,
}

impl fmt::Display for TemplateError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.message),
            line => write!(f, "line {line}: {}", self.message),
        }
    }
}

impl std::error::Error for TemplateError {}

/// One event as a template sees it: `id`, `type`, `source`, `severity`, `timestamp`, `time` (15:30:01), `message`,
/// `payload`, and `repeats`, how many more of it were counted.
#[derive(Clone, Debug)]
pub struct TemplateEvent {
    /// The event.
    pub event: Arc<Event>,
    /// How many repeats of it were merged.
    pub repeats: u32,
}

impl Template {
    /// Checks and compiles a template.
    pub fn compile(source: &str) -> Result<Self, TemplateError> {
        check(source)?;
        let mut environment = environment();
        environment
            .add_template_owned(NAME, source.to_owned())
            .map_err(|error| TemplateError { line: error.line().unwrap_or(0), message: describe(&error) })?;
        Ok(Self { environment: Arc::new(environment) })
    }

    /// Words these events; the error says why the template could not.
    pub fn render(&self, subscriber: &Subscriber, events: &[TemplateEvent]) -> Result<Document, String> {
        let duplicates: u64 = events.iter().map(|event| u64::from(event.repeats)).sum();
        let context = Value::from_pairs([
            ("events", Value::from(events.iter().map(|event| Value::from_object(event.clone())).collect::<Vec<_>>())),
            ("count", Value::from(events.len())),
            ("duplicates", Value::from(duplicates)),
            ("subscriber", Value::from_pairs([("id", subscriber.id.as_str()), ("name", subscriber.name.as_str())])),
        ]);
        let template = self.environment.get_template(NAME).map_err(|error| describe(&error))?;
        let mut output = Bounded(Vec::new());
        template.render_captured_to(context, &mut output).map_err(|error| located(&error))?;
        let output = String::from_utf8(output.0).map_err(|_| "printed something that is not text".to_owned())?;
        marked::parse(&output)
    }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Template(…)")
    }
}

const NAME: &str = "template";

/// Refuses what could take memory without limit, before anything runs.
fn check(source: &str) -> Result<(), TemplateError> {
    let whole = |message: String| Err(TemplateError { line: 0, message });
    if source.len() > SOURCE_MAX {
        return whole(format!("has {} bytes; at most {SOURCE_MAX} are allowed", source.len()));
    }
    if let Some(control) = source.chars().find(|c| c.is_control() && !matches!(c, '\n' | '\r' | '\t')) {
        return whole(format!("contains the control character {control:?}"));
    }
    let mut joins = 0;
    for (line, code) in tags(source) {
        let fail = |message: String| Err(TemplateError { line, message });
        if let Tag::Block(code) = code {
            let word = code.split(|c: char| !c.is_ascii_alphanumeric() && c != '_').next().unwrap_or_default();
            if !TAGS.contains(&word) {
                return fail(format!("the tag '{word}' is not available; there are {}", TAGS.join(", ")));
            }
            if word == "set" && !code.contains('=') {
                return fail("a set block is not available; write {% set name = value %}".into());
            }
            if word == "for" && code.split_ascii_whitespace().any(|word| word == "recursive") {
                return fail("recursive loops are not available".into());
            }
        }
        let (Tag::Block(code) | Tag::Print(code)) = code;
        if code.contains('*') {
            return fail("multiplication is not available; for a share use {{ part|percent(whole) }}".into());
        }
        joins += code.matches(['~', '+']).count();
        if joins > JOINS_MAX {
            return fail(format!("~ and + may be used {JOINS_MAX} times in a template"));
        }
    }
    Ok(())
}

#[derive(Copy, Clone)]
enum Tag<'a> {
    Block(&'a str),
    Print(&'a str),
}

/// Every `{% … %}` and `{{ … }}` with its line. It may see a tag where the language sees a comment or a text; that only
/// makes it stricter.
fn tags(source: &str) -> impl Iterator<Item = (usize, Tag<'_>)> {
    let mut position = 0;
    std::iter::from_fn(move || {
        let open = position + source[position..].find("{%").into_iter().chain(source[position..].find("{{")).min()?;
        let block = source[open..].starts_with("{%");
        let end = source[open..].find(if block { "%}" } else { "}}" }).map_or(source.len(), |end| open + end);
        position = open + 2;
        let line = source[..open].matches('\n').count() + 1;
        let code =
            source[open + 2..end.max(open + 2)].trim_start_matches(['-', '+']).trim_end_matches(['-', '+']).trim();
        Some((line, if block { Tag::Block(code) } else { Tag::Print(code) }))
    })
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::empty();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the default delimiters with blank trimming are valid"));
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(DEPTH_MAX);
    environment.set_formatter(|out, _, value| {
        if value.is_undefined() {
            return Err(ErrorKind::UndefinedError.into());
        }
        marked::write_value(&scalar(value), out).map_err(|_| too_much())
    });
    environment.add_filter("default", filters::default);
    environment.add_filter("length", filters::length);
    environment.add_filter("upper", filters::upper);
    environment.add_filter("lower", filters::lower);
    environment.add_filter("trim", filters::trim);
    environment.add_filter("first", filters::first);
    environment.add_filter("last", filters::last);
    environment.add_filter("round", filters::round);
    environment.add_filter("join", join);
    environment.add_filter("cut", |text: &str, length: usize| cut(text, length.min(TEXT_MAX)));
    environment.add_filter("percent", percent);
    environment.add_filter("plural", plural);
    environment.add_filter("counts", counts);
    environment.add_test("defined", minijinja::tests::is_defined);
    environment.add_test("none", minijinja::tests::is_none);
    environment
}

/// The elements with a separator between them, cut where it gets long.
fn join(values: Value, separator: &str) -> Result<String, Error> {
    let mut text = String::new();
    for (number, value) in values.try_iter()?.enumerate() {
        if number > 0 {
            text.push_str(separator);
        }
        text.push_str(&text_of(&value));
        if text.len() > TEXT_MAX {
            return Ok(cut(&text, TEXT_MAX));
        }
    }
    Ok(text)
}

/// How many percent of the whole a part is, rounded down.
fn percent(part: f64, whole: f64) -> Result<i64, Error> {
    match whole > 0.0 && part >= 0.0 {
        true => Ok((part * 100.0 / whole) as i64),
        false => Err(Error::new(ErrorKind::InvalidOperation, "percent needs a whole above zero")),
    }
}

/// `1 file`, `2 files`.
fn plural(count: i64, one: &str, many: &str) -> String {
    format!("{count} {}", cut(if count == 1 { one } else { many }, TEXT_MAX))
}

/// How often each value of a field occurs among the events, as `[name, times]`, most frequent first.
fn counts(values: Value, options: Kwargs) -> Result<Vec<Value>, Error> {
    let path: &str = options.get("by")?;
    options.assert_all_used()?;
    let mut counted: Vec<(String, u64)> = Vec::new();
    for value in values.try_iter()? {
        let repeats = value.get_attr("repeats").ok().and_then(|repeats| repeats.as_i64()).unwrap_or(0);
        let times = 1 + u64::try_from(repeats).unwrap_or(0);
        let field = path.split('.').try_fold(value, |value, part| value.get_attr(part))?;
        let name = if field.is_undefined() { "other".to_owned() } else { text_of(&field) };
        match counted.iter_mut().find(|(known, _)| *known == name) {
            Some((_, count)) => *count += times,
            None => counted.push((name, times)),
        }
    }
    counted.sort_by_key(|(_, times)| std::cmp::Reverse(*times));
    Ok(counted.into_iter().map(|(name, times)| Value::from(vec![Value::from(name), Value::from(times)])).collect())
}

/// What an interpolated value is in a cell: scalars keep their type, everything else is its JSON as text.
fn scalar(value: &Value) -> Scalar {
    if value.is_none() {
        return Scalar::Null;
    }
    if let Some(text) = value.as_str() {
        return Scalar::Text(clipped(text));
    }
    match value.kind() {
        minijinja::value::ValueKind::Bool => Scalar::Bool(value.is_true()),
        minijinja::value::ValueKind::Number => {
            let float = || f64::try_from(value.clone()).ok().and_then(Number::from_f64);
            value.as_i64().map(Number::from).or_else(float).map_or(Scalar::Null, Scalar::Number)
        }
        _ => Scalar::Text(clipped(&value.to_string())),
    }
}

fn text_of(value: &Value) -> String {
    match value.as_str() {
        Some(text) => clipped(text),
        None => clipped(&value.to_string()),
    }
}

fn clipped(text: &str) -> String {
    match text.len() > TEXT_MAX {
        true => {
            let kept = cut(text, TEXT_MAX);
            let left = text.chars().count() - TEXT_MAX.min(text.chars().count());
            if left == 0 { kept } else { format!("{kept} ({left} characters left out)") }
        }
        false => text.to_owned(),
    }
}

impl Object for TemplateEvent {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        let event = &self.event;
        Some(match key {
            "id" => event.id().to_string().into(),
            "type" => event.kind().as_str().into(),
            "source" => event.source().as_str().into(),
            "severity" => event.severity().as_str().into(),
            "timestamp" => event.timestamp().to_string().into(),
            "time" => event.timestamp().clock().into(),
            "message" => event.message().into(),
            "payload" => Value::from_object(PayloadView(event.clone())),
            "repeats" => self.repeats.into(),
            _ => return None,
        })
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Str(&["id", "type", "source", "severity", "timestamp", "time", "message", "payload", "repeats"])
    }

    /// An event printed as it is says its message; its parts are there to be named.
    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.event.message())
    }
}

/// An event's payload, converted only where a template looks.
#[derive(Debug)]
struct PayloadView(Arc<Event>);

impl Object for PayloadView {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.get_value_by_str(key.as_str()?)
    }

    fn get_value_by_str(self: &Arc<Self>, key: &str) -> Option<Value> {
        self.0.payload().get(key).map(value_of)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        let keys = self.0.payload().as_map().keys().take(ELEMENTS_MAX);
        Enumerator::Values(keys.map(|key| Value::from(key.as_str())).collect())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&cut(&canonical_json(&Json::Object(self.0.payload().as_map().clone())), TEXT_MAX))
    }
}

/// JSON as a template sees it: long texts and lists are cut, because no block could hold them.
fn value_of(json: &Json) -> Value {
    match json {
        Json::Null => Value::from(()),
        Json::Bool(bit) => Value::from(*bit),
        Json::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(signed), _) => Value::from(signed),
            (None, Some(unsigned)) => Value::from(unsigned),
            (None, None) => Value::from(number.as_f64().unwrap_or(0.0)),
        },
        Json::String(text) => Value::from(clipped(text)),
        Json::Array(items) => Value::from(items.iter().take(ELEMENTS_MAX).map(value_of).collect::<Vec<_>>()),
        Json::Object(map) => Value::from_object(MapView(map.clone())),
    }
}

/// A nested object; printed as it is, it is its canonical JSON.
#[derive(Debug)]
struct MapView(Map<String, Json>);

impl Object for MapView {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_str()?).map(value_of)
    }

    fn enumerate(self: &Arc<Self>) -> Enumerator {
        Enumerator::Values(self.0.keys().take(ELEMENTS_MAX).map(|key| Value::from(key.as_str())).collect())
    }

    fn render(self: &Arc<Self>, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&cut(&canonical_json(&Json::Object(self.0.clone())), TEXT_MAX))
    }
}

/// A buffer that refuses to grow beyond its bound.
struct Bounded(Vec<u8>);

impl io::Write for Bounded {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.0.len() + bytes.len() > OUTPUT_MAX {
            return Err(io::Error::other(format!("printed more than {OUTPUT_MAX} bytes")));
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn too_much() -> Error {
    Error::new(ErrorKind::WriteFailure, format!("printed more than {OUTPUT_MAX} bytes"))
}

fn located(error: &Error) -> String {
    match error.line() {
        Some(line) => format!("line {line}: {}", describe(error)),
        None => describe(error),
    }
}

fn describe(error: &Error) -> String {
    match (error.kind(), error.detail()) {
        (ErrorKind::UndefinedError, _) => "it prints a value that is missing; give it a default".to_owned(),
        (kind, Some(detail)) => format!("{kind}: {detail}"),
        (kind, None) => kind.to_string(),
    }
}

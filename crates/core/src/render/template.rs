//! A subscriber's template: sandboxed Jinja in which every interpolated value stays a value.
//!
//! Operators write templates, and a mistake in one must not harm the hub: fuel limits the instructions,
//! [`RenderBudget`] the data read, a bounded buffer the output, and the restricted language the memory.

use std::fmt;
use std::io;
use std::sync::Arc;

use minijinja::syntax::SyntaxConfig;
use minijinja::value::Value;
use minijinja::{Environment, Error, ErrorKind, UndefinedBehavior};

use super::render_budget::RenderBudget;
use super::toon::Document;
use super::view::EventView;
use super::{fields, filters, language, marked};
use crate::event::{Event, cut};
use crate::subscriber::Subscriber;

/// The most engine instructions in one rendering.
const FUEL: u64 = 20_000;
/// The deepest nesting of expressions and blocks.
const DEPTH_MAX: usize = 32;
/// The most bytes of output in one rendering.
const OUTPUT_MAX: usize = 256 * 1024;
/// The longest error message, in characters; it may quote the template, and no values of events.
const PROBLEM_MAX: usize = 300;
/// The most characters of a template's line in an error message.
const LINE_MAX: usize = 120;

/// A template, checked and compiled.
#[derive(Clone)]
pub struct Template {
    path: Arc<str>,
    environment: Arc<Environment<'static>>,
    fields: Option<Arc<[Box<str>]>>,
}

/// What is wrong with a template, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplateError {
    /// The line, counted from 1; 0 for the whole template.
    pub line: usize,
    /// The reason, for the template's author.
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

/// One event as a template sees it: `id`, `type`, `verb` (the last part of the type), `source`, `severity`,
/// `timestamp`, `time` (15:30:01), `message`, `payload`, and `repeats`, the number of repeats counted besides.
#[derive(Clone, Debug)]
pub struct TemplateEvent {
    /// The event that fills the fields.
    pub event: Arc<Event>,
    /// How many repeats of it were merged.
    pub repeats: u32,
}

impl Template {
    /// Checks and compiles a template. `path` is its file as the subscriber names it, for error messages.
    pub fn compile(path: &str, source: &str) -> Result<Self, TemplateError> {
        language::check(source)?;
        let mut environment = environment();
        environment
            .add_template_owned(NAME, source.to_owned())
            .map_err(|error| TemplateError { line: error.line().unwrap_or(0), message: describe(&error) })?;
        let fields = fields::payload_fields(language::tags(source)).map(Into::into);
        Ok(Self { path: path.into(), environment: Arc::new(environment), fields })
    }

    /// Its file, as the subscriber names it.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The payload fields that it reads, in the order of their first use; `None` = possibly all of them.
    pub fn payload_fields(&self) -> Option<&Arc<[Box<str>]>> {
        self.fields.as_ref()
    }

    /// Renders these events as a TOON document; the error says why the template failed, and where: `ci.j2:3: …`.
    pub fn render(&self, subscriber: &Subscriber, events: &[TemplateEvent]) -> Result<Document, String> {
        let output = self.output(subscriber, events);
        output.and_then(|output| marked::parse(&output).map_err(whole)).map_err(|error| self.describe(&error))
    }

    /// Renders these events as plain text for a person: nothing in it is structure. The error says why the template
    /// failed.
    pub fn render_text(&self, subscriber: &Subscriber, events: &[TemplateEvent]) -> Result<String, String> {
        let output = self.output(subscriber, events);
        output.and_then(|output| marked::plain_text(&output).map_err(whole)).map_err(|error| self.describe(&error))
    }

    /// What the template prints, with every value still marked.
    fn output(&self, subscriber: &Subscriber, events: &[TemplateEvent]) -> Result<String, TemplateError> {
        let budget = RenderBudget::new(events);
        let template = self.environment.get_template(NAME).map_err(|error| whole(describe(&error)))?;
        let mut output = BoundedBuffer::default();
        let rendered = template.render_captured_to(context(subscriber, events, &budget), &mut output);
        if budget.is_spent() {
            return Err(whole(RenderBudget::SPENT.to_owned()));
        }
        if output.is_full {
            return Err(whole(format!("it prints more than {OUTPUT_MAX} bytes")));
        }
        rendered.map_err(|error| located(&error, template.source()))?;
        String::from_utf8(output.bytes).map_err(|_| whole("printed something that is not text".to_owned()))
    }

    /// The error with the template's file and line, within [`PROBLEM_MAX`] characters.
    fn describe(&self, TemplateError { line, message }: &TemplateError) -> String {
        let path = cut(&self.path, LINE_MAX);
        let text = if *line == 0 { format!("{path}: {message}") } else { format!("{path}:{line}: {message}") };
        cut(&text, PROBLEM_MAX)
    }
}

/// An error that belongs to no line.
fn whole(message: String) -> TemplateError {
    TemplateError { line: 0, message }
}

impl fmt::Debug for Template {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Template(…)")
    }
}

const NAME: &str = "template";

fn context(subscriber: &Subscriber, events: &[TemplateEvent], budget: &Arc<RenderBudget>) -> Value {
    let duplicates: u64 = events.iter().map(|event| u64::from(event.repeats)).sum();
    let views: Vec<_> = events.iter().map(|event| Value::from_object(EventView::new(event, budget))).collect();
    Value::from_pairs([
        ("events", Value::from(views)),
        ("count", Value::from(events.len())),
        ("duplicates", Value::from(duplicates)),
        ("subscriber", Value::from_pairs([("id", subscriber.id.as_str()), ("name", subscriber.name.as_str())])),
        (RenderBudget::NAME, Value::from_dyn_object(budget.clone())),
    ])
}

fn environment() -> Environment<'static> {
    let mut environment = Environment::empty();
    let syntax = SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build();
    environment.set_syntax(syntax.expect("the default delimiters with blank trimming are valid"));
    environment.set_undefined_behavior(UndefinedBehavior::SemiStrict);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(DEPTH_MAX);
    environment.set_formatter(|out, state, value| {
        let scalar = filters::scalar(state, value)?;
        marked::write_value(&scalar, out).map_err(|_| ErrorKind::WriteFailure.into())
    });
    filters::add_to(&mut environment);
    environment
}

/// A buffer that returns an error instead of growing beyond its bound.
#[derive(Default)]
struct BoundedBuffer {
    bytes: Vec<u8>,
    is_full: bool,
}

impl io::Write for BoundedBuffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.is_full |= self.bytes.len() + bytes.len() > OUTPUT_MAX;
        if self.is_full {
            return Err(io::ErrorKind::StorageFull.into());
        }
        self.bytes.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn located(error: &Error, source: &str) -> TemplateError {
    let line = error.line().unwrap_or(0);
    let text = line.checked_sub(1).and_then(|index| source.lines().nth(index));
    let message = match (error.kind(), text) {
        // The engine does not say which value it is, so the line is quoted.
        (ErrorKind::UndefinedError, Some(text)) => {
            format!("a value is missing in `{}`; give it a default", cut(text.trim(), LINE_MAX))
        }
        _ => describe(error),
    };
    TemplateError { line, message }
}

fn describe(error: &Error) -> String {
    match (error.kind(), error.detail()) {
        (ErrorKind::UndefinedError, _) => "it prints a value that is missing; give it a default".to_owned(),
        (kind, Some(detail)) => format!("{kind}: {detail}"),
        (kind, None) => kind.to_string(),
    }
}

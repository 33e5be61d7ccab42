use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

use serde_json::Value;

use crate::Time;
use crate::conversation::{CallOutcome, ObservedCall};
use crate::event::{AgentName, Event, Severity};
use crate::inject::{Inject, InjectLimits, Shape, Style};
use crate::subscriber::{InjectionPoint, SubscriberFile, Subscribers};

/// The maximum number of events one line may publish.
const BURST_MAX: u32 = 100_000;
/// The time of `0s` unless the timeline has a `start` line.
const START: &str = "2026-01-03T15:30:00Z";

/// A parsed timeline; [`Timeline::play`] runs it.
#[derive(Clone, Debug)]
pub struct Timeline {
    pub(super) start: Time,
    pub(super) steps: Vec<TimelineStep>,
    files: Vec<SubscriberFile>,
    pub(super) templates: BTreeMap<String, String>,
}

#[derive(Clone, Debug)]
pub(super) struct TimelineStep {
    pub(super) line: usize,
    /// Milliseconds since the start.
    pub(super) at: u64,
    pub(super) action: Action,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    Publish { template: EventLine, times: Option<u32> },
    User { text: String, times: Option<u32> },
    Inject(Box<InjectLine>),
    Disable(Vec<String>),
    Reload(SubscriberFile),
    Remove(String),
    Rotate,
    Crash,
    Messages,
    Wait,
}

/// The event of a line. The payload stays text, because a burst replaces `%n` in it.
#[derive(Clone, Debug)]
pub(super) struct EventLine {
    kind: String,
    source: String,
    severity: Severity,
    agent: AgentName,
    dedupe_key: Option<String>,
    by_agent: bool,
    payload: String,
}

#[derive(Clone, Debug)]
pub(super) struct InjectLine {
    pub(super) inject: Inject,
    pub(super) agent: Option<AgentName>,
    pub(super) unseen: Vec<String>,
    pub(super) observed: Option<ObservedCall>,
    pub(super) tool_result: Option<String>,
}

/// A mistake in a timeline.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TimelineError {
    /// The line number from 1; 0 if the mistake is in an embedded subscriber file.
    pub line: usize,
    /// What is wrong and what is allowed.
    pub message: String,
}

impl fmt::Display for TimelineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.message),
            line => write!(f, "line {line}: {}", self.message),
        }
    }
}

impl std::error::Error for TimelineError {}

impl Timeline {
    /// Parses a timeline's text.
    pub fn parse(text: &str) -> Result<Self, TimelineError> {
        let start = START.parse().expect("the constant is a time");
        let mut timeline = Self { start, steps: Vec::new(), files: Vec::new(), templates: BTreeMap::new() };
        let mut lines = text.lines().enumerate().peekable();
        while let Some((number, line)) = lines.next() {
            let words = line.trim_end();
            if words.trim_start().is_empty() || words.starts_with('#') {
                continue;
            }
            let block = || {
                let indented = |(_, line): &(usize, &str)| line.trim().is_empty() || line.starts_with("    ");
                let body = std::iter::from_fn(|| lines.next_if(indented));
                body.map(|(_, line)| line.strip_prefix("    ").unwrap_or("")).collect::<Vec<_>>().join("\n")
            };
            let read = timeline.read_line(words, block);
            let step = read.map_err(|message| TimelineError { line: number + 1, message })?;
            timeline.steps.extend(step.map(|(at, action)| TimelineStep { line: number + 1, at, action }));
        }
        Ok(timeline)
    }

    /// `base`, replaced and extended by the timeline's own subscribers.
    pub fn subscribers(&self, base: &Subscribers) -> Result<Subscribers, TimelineError> {
        let loaded = Subscribers::load(&self.files, &self.templates);
        match loaded.errors.first() {
            Some(error) => Err(TimelineError { line: 0, message: error.to_string() }),
            None => Ok(Subscribers::new(base.iter().chain(loaded.subscribers.iter()).cloned())),
        }
    }

    fn read_line(&mut self, line: &str, block: impl FnOnce() -> String) -> Result<Option<(u64, Action)>, String> {
        let (first, rest) = split_word(line);
        match first {
            "start" => {
                self.start = rest.parse().map_err(|error: crate::TimeError| error.to_string())?;
                Ok(None)
            }
            "subscriber" | "template" => {
                let name = rest.strip_suffix(':').ok_or_else(|| format!("'{first} NAME:' ends with a colon"))?;
                match first {
                    "subscriber" => self.files.push(SubscriberFile { path: name.to_owned(), text: block() }),
                    _ => drop(self.templates.insert(name.to_owned(), block())),
                }
                Ok(None)
            }
            _ => {
                let at = self.time(first)?;
                let reload = rest.strip_prefix("subscriber ").and_then(|name| name.strip_suffix(':'));
                match reload {
                    Some(name) => {
                        let file = SubscriberFile { path: name.to_owned(), text: block() };
                        Ok(Some((at, Action::Reload(file))))
                    }
                    None => Ok(Some((at, action(rest)?))),
                }
            }
        }
    }

    /// Parses a time into milliseconds since the start; `+` counts from the previous step. Refuses a time before it.
    fn time(&self, text: &str) -> Result<u64, String> {
        let before = self.steps.last().map_or(0, |step| step.at);
        let at = match text.strip_prefix('+') {
            Some(later) => before.saturating_add(duration(later)?),
            None => duration(text)?,
        };
        match at >= before {
            true => Ok(at),
            false => Err(format!("{text} is before the line above it")),
        }
    }
}

impl EventLine {
    /// The event with `%n` replaced by `number`.
    pub(super) fn event(&self, number: u32) -> Result<Event, String> {
        let payload = self.payload.replace("%n", &number.to_string());
        let payload: Value = serde_json::from_str(&payload).map_err(|error| format!("payload: {error}"))?;
        let event = Event::new(&self.kind, &self.source, self.severity, payload).map_err(|error| error.to_string())?;
        let event = event.for_agent(self.agent.clone());
        let event = if self.by_agent { event.by_agent() } else { event };
        match &self.dedupe_key {
            Some(key) => event.with_dedupe_key(key).map_err(|error| error.to_string()),
            None => Ok(event),
        }
    }
}

fn action(text: &str) -> Result<Action, String> {
    let (verb, rest) = split_word(text);
    match verb {
        "event" => Ok(Action::Publish { template: event_line(rest)?, times: None }),
        "burst" => {
            let (times, rest) = split_word(rest);
            let times = times.parse().ok().filter(|times| (1..=BURST_MAX).contains(times));
            let times = times.ok_or_else(|| format!("burst takes a number from 1 to {BURST_MAX}"))?;
            match split_word(rest) {
                ("event", event) => Ok(Action::Publish { template: event_line(event)?, times: Some(times) }),
                ("user", text) => Ok(Action::User { text: text.to_owned(), times: Some(times) }),
                _ => Err("burst N is followed by event … or user …".into()),
            }
        }
        "user" => Ok(Action::User { text: rest.to_owned(), times: None }),
        "inject" => inject_line(rest).map(|line| Action::Inject(Box::new(line))),
        "disable" => Ok(Action::Disable(rest.split(',').map(|id| id.trim().to_owned()).collect())),
        "enable" | "rotate" | "crash" | "messages" | "wait" if !rest.is_empty() => {
            Err(format!("'{verb}' takes nothing; '{rest}' is too much"))
        }
        "enable" => Ok(Action::Disable(Vec::new())),
        "remove" => Ok(Action::Remove(rest.to_owned())),
        "rotate" => Ok(Action::Rotate),
        "crash" => Ok(Action::Crash),
        "messages" => Ok(Action::Messages),
        "wait" => Ok(Action::Wait),
        _ => Err(format!(
            "'{verb}' is not a verb; there are event, burst, user, inject, disable, enable, remove, rotate, crash, \
             messages and wait"
        )),
    }
}

fn event_line(text: &str) -> Result<EventLine, String> {
    let (head, payload) = match text.find(" {") {
        Some(at) => (&text[..at], text[at..].trim()),
        None => (text, "{}"),
    };
    let mut words = head.split_ascii_whitespace();
    let mut next =
        |what: &str| words.next().ok_or_else(|| format!("event takes TYPE SOURCE SEVERITY; {what} is missing"));
    let (kind, source) = (next("TYPE")?.to_owned(), next("SOURCE")?.to_owned());
    let severity = Severity::parse(next("SEVERITY")?).map_err(|error| error.message)?;
    let payload = payload.to_owned();
    let mut line =
        EventLine { kind, source, severity, agent: AgentName::main(), dedupe_key: None, by_agent: false, payload };
    for option in words {
        match option.split_once('=') {
            Some(("agent", name)) => line.agent = AgentName::parse(name).map_err(|error| error.to_string())?,
            Some(("dedupe", key)) => line.dedupe_key = Some(key.to_owned()),
            None if option == "by_agent" => line.by_agent = true,
            _ => return Err(format!("'{option}' is not an option of event; there are agent=, dedupe= and by_agent")),
        }
    }
    line.event(1)?;
    Ok(line)
}

fn inject_line(text: &str) -> Result<InjectLine, String> {
    let (head, tool_result) = match text.split_once(" | ") {
        Some((head, result)) => (head, Some(result.replace("\\n", "\n"))),
        None => (text, None),
    };
    let (head, observed) = match head.split_once(" observed=") {
        Some((head, json)) => (head, Some(observed(json)?)),
        None => (head, None),
    };
    let mut words = head.split_ascii_whitespace();
    let mut next = || words.next().ok_or("inject takes POINT CALL_ID");
    let point = InjectionPoint::parse(next()?)?;
    let inject = Inject::new(point, next()?).map_err(|error| error.to_string())?;
    let mut line = InjectLine { inject, agent: None, unseen: Vec::new(), observed, tool_result };
    for option in words {
        line.read_option(option)?;
    }
    Ok(line)
}

impl InjectLine {
    fn read_option(&mut self, option: &str) -> Result<(), String> {
        let limits = self.inject.limits;
        let number = |text: &str| text.parse::<usize>().map_err(|_| format!("'{option}' needs a number"));
        let checked = |items, tokens| InjectLimits::new(items, tokens).map_err(|error| error.to_string());
        match option.split_once('=').unwrap_or((option, "")) {
            ("agent", name) => self.agent = Some(AgentName::parse(name).map_err(|error| error.to_string())?),
            ("items", text) => self.inject.limits = checked(number(text)?, limits.tokens_max)?,
            ("tokens", text) => self.inject.limits = checked(limits.items_max, number(text)?)?,
            ("style", text) => self.inject.style = Style::parse(text)?,
            ("shape", text) => self.inject.shape = Shape::parse(text)?,
            ("unseen", text) => self.unseen = text.split(',').map(str::to_owned).collect(),
            ("wake_only", "") => self.inject.wake_only = true,
            _ => {
                return Err(format!(
                    "'{option}' is not an option of inject; there are agent= items= tokens= style= shape= unseen= \
                     wake_only and observed="
                ));
            }
        }
        Ok(())
    }
}

fn observed(json: &str) -> Result<ObservedCall, String> {
    let value: Value = serde_json::from_str(json).map_err(|error| format!("observed: {error}"))?;
    let text = |key: &str| value.get(key).and_then(Value::as_str);
    let outcome = match text("outcome") {
        Some("success") => CallOutcome::Success,
        Some("failure") => CallOutcome::Failure,
        Some("timeout") => CallOutcome::Timeout,
        _ => return Err("observed.outcome must be one of: success, failure, timeout".into()),
    };
    let tool = text("tool_name").ok_or("observed.tool_name is missing")?;
    Ok(ObservedCall {
        arguments: value.get("arguments").cloned(),
        error_type: text("error_type").map(Into::into),
        error_message: text("error_message").map(Into::into),
        duration_ms: value.get("duration_ms").and_then(Value::as_u64),
        usage: value.get("usage").cloned(),
        seen: value.get("seen").and_then(Value::as_bool).unwrap_or_default(),
        ..ObservedCall::new(tool, outcome)
    })
}

/// Parses `1.5s`, `200ms`, `2m`, `1h`, `1d` into milliseconds.
fn duration(text: &str) -> Result<u64, String> {
    let units = [("ms", 1.0), ("s", 1e3), ("m", 6e4), ("h", 3.6e6), ("d", 8.64e7)];
    let read = units.iter().find_map(|(unit, millis)| {
        let number = text.strip_suffix(unit)?;
        let legal = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
        number.parse::<f64>().ok().filter(|_| legal).map(|number| (number * millis).round() as u64)
    });
    read.ok_or_else(|| format!("'{text}' is not a time; write 0s, 1.5s, 200ms, 2m, 1h or 1d, or +1s"))
}

fn split_word(text: &str) -> (&str, &str) {
    let text = text.trim();
    text.split_once(char::is_whitespace).map_or((text, ""), |(word, rest)| (word, rest.trim()))
}

/// The set after the removal of one subscriber.
pub(super) fn without(subscribers: &Subscribers, id: &str) -> Arc<Subscribers> {
    let rest = subscribers.iter().filter(|one| one.id.as_str() != id).cloned();
    Arc::new(subscribers.reloaded(rest))
}

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use bellwire_core::event::TypePattern;
use bellwire_core::render::toon::Document;
use bellwire_core::subscriber::{Audience, Subscriber};
use bellwire_core::{Boundary, Event, EventDraft, Ids, Severity, Time};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use super::folder;
use crate::output::{MUTED, STRONG, WRONG, printable};

/// List, check and try subscriber files
#[derive(Args)]
pub(crate) struct SubscribersArgs {
    #[command(subcommand)]
    command: SubscribersCommand,
}

#[derive(Subcommand)]
enum SubscribersCommand {
    /// List the bundled subscribers, and those of a folder
    List {
        /// Add (or replace by id) the subscribers of this folder
        #[arg(long, value_name = "DIR")]
        subscribers: Option<PathBuf>,
        /// Print JSON instead of a table
        #[arg(long)]
        json: bool,
    },
    /// Check every subscriber file of a folder, and render its templates with sample events
    ///
    /// Exits with 1 if any file is wrong, and names the file, the line and the allowed values.
    Check {
        /// The folder; templates are found relative to it
        dir: PathBuf,
    },
    /// Render events with the templates of a subscriber, for the agent and for the person
    ///
    /// Without --event, made-up events of its first type are used.
    Test {
        /// The subscriber's id
        id: String,
        /// An event as JSON, such as {"type": "...", "source": "...", "severity": "error", "payload": {}}; may be given
        /// several times
        #[arg(long = "event", value_name = "JSON")]
        events: Vec<String>,
        /// Add (or replace by id) the subscribers of this folder
        #[arg(long, value_name = "DIR")]
        subscribers: Option<PathBuf>,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
}

pub(crate) fn run(arguments: &SubscribersArgs) -> Result<bool> {
    match &arguments.command {
        SubscribersCommand::List { subscribers, json } => list(subscribers.as_deref(), *json),
        SubscribersCommand::Check { dir } => check(dir),
        SubscribersCommand::Test { id, events, subscribers, json } => test(id, events, subscribers.as_deref(), *json),
    }
}

fn list(dir: Option<&Path>, as_json: bool) -> Result<bool> {
    let (subscribers, errors) = folder::subscribers(dir)?;
    folder::warn(&errors);
    let mut out = anstream::stdout().lock();
    if as_json {
        let items: Vec<Value> = subscribers.iter().map(|one| describe(one)).collect();
        writeln!(out, "{}", json!({ "items": items, "next_cursor": null }))?;
        return Ok(errors.is_empty());
    }
    let head = STRONG;
    writeln!(
        out,
        "{}{:18}{:10}{:12}{:>8}{:>5}{:>8}  {:5} EVENTS{}",
        head.render(),
        "ID",
        "PRIORITY",
        "POINT",
        "WINDOW",
        "MAX",
        "DEDUPE",
        "CORE",
        head.render_reset()
    )?;
    for one in subscribers.iter() {
        let point = if is_for_people(one) { "(a person)" } else { one.output.inject_at.as_str() };
        writeln!(
            out,
            "{:18}{:10}{point:12}{:>8}{:>5}{:>8}  {:5} {}",
            one.id,
            one.output.priority,
            one.batching.window_ms,
            one.batching.max_size,
            one.batching.dedupe_window_ms,
            if one.output.core { "yes" } else { "" },
            types(one).join(" "),
        )?;
    }
    Ok(errors.is_empty())
}

/// Loads every file and renders sample events with its templates, once one event and once a full batch.
fn check(dir: &Path) -> Result<bool> {
    let (good, errors) = folder::read(dir)?;
    let count = good.len() + errors.len();
    if count == 0 {
        bail!("{} holds no *.toml file", dir.display());
    }
    let mut wrong: Vec<String> = errors.iter().map(ToString::to_string).collect();
    wrong.extend(good.iter().filter_map(|one| Some(format!("subscriber '{}': {}", one.id, template_problem(one)?))));
    for problem in &wrong {
        anstream::eprintln!("{}wrong:{} {}", WRONG.render(), WRONG.render_reset(), printable(problem));
    }
    anstream::eprintln!("{} of {} subscribers are right", count.saturating_sub(wrong.len()), count);
    Ok(wrong.is_empty())
}

fn test(id: &str, given: &[String], dir: Option<&Path>, as_json: bool) -> Result<bool> {
    let (subscribers, errors) = folder::subscribers(dir)?;
    folder::warn(&errors);
    let Some(one) = subscribers.find(id) else {
        let known: Vec<&str> = subscribers.iter().map(|one| one.id.as_str()).collect();
        bail!("there is no subscriber '{id}'; there are {}", known.join(", "));
    };
    let events = match given.is_empty() {
        true => samples(one, 1),
        false => given.iter().map(|text| parse_event(text)).collect::<Result<_>>()?,
    };
    for event in events.iter().filter(|event| !one.listens_for(event.kind())) {
        anstream::eprintln!("note: '{id}' does not listen for {}; worded all the same", event.kind());
    }
    let failed = |name: &str, problem: String| anyhow::anyhow!("the {name} fails: {problem}");
    let text = render_checked(one, &events).map_err(|problem| failed("template", problem))?.to_toon();
    let for_person = render_for_person(one, &events).transpose().map_err(|problem| failed("template_user", problem))?;
    let mut out = anstream::stdout().lock();
    let (agent, person) = (printable(&text), for_person.as_deref().map(printable));
    match person {
        _ if as_json => {
            let texts = json!({
                "subscriber": id, "content": text, "content_user": for_person, "events": events.len(),
            });
            writeln!(out, "{texts}")?;
        }
        None => writeln!(out, "{agent}")?,
        Some(person) if is_for_people(one) => writeln!(out, "{person}")?,
        Some(person) => writeln!(out, "To the agent:\n{agent}\n\nTo the person:\n{person}")?,
    }
    let toon = (!is_for_people(one)).then(|| format!("{} bytes of valid TOON", text.len()));
    let plain = for_person.map(|text| format!("{} characters of plain text", text.chars().count()));
    let sizes: Vec<String> = toon.into_iter().chain(plain).collect();
    anstream::eprintln!("{}{} event(s), {}{}", MUTED.render(), events.len(), sizes.join(" and "), MUTED.render_reset());
    Ok(errors.is_empty())
}

/// The first failure of a template on one sample event or on a full batch of them.
fn template_problem(one: &Subscriber) -> Option<String> {
    [1, one.batching.max_size].into_iter().find_map(|count| {
        let events = samples(one, count);
        let problem = |name: &str, problem: String| format!("its {name} fails on a batch of {count}: {problem}");
        let agent = render_checked(one, &events).err().map(|error| problem("template", error));
        let person = || render_for_person(one, &events)?.err().map(|error| problem("template_user", error));
        agent.or_else(person)
    })
}

/// The text that a person would get; `None` if the subscriber is for agents only.
fn render_for_person(one: &Subscriber, events: &[Arc<Event>]) -> Option<Result<String, String>> {
    (one.output.audience != Audience::Agent).then(|| one.dry_run_for_person(events))
}

/// Renders events and checks that the official TOON crate decodes and re-encodes the text unchanged.
fn render_checked(one: &Subscriber, events: &[Arc<Event>]) -> Result<Document, String> {
    let document = one.dry_run(events, &Boundary::from_seed(0))?;
    let text = document.to_toon();
    let decoded: Value = toon_format::decode_default(&text).map_err(|error| format!("not valid TOON: {error}"))?;
    let encoded = toon_format::encode_default(&decoded).map_err(|error| format!("not valid TOON: {error}"))?;
    match encoded == text {
        true => Ok(document),
        false => Err(format!("the official encoder would write it otherwise: {encoded}")),
    }
}

fn parse_event(text: &str) -> Result<Arc<Event>> {
    let draft: EventDraft = serde_json::from_str(text).with_context(|| format!("--event {text}"))?;
    // A draft cannot be a user message; its constructor needs only the text.
    if draft.kind.as_deref() == Some("user.message") {
        let text = draft.payload.as_ref().and_then(|payload| payload.get("text")).and_then(Value::as_str);
        return Ok(Arc::new(Event::user_message(text.unwrap_or_default())?.at(sample_time())));
    }
    Ok(Arc::new(draft.admit(sample_time(), &mut Ids::seeded(0)).with_context(|| format!("--event {text}"))?))
}

/// Sample events of the subscriber's first type, numbered so that they differ.
fn samples(one: &Subscriber, count: usize) -> Vec<Arc<Event>> {
    let kind = match one.types.first() {
        Some(TypePattern::Exact(kind)) => kind.to_string(),
        Some(TypePattern::Below(prefix)) => format!("{prefix}sample"),
        Some(TypePattern::Form { parts, below }) => {
            format!("{}{}", parts.replace('*', "sample"), if *below { ".sample" } else { "" })
        }
        None => "sample.event".to_owned(),
    };
    (1..=count).map(|number| Arc::new(sample(&kind, number).at(sample_time().plus(number as u64 * 1000)))).collect()
}

fn sample(kind: &str, number: usize) -> Event {
    if kind == "user.message" {
        return Event::user_message("what about this other approach?").expect("a short text is a message");
    }
    let payload = json!({
        "tool_name": format!("tool_{number}"), "error_type": "timeout", "error_message": "no answer, after 5000ms",
        "message": "something happened", "budget_type": "token", "current": 42_500, "limit": 50_000,
        "percentage": 85, "remaining": 7_500, "pattern": "search → parse", "repetitions": 3, "window_seconds": 60,
        "path": format!("src/file_{number}.rs"), "task_id": format!("task_{number}"), "result_summary": "all green",
        "exchanges": 4, "last_question": "where were we?", "turn": 7, "channel": "email", "error_class": "timeout",
        "text": "a text",
    });
    Event::new(kind, "sample", Severity::Error, payload).expect("the sample is well formed")
}

fn sample_time() -> Time {
    "2026-01-03T15:30:00Z".parse().expect("the constant is a time")
}

fn describe(one: &Subscriber) -> Value {
    let mut output = BTreeMap::from([
        ("priority", json!(one.output.priority)),
        ("activation", json!(one.output.activation)),
        ("audience", json!(one.output.audience)),
        ("ttl_ms", json!(one.output.ttl_ms)),
        ("replace_key", json!(one.output.replace_key.as_ref().map(ToString::to_string))),
    ]);
    if !is_for_people(one) {
        output.insert("inject_at", json!(one.output.inject_at));
    }
    json!({
        "id": one.id.as_str(), "name": one.name, "description": one.description, "version": one.version,
        "core": one.output.core, "types": types(one), "severity_filter": one.severity_filter,
        "window_ms": one.batching.window_ms, "max_size": one.batching.max_size,
        "dedupe_key": one.batching.dedupe_key.as_ref().map(ToString::to_string),
        "dedupe_window_ms": one.batching.dedupe_window_ms, "output": output,
    })
}

fn types(one: &Subscriber) -> Vec<String> {
    one.types.iter().map(ToString::to_string).collect()
}

fn is_for_people(one: &Subscriber) -> bool {
    one.output.audience == Audience::User
}

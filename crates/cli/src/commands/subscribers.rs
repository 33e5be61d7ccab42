mod check;
mod sample;
mod show;
mod words;

pub(crate) use check::{check_folder, render_for_person};

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use bellwire_core::subscriber::{Audience, Subscriber, Subscribers};
use bellwire_core::{Event, EventDraft, Ids};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use self::check::render_checked;
use self::sample::{as_json, sample_time, samples};
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
    /// Show what a subscriber listens for, its settings in words, the payload fields it shows, and a sample event with
    /// the text it becomes
    Show {
        /// The subscriber's id
        id: String,
        /// Add (or replace by id) the subscribers of this folder
        #[arg(long, value_name = "DIR")]
        subscribers: Option<PathBuf>,
        /// Print JSON instead of text
        #[arg(long)]
        json: bool,
    },
    /// Render events with the templates of a subscriber, for the agent and for the person
    ///
    /// Without --event, a made-up event of its first type is used, and printed.
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
        SubscribersCommand::Show { id, subscribers, json } => show::run(id, subscribers.as_deref(), *json),
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

/// Prints what is wrong with a folder.
fn check(dir: &Path) -> Result<bool> {
    let checked = check_folder(dir)?;
    if checked.files == 0 {
        bail!("{} holds no *.toml file", dir.display());
    }
    for problem in &checked.problems {
        anstream::eprintln!("{}wrong:{} {}", WRONG.render(), WRONG.render_reset(), printable(problem));
    }
    let right = checked.files.saturating_sub(checked.problems.len());
    anstream::eprintln!("{right} of {} subscribers are right", checked.files);
    Ok(checked.problems.is_empty())
}

fn test(id: &str, given: &[String], dir: Option<&Path>, print_json: bool) -> Result<bool> {
    let (subscribers, errors) = folder::subscribers(dir)?;
    folder::warn(&errors);
    let one = find(&subscribers, id)?;
    let events = match given.is_empty() {
        true => samples(one, 1),
        false => given.iter().map(|text| parse_event(text)).collect::<Result<_>>()?,
    };
    for event in events.iter().filter(|event| !one.listens_for(event.kind())) {
        anstream::eprintln!("note: '{id}' does not listen for {}; worded all the same", event.kind());
    }
    for event in events.iter().filter(|_| given.is_empty() && !print_json) {
        anstream::eprintln!("{}sample event: {}{}", MUTED.render(), as_json(event), MUTED.render_reset());
    }
    let failed = |name: &str, problem: String| anyhow::anyhow!("the {name} fails: {problem}");
    let text = render_checked(one, &events).map_err(|problem| failed("template", problem))?.to_toon();
    let for_person = render_for_person(one, &events).transpose().map_err(|problem| failed("template_user", problem))?;
    let mut out = anstream::stdout().lock();
    let (agent, person) = (printable(&text), for_person.as_deref().map(printable));
    match person {
        _ if print_json => {
            let sample = given.is_empty().then(|| events.iter().map(|event| as_json(event)).collect::<Vec<_>>());
            let texts = json!({
                "subscriber": id, "content": text, "content_user": for_person, "events": events.len(),
                "sample_events": sample,
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

/// The subscriber with this id; the error names the nearest id, or all.
fn find<'a>(subscribers: &'a Subscribers, id: &str) -> Result<&'a Arc<Subscriber>> {
    let known: Vec<&str> = subscribers.iter().map(|one| one.id.as_str()).collect();
    subscribers.find(id).with_context(|| match bellwire_core::nearest(id, known.iter().copied()) {
        Some(near) => format!("there is no subscriber '{id}'; did you mean {near}?"),
        None => format!("there is no subscriber '{id}'; there are {}", known.join(", ")),
    })
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

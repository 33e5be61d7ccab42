//! What a stored call would become: mapped as the hub maps it, and shown to a conversation in memory.

use std::io::{Read as _, Write as _};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use bellwire_core::subscriber::Subscribers;
use bellwire_core::{Conversation, Event, Inject, InjectionPoint, Randomness, Time, Verdict};
use bellwire_server::config::{Config, IngestKind, IngestSource};
use bellwire_server::ingest::{BodyProblem, Mapped, Source, WebhookEvent, guess_github_event, map};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::TestArgs;
use crate::commands::{folder, subscribers};
use crate::output::{MUTED, STRONG, WRONG, paint, print_json, printable};

/// The largest call that a hub reads, in bytes.
const FILE_MAX: u64 = 2 * 1024 * 1024;
const GITHUB_EVENT: HeaderName = HeaderName::from_static("x-github-event");
/// The headers that authenticate a call of one of the kinds.
const SIGNATURES: [&str; 3] = ["x-hub-signature-256", "webhook-signature", "authorization"];

pub(super) fn run(arguments: &TestArgs) -> Result<bool> {
    let config = arguments.settings.load_and_warn(Vec::new())?.config;
    let source = find(&config, arguments.source.as_deref())?;
    let body = read(&arguments.body)?;
    let mut headers = parse_headers(&arguments.headers)?;
    if source.kind == IngestKind::Github && !headers.contains_key(GITHUB_EVENT) {
        let event = guess_github_event(&body).context("say what it is: --header X-GitHub-Event:NAME")?;
        anstream::eprintln!("{}", paint(MUTED, format!("taken for a '{event}' by its content")));
        headers.insert(GITHUB_EVENT, HeaderValue::from_static(event));
    }
    let (own, errors) = folder::subscribers(config.subscribers_dir.as_deref())?;
    folder::warn(&errors);
    let tried = TriedCall {
        refusal: refusal(source, &config, &headers, &body)?,
        mapped: map(source, &headers, &body),
        subscribers: Arc::new(own),
        user: source.user.clone().unwrap_or_else(|| config.default_user.clone()),
        source,
    };
    match arguments.json {
        true => print_json(&tried.json()?)?,
        false => tried.print()?,
    };
    Ok(tried.mapped.is_ok() && !matches!(tried.refusal, Some(Some(_))))
}

fn find<'a>(config: &'a Config, name: Option<&str>) -> Result<&'a IngestSource> {
    let known: Vec<&str> = config.ingest.keys().map(String::as_str).collect();
    let mut all = config.ingest.values();
    match (name, all.next(), all.next()) {
        (_, None, _) => bail!("the configuration has no source; add a section [ingest.NAME] (docs/ingest.md)"),
        (Some(name), ..) => config
            .ingest
            .get(name)
            .with_context(|| format!("there is no source '{name}'; there are {}", known.join(", "))),
        (None, Some(only), None) => Ok(only),
        (None, ..) => bail!("say which source: --source with one of {}", known.join(", ")),
    }
}

fn read(path: &Path) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    let read = match path.as_os_str() == "-" {
        true => std::io::stdin().take(FILE_MAX + 1).read_to_end(&mut body),
        false => std::fs::File::open(path).and_then(|file| file.take(FILE_MAX + 1).read_to_end(&mut body)),
    };
    read.with_context(|| format!("cannot read {}", path.display()))?;
    if body.len() as u64 > FILE_MAX {
        bail!("{} has more than {FILE_MAX} bytes, and a hub takes no more", path.display());
    }
    Ok(body)
}

fn parse_headers(given: &[String]) -> Result<HeaderMap> {
    let parse = |text: &String| {
        let (name, value) = text.split_once(':')?;
        Some((name.trim().parse::<HeaderName>().ok()?, HeaderValue::from_str(value.trim()).ok()?))
    };
    let mut headers = HeaderMap::new();
    for text in given {
        let name = text.split(':').next().unwrap_or_default();
        let (name, value) =
            parse(text).with_context(|| format!("--header {name} is no header; write it like X-GitHub-Event:push"))?;
        headers.append(name, value);
    }
    Ok(headers)
}

/// Whether the call would be refused, if headers that authenticate it are given.
fn refusal(source: &IngestSource, config: &Config, headers: &HeaderMap, body: &[u8]) -> Result<Option<Option<String>>> {
    let own = source.header.as_deref();
    if !SIGNATURES.into_iter().chain(own).any(|name| headers.contains_key(name)) {
        return Ok(None);
    }
    let source = Source::new(source, &config.default_user).map_err(anyhow::Error::msg)?;
    let now = Time::from_millis(jiff::Timestamp::now().as_millisecond());
    let refusal = source.authenticate(headers, body, now).err();
    Ok(Some(refusal.map(|refusal| format!("{} {}", refusal.header, refusal.message))))
}

struct TriedCall<'a> {
    source: &'a IngestSource,
    user: String,
    subscribers: Arc<Subscribers>,
    /// `None` = not checked.
    refusal: Option<Option<String>>,
    mapped: Result<Mapped, BodyProblem>,
}

/// An event, and what became of it in a conversation.
struct TriedEvent {
    event: Event,
    verdicts: Vec<String>,
    /// What the person would read, by subscriber.
    person: Vec<(String, String)>,
}

impl TriedCall<'_> {
    fn print(&self) -> Result<bool> {
        let mut out = anstream::stdout().lock();
        let wrong = |text: String| paint(WRONG, printable(&text));
        match &self.refusal {
            None => anstream::eprintln!("{}", paint(MUTED, "the signature is not checked: its headers are not given")),
            Some(None) => anstream::eprintln!("the call is authentic"),
            Some(Some(why)) => {
                writeln!(out, "{}", wrong(format!("refused (401): {why}")))?;
                writeln!(out, "if it were authentic:")?;
            }
        }
        let events = match &self.mapped {
            Ok(Mapped::Events(events)) => events,
            Ok(Mapped::Skipped(why)) => {
                writeln!(out, "nothing is published: {}", printable(why))?;
                return Ok(true);
            }
            Err(problem) => {
                writeln!(out, "{}", wrong(format!("refused (400): {problem}")))?;
                return Ok(true);
            }
        };
        let (tried, block) = self.play(events)?;
        for (made, tried) in events.iter().zip(&tried) {
            let name = paint(STRONG, format!("{} {}", tried.event.kind(), tried.event.severity().as_str()));
            writeln!(out, "{name} from {} for {}", self.source.name, printable(&self.target(made)))?;
            writeln!(out, "  {}", printable(&made.payload.to_string()))?;
            for verdict in &tried.verdicts {
                writeln!(out, "  {}", printable(verdict))?;
            }
            for (subscriber, text) in &tried.person {
                let origin = &self.source.origin;
                writeln!(out, "  {subscriber} tells the person, as {}: {}", printable(origin), printable(text))?;
            }
        }
        match block.is_empty() {
            true => writeln!(out, "the agent reads nothing: no subscriber for agents listens for it")?,
            false => writeln!(out, "the agent reads:\n{}", printable(&block))?,
        }
        Ok(true)
    }

    fn json(&self) -> Result<Value> {
        let mut answer = json!({
            "source": self.source.name, "kind": self.source.kind.as_str(), "events": [], "skipped": null, "problem": null,
            "authentic": self.refusal.as_ref().map(Option::is_none), "block": "",
        });
        match &self.mapped {
            Ok(Mapped::Events(events)) => {
                let (tried, block) = self.play(events)?;
                let event = |(made, tried): (&WebhookEvent, &TriedEvent)| {
                    json!({
                        "id": made.id, "type": tried.event.kind().as_str(), "severity": tried.event.severity().as_str(),
                        "source": self.source.name, "origin": self.source.origin, "for": self.target(made),
                        "payload": made.payload, "verdicts": tried.verdicts,
                    })
                };
                answer["events"] = events.iter().zip(&tried).map(event).collect();
                answer["block"] = json!(block);
            }
            Ok(Mapped::Skipped(why)) => answer["skipped"] = json!(why),
            Err(problem) => answer["problem"] = json!(problem.to_string()),
        }
        if let Some(Some(why)) = &self.refusal {
            answer["problem"] = json!(why);
        }
        Ok(answer)
    }

    /// Publishes the events to a conversation in memory, and takes what its agent would read at the start of a turn.
    fn play(&self, events: &[WebhookEvent]) -> Result<(Vec<TriedEvent>, String)> {
        let now = Time::from_millis(1_000_000);
        let mut conversation = Conversation::new(self.subscribers.clone(), Randomness::repeatable(7));
        let mut tried = Vec::new();
        for made in events {
            let event = made.to_event(&self.source.name).context("the hub would refuse the event")?.at(now);
            let published = conversation.publish(event.clone(), now)?;
            let line = |(subscriber, verdict): &(_, Verdict)| format!("{subscriber}: {}", verdict.name());
            let (mut verdicts, person): (Vec<String>, _) =
                (published.verdicts.iter().map(line).collect(), self.person(&event));
            if verdicts.is_empty() && person.is_empty() {
                verdicts.push("no subscriber listens for this type".to_owned());
            }
            tried.push(TriedEvent { person, event, verdicts });
        }
        let answer = conversation.inject(Inject::new(InjectionPoint::TurnStart, "try")?, now)?;
        Ok((tried, answer.block))
    }

    fn person(&self, event: &Event) -> Vec<(String, String)> {
        let event = [Arc::new(event.clone())];
        let listening = self.subscribers.for_person(event[0].kind());
        let text = |one: &Arc<_>| Some((subscribers::render_for_person(one, &event)?.ok()?, one.id.to_string()));
        listening.filter_map(text).map(|(text, id)| (id, text)).collect()
    }

    /// Whom an event is for.
    fn target(&self, event: &WebhookEvent) -> String {
        let (source, user) = (self.source, &self.user);
        match (event.conversation.as_ref().or(source.conversation.as_ref()), &source.folder) {
            (Some(id), _) => format!("the conversation {id} of {user}"),
            (None, Some(folder)) => format!("the open conversations of {user} in {folder} and above"),
            (None, None) => format!("the open conversations of {user}"),
        }
    }
}

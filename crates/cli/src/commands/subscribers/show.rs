//! `bellwire subscribers show`: a subscriber in words, with the payload fields it shows and a sample.

use std::io::Write;
use std::path::Path;

use anyhow::Result;
use bellwire_core::EventType;
use bellwire_core::event::{KNOWN_TYPES, KnownType, PayloadField};
use bellwire_core::subscriber::Subscriber;
use serde_json::{Value, json};

use super::check::{render_checked, render_for_person};
use super::sample::{as_json, samples};
use super::words::settings;
use super::{describe, find, is_for_people};
use crate::commands::folder;
use crate::output::{MUTED, STRONG, TEXT, paint, print_json, printable};

pub(super) fn run(id: &str, dir: Option<&Path>, json: bool) -> Result<bool> {
    let (subscribers, errors) = folder::subscribers(dir)?;
    folder::warn(&errors);
    let shown = ShownSubscriber { one: find(&subscribers, id)?, is_bundled: !is_own(id, dir) };
    match json {
        true => drop(print_json(&shown.as_json())?),
        false => shown.print(&mut anstream::stdout().lock())?,
    }
    Ok(errors.is_empty())
}

/// Whether the folder has a subscriber with this id.
fn is_own(id: &str, dir: Option<&Path>) -> bool {
    let own = dir.and_then(|dir| folder::read(dir).ok()).map(|(own, _)| own).unwrap_or_default();
    own.iter().any(|one| one.id.as_str() == id)
}

struct ShownSubscriber<'a> {
    one: &'a Subscriber,
    /// Whether it has the bundled templates, of which the table of known types says what they show.
    is_bundled: bool,
}

/// A text, or why the template fails; `None` if the subscriber is not for this reader.
type Rendered = Option<Result<String, String>>;

impl ShownSubscriber<'_> {
    fn print(&self, out: &mut impl Write) -> Result<()> {
        let one = self.one;
        let title = paint(MUTED, format!("{}, version {}", printable(&one.name), one.version));
        writeln!(out, "{} {title}\n{}\n", paint(STRONG, &one.id), printable(&one.description))?;
        for (what, words) in settings(one) {
            writeln!(out, "{}{words}", paint(MUTED, format!("{what:13}")))?;
        }
        for (names, fields) in self.known_fields() {
            writeln!(out, "\n{}", paint(STRONG, format!("Payload of {}", names.join(", "))))?;
            self.print_fields(out, fields)?;
        }
        match (one.shown_fields(), self.other_fields()) {
            (None, _) => writeln!(out, "\nIts templates may show any field of the payload.")?,
            (Some(_), others) if others.is_empty() => {}
            (Some(_), others) => writeln!(out, "\nIts templates read these fields: {}", others.join(", "))?,
        }
        writeln!(out, "\n{}", paint(STRONG, "A sample event"))?;
        samples(one, 1).iter().try_for_each(|event| writeln!(out, "{}", as_json(event)))?;
        let (agent, person) = self.texts();
        for (who, text) in [("the agent", agent), ("the person", person)] {
            let Some(text) = text else { continue };
            let text = text.unwrap_or_else(|error| format!("(the template fails: {error})"));
            writeln!(out, "\n{}\n{}", paint(STRONG, format!("What {who} reads")), paint(TEXT, printable(&text)))?;
        }
        Ok(())
    }

    fn print_fields(&self, out: &mut impl Write, fields: &[PayloadField]) -> Result<()> {
        let longest = |of: fn(&PayloadField) -> &str, head: &str| {
            fields.iter().map(|field| of(field).chars().count()).max().unwrap_or(0).max(head.len())
        };
        let (name, meaning) = (longest(|field| field.name, "FIELD"), longest(|field| field.meaning, "MEANING"));
        writeln!(out, "{}", paint(MUTED, format!("{:name$}  {:meaning$}  SHOWN", "FIELD", "MEANING")))?;
        for field in fields {
            writeln!(out, "{:name$}  {:meaning$}  {}", field.name, field.meaning, self.shown(field))?;
        }
        Ok(())
    }

    /// When its templates show the field.
    fn shown(&self, field: &PayloadField) -> String {
        match self.one.shown_fields() {
            _ if self.is_bundled => field.shown.describe(),
            None => "perhaps".to_owned(),
            Some(read) if read.iter().any(|name| **name == *field.name) => "yes".to_owned(),
            Some(_) => "no".to_owned(),
        }
    }

    /// The known types that it listens for, grouped by their fields.
    fn known_fields(&self) -> Vec<(Vec<&'static str>, &'static [PayloadField])> {
        let mut groups: Vec<(Vec<&'static str>, &'static [PayloadField])> = Vec::new();
        for KnownType { name, fields, .. } in self.known_types() {
            match groups.iter_mut().find(|(_, known)| known == fields) {
                Some((names, _)) => names.push(name),
                None => groups.push((vec![name], fields)),
            }
        }
        groups
    }

    fn known_types(&self) -> impl Iterator<Item = &'static KnownType> {
        let listens = |known: &&KnownType| EventType::parse(known.name).is_ok_and(|kind| self.one.listens_for(&kind));
        KNOWN_TYPES.iter().filter(listens)
    }

    /// The fields that its templates read and that none of its known types has.
    fn other_fields(&self) -> Vec<String> {
        let known: Vec<&str> = self.known_types().flat_map(|known| known.fields).map(|field| field.name).collect();
        // A bundled template reads an event's message; the table names the field that the message usually is in.
        let read = self.one.shown_fields().filter(|_| !self.is_bundled).unwrap_or_default();
        read.iter().filter(|field| !known.contains(&&***field)).map(ToString::to_string).collect()
    }

    /// What the agent and the person read of a sample event.
    fn texts(&self) -> (Rendered, Rendered) {
        let sample = samples(self.one, 1);
        let for_agent = !is_for_people(self.one);
        let agent = for_agent.then(|| render_checked(self.one, &sample).map(|document| document.to_toon()));
        (agent, render_for_person(self.one, &sample))
    }

    fn as_json(&self) -> Value {
        let field = |field: &PayloadField| {
            let (example, shown) = (field.value(), self.shown(field));
            json!({ "name": field.name, "meaning": field.meaning, "example": example, "shown": shown })
        };
        let payload = |(types, fields): (Vec<&str>, &[PayloadField])| json!({ "types": types, "fields": fields.iter().map(field).collect::<Vec<_>>() });
        let (agent, person) = self.texts();
        json!({
            "subscriber": describe(self.one),
            "payloads": self.known_fields().into_iter().map(payload).collect::<Vec<_>>(),
            "other_fields": self.other_fields(),
            "sample_event": samples(self.one, 1).first().map(|event| as_json(event)),
            "content": agent.and_then(Result::ok),
            "content_user": person.and_then(Result::ok),
        })
    }
}

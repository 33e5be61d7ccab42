//! Which payload fields a template reads, found by looking at its tags.
//!
//! The search follows `events[0].payload.x`, loop variables and simple assignments. Where it cannot tell, the answer is
//! that the template may read every field.

use std::collections::BTreeMap;

use super::language::TemplateToken::{Name, Number, Sign, Text};
use super::language::{Tag, TemplateToken};
use crate::event::Payload;

/// The payload fields that a template reads, in the order of their first use; `None` = possibly all of them.
pub(super) fn payload_fields<'a>(tags: impl IntoIterator<Item = Tag<'a>>) -> Option<Vec<Box<str>>> {
    let mut search = Search { known: BTreeMap::from([("events", VariableKind::Events)]), fields: Vec::new() };
    tags.into_iter().try_for_each(|tag| search.tag(&tag))?;
    Some(search.fields)
}

/// What a variable of a template stands for.
#[derive(Copy, Clone, PartialEq)]
enum VariableKind {
    Events,
    Event,
    Payload,
    /// A value of an event or a payload field, or something else.
    Other,
}

struct Search<'a> {
    known: BTreeMap<&'a str, VariableKind>,
    fields: Vec<Box<str>>,
}

impl<'a> Search<'a> {
    /// `None` = the template may read every field.
    fn tag(&mut self, tag: &Tag<'a>) -> Option<()> {
        let tokens = tag.tokens.as_slice();
        match tokens {
            [Name("set"), Name(name), Sign('='), value @ ..] if tag.is_block => self.assign(name, value),
            [Name("for"), Name(name), Name("in"), list @ ..] if tag.is_block => {
                let part = match self.chain(list)? {
                    (VariableKind::Events, []) => VariableKind::Event,
                    (VariableKind::Other, _) => {
                        self.expression(list)?;
                        VariableKind::Other
                    }
                    _ => return None,
                };
                self.known.insert(name, part);
                Some(())
            }
            _ => self.expression(tokens),
        }
    }

    /// A variable that is exactly an event or a payload stands for it from here on.
    fn assign(&mut self, name: &'a str, value: &[TemplateToken<'a>]) -> Option<()> {
        let part = match value {
            [Name(_), ..] => match self.chain(value)? {
                (part, []) => part,
                _ => VariableKind::Other,
            },
            _ => VariableKind::Other,
        };
        if part == VariableKind::Other {
            self.expression(value)?;
        }
        self.known.insert(name, part);
        Some(())
    }

    /// Notes every field that an expression reads.
    fn expression(&mut self, tokens: &[TemplateToken<'a>]) -> Option<()> {
        let mut rest = tokens;
        let mut before = None;
        while let Some((first, behind)) = rest.split_first() {
            rest = behind;
            match first {
                // `counts(by="payload.tool_name")`
                Text(text) => self.path(text),
                Name(name) if !matches!(before, Some(Sign('.' | '|'))) && self.known.contains_key(name) => {
                    let (part, behind) = self.chain_after(name, rest)?;
                    match (part, behind) {
                        (VariableKind::Events, [Sign('|'), Name("length" | "counts"), ..])
                        | (VariableKind::Other, _) => {}
                        (VariableKind::Event, _) => self.message(),
                        (VariableKind::Events | VariableKind::Payload, _) => return None,
                    }
                    rest = behind;
                    before = Some(Sign(')'));
                    continue;
                }
                _ => {}
            }
            before = Some(*first);
        }
        Some(())
    }

    /// What the chain at the start of these tokens stands for, and the tokens after it.
    fn chain<'t>(&mut self, tokens: &'t [TemplateToken<'a>]) -> Option<(VariableKind, &'t [TemplateToken<'a>])> {
        match tokens {
            [Name(name), rest @ ..] if self.known.contains_key(name) => self.chain_after(name, rest),
            _ => Some((VariableKind::Other, tokens)),
        }
    }

    fn chain_after<'t>(
        &mut self,
        name: &str,
        mut rest: &'t [TemplateToken<'a>],
    ) -> Option<(VariableKind, &'t [TemplateToken<'a>])> {
        let mut part = self.known.get(name).copied().unwrap_or(VariableKind::Other);
        loop {
            let key;
            (key, rest) = match rest {
                [Sign('.'), Name(key), behind @ ..] => (Some(*key), behind),
                [Sign('.'), Number, behind @ ..] | [Sign('['), Number, Sign(']'), behind @ ..] => (None, behind),
                [Sign('['), Text(text), Sign(']'), behind @ ..] => (Some(unquoted(text)), behind),
                // A computed index or a slice.
                [Sign('['), ..] if part != VariableKind::Other => return None,
                _ => return Some((part, rest)),
            };
            part = match (part, key) {
                (VariableKind::Events, None) => VariableKind::Event,
                (VariableKind::Event, Some("payload")) => VariableKind::Payload,
                (VariableKind::Event, Some("message")) => {
                    self.message();
                    VariableKind::Other
                }
                (VariableKind::Payload, Some(field)) => {
                    self.note(field);
                    VariableKind::Other
                }
                (VariableKind::Events | VariableKind::Payload, _) => return None,
                (VariableKind::Event | VariableKind::Other, _) => VariableKind::Other,
            };
        }
    }

    /// A path in a text, such as the argument of `counts`.
    fn path(&mut self, text: &str) {
        match unquoted(text).split('.').collect::<Vec<_>>()[..] {
            ["payload", field, ..] => self.note(field),
            ["message"] => self.message(),
            _ => {}
        }
    }

    fn message(&mut self) {
        Payload::MESSAGE_FIELDS.into_iter().for_each(|field| self.note(field));
    }

    fn note(&mut self, field: &str) {
        if !self.fields.iter().any(|known| **known == *field) {
            self.fields.push(field.into());
        }
    }
}

fn unquoted(text: &str) -> &str {
    text.trim_matches(['"', '\''])
}

#[cfg(test)]
mod tests {
    use super::super::language::tags;
    use super::*;

    fn read(source: &str) -> String {
        payload_fields(tags(source)).map_or_else(|| "all".to_owned(), |fields| fields.join(" "))
    }

    #[test]
    fn fields_are_found_through_loops_and_assignments() {
        let found = [
            ("{{ events[0].payload.job }} {{ events.0.payload['branch'] }}", "job branch"),
            ("{% set e = events[0] %}{% set p = e.payload %}{{ p.a or p.b|cut(3) }}{{ p.a }}", "a b"),
            ("{% for e in events %}{{ e.payload.list[0].x }},{{ e.time }}{% endfor %}", "list"),
            ("{% if p %}{{ p.x }}{% endif %}{{ count }}", ""),
            ("{{ events|counts(by=\"payload.tool_name\") }} {{ events|length }}", "tool_name"),
            ("{{ e.payload.x }}{{ events[0].message }}", "message error_message text"),
            ("{{ events[0] }}", "message error_message text"),
            ("{% set name = events[0].payload.name|default(events[0].payload.task_id) %}{{ name }}", "name task_id"),
            ("{% set n = count %}{{ n }} {{ loop.last }} {{ subscriber.id }}", ""),
        ];
        for (source, fields) in found {
            assert_eq!(read(source), fields, "{source}");
        }
    }

    #[test]
    fn where_it_cannot_be_told_every_field_is_read() {
        let unclear = [
            "{{ events[0].payload }}",
            "{% set p = events[0].payload %}{% for key, value in p %}{{ key }}{% endfor %}",
            "{% for key in events[0].payload %}{{ key }}{% endfor %}",
            "{% set p = events[0].payload %}{% set k = 'x' %}{{ p[k] }}",
            "{{ (events|first).payload.x }}",
            "{{ events[1:] }}",
            "{% set p = events[0].payload if count else 1 %}{{ p.x }}",
        ];
        for source in unclear {
            assert_eq!(read(source), "all", "{source}");
        }
    }
}

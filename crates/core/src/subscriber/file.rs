//! Parses and validates the TOML file of one subscriber.

use std::fmt;
use std::ops::RangeInclusive;
use std::sync::Arc;

use serde::Deserialize;
use toml::Spanned;

use super::field_hint::FieldHints;
use super::{
    Activation, Audience, Batching, InjectionPoint, KeyPattern, OutputRules, Priority, Subscriber, SubscriberId,
    TTL_DEFAULT_MS,
};
use crate::event::{Severity, Source, TypePattern};
use crate::render::Template;

/// The text of a subscriber file, with its path.
#[derive(Clone, Debug)]
pub struct SubscriberFile {
    /// The path to name in errors.
    pub path: String,
    /// The TOML.
    pub text: String,
}

/// What is wrong with a subscriber file, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileError {
    /// The path of the file.
    pub path: String,
    /// The line, counted from 1; 0 for the whole file.
    pub line: usize,
    /// The key and the values allowed for it.
    pub message: String,
}

impl fmt::Display for FileError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

impl std::error::Error for FileError {}

/// Finds the text of a template by its path; the error completes the sentence "the template ...".
pub type FindTemplate<'a> = &'a dyn Fn(&str) -> Result<String, String>;

/// In bytes. A larger subscriber file or template is a mistake.
pub const FILE_MAX: usize = 64 * 1024;
const TYPES_MAX: usize = 64;
const TTL_MS: RangeInclusive<i64> = 1_000..=30 * 24 * 60 * 60 * 1000;

impl SubscriberFile {
    /// Validates every value. `template` returns the text of the template that the file names by a path relative to the
    /// file, or why there is none, such as `does not exist`.
    pub fn parse(&self, template: FindTemplate<'_>) -> Result<Arc<Subscriber>, FileError> {
        let whole = |message: String| FileError { path: self.path.clone(), line: 0, message };
        if self.text.len() > FILE_MAX {
            return Err(whole(format!("has {} bytes; at most {FILE_MAX} are allowed", self.text.len())));
        }
        let raw: RawFile = toml::from_str(&self.text).map_err(|error| {
            let line = error.span().map_or(0, |span| self.line_of(span.start));
            FileError { line, ..whole(error.message().trim().replace('\n', ", ")) }
        })?;
        let check = Check { file: self };
        raw.into_subscriber(&check, template).map(Arc::new)
    }

    fn line_of(&self, offset: usize) -> usize {
        let end = offset.min(self.text.len());
        self.text.as_bytes()[..end].iter().filter(|byte| **byte == b'\n').count() + 1
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawFile {
    subscriber: RawSubscriber,
    events: RawEvents,
    #[serde(default)]
    batching: RawBatching,
    output: RawOutput,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawSubscriber {
    id: Spanned<String>,
    name: Spanned<String>,
    description: Spanned<String>,
    version: Spanned<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawEvents {
    types: Spanned<Vec<Spanned<String>>>,
    severity_filter: Option<Spanned<String>>,
    sources: Option<Spanned<Vec<Spanned<String>>>>,
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawBatching {
    window_ms: Option<Spanned<i64>>,
    max_size: Option<Spanned<i64>>,
    dedupe_key: Option<Spanned<String>>,
    dedupe_window_ms: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RawOutput {
    priority: Spanned<String>,
    inject_at: Option<Spanned<String>>,
    template: Spanned<String>,
    template_user: Option<Spanned<String>>,
    #[serde(default)]
    core: bool,
    activation: Option<Spanned<String>>,
    replace_key: Option<Spanned<String>>,
    ttl_ms: Option<Spanned<i64>>,
    audience: Option<Spanned<String>>,
}

impl RawFile {
    fn into_subscriber(self, check: &Check<'_>, template: FindTemplate<'_>) -> Result<Subscriber, FileError> {
        let severity_filter = check.optional("events.severity_filter", &self.events.severity_filter, |text| {
            Severity::parse(text).map_err(|error| error.message)
        })?;
        let id = check.value("subscriber.id", &self.subscriber.id, SubscriberId::parse)?;
        let mut subscriber = Subscriber {
            key: id.key(),
            id,
            name: check.length("subscriber.name", &self.subscriber.name, 100)?,
            description: check.length("subscriber.description", &self.subscriber.description, 500)?,
            version: check.value("subscriber.version", &self.subscriber.version, semver)?,
            types: check.types(&self.events.types)?,
            severity_filter: severity_filter.unwrap_or(Severity::Debug),
            sources: check.sources(self.events.sources.as_ref())?,
            batching: self.batching.checked(check)?,
            output: self.output.checked(check)?,
            template: check.template("output.template", &self.output.template, template)?,
            template_user: self.output.template_user(check, template)?,
            field_hints: FieldHints::default(),
        };
        let Subscriber { id, template, template_user, .. } = &subscriber;
        subscriber.field_hints = FieldHints::new(id, template, template_user.as_ref());
        Ok(subscriber)
    }
}

impl RawBatching {
    fn checked(&self, check: &Check<'_>) -> Result<Batching, FileError> {
        let max_size = check.range("batching.max_size", &self.max_size, 1..=100, 10)?;
        Ok(Batching {
            window_ms: check.range("batching.window_ms", &self.window_ms, 0..=10_000, 2_000)?,
            max_size: usize::try_from(max_size).unwrap_or(1),
            dedupe_key: check.optional("batching.dedupe_key", &self.dedupe_key, KeyPattern::parse)?,
            dedupe_window_ms: check.range("batching.dedupe_window_ms", &self.dedupe_window_ms, 0..=60_000, 5_000)?,
        })
    }
}

impl RawOutput {
    fn checked(&self, check: &Check<'_>) -> Result<OutputRules, FileError> {
        let priority = check.value("output.priority", &self.priority, Priority::parse)?;
        let activation = check.optional("output.activation", &self.activation, Activation::parse)?;
        let audience = check.optional("output.audience", &self.audience, Audience::parse)?.unwrap_or(Audience::Agent);
        Ok(OutputRules {
            priority,
            inject_at: self.point(check, priority, audience)?,
            core: self.core,
            activation: activation.unwrap_or(Activation::Passive),
            replace_key: check.optional("output.replace_key", &self.replace_key, KeyPattern::parse)?,
            ttl_ms: check.range("output.ttl_ms", &self.ttl_ms, TTL_MS, TTL_DEFAULT_MS)?,
            audience,
        })
    }

    /// Only people read plain text, so a subscriber for agents has no use for it.
    fn template_user(&self, check: &Check<'_>, find: FindTemplate<'_>) -> Result<Option<Template>, FileError> {
        let Some(given) = &self.template_user else { return Ok(None) };
        if self.audience.as_ref().is_none_or(|audience| audience.get_ref() == Audience::Agent.as_str()) {
            let message = "output.template_user is only allowed with audience 'user' or 'both': agents never read it";
            return Err(check.error(given, message));
        }
        check.template("output.template_user", given, find).map(Some)
    }

    /// Low-priority notifications never interrupt a turn; only critical ones may be immediate; people have no injection
    /// points.
    fn point(&self, check: &Check<'_>, priority: Priority, audience: Audience) -> Result<InjectionPoint, FileError> {
        let Some(given) = &self.inject_at else {
            return match audience {
                Audience::User => Ok(InjectionPoint::TurnStart),
                _ => Err(check.error(&self.priority, "output.inject_at is missing; only audience user goes without")),
            };
        };
        let point = check.value("output.inject_at", given, InjectionPoint::parse)?;
        match (priority, point) {
            (Priority::Critical, _) => Ok(point),
            (_, InjectionPoint::Immediate) => {
                Err(check.error(given, "output.inject_at 'immediate' is only allowed with priority 'critical'"))
            }
            (Priority::Low, InjectionPoint::AfterTool) => Ok(InjectionPoint::TurnEnd),
            _ => Ok(point),
        }
    }
}

/// Turns an invalid value into an error with file and line.
struct Check<'a> {
    file: &'a SubscriberFile,
}

impl Check<'_> {
    fn error<T>(&self, at: &Spanned<T>, message: impl Into<String>) -> FileError {
        FileError { path: self.file.path.clone(), line: self.file.line_of(at.span().start), message: message.into() }
    }

    fn value<T>(
        &self,
        key: &str,
        given: &Spanned<String>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<T, FileError> {
        parse(given.get_ref()).map_err(|message| self.error(given, format!("{key} {message}")))
    }

    fn optional<T>(
        &self,
        key: &str,
        given: &Option<Spanned<String>>,
        parse: impl Fn(&str) -> Result<T, String>,
    ) -> Result<Option<T>, FileError> {
        given.as_ref().map(|given| self.value(key, given, parse)).transpose()
    }

    fn range(
        &self,
        key: &str,
        given: &Option<Spanned<i64>>,
        allowed: RangeInclusive<i64>,
        default: u64,
    ) -> Result<u64, FileError> {
        let Some(given) = given else { return Ok(default) };
        let number = *given.get_ref();
        match u64::try_from(number) {
            Ok(value) if allowed.contains(&number) => Ok(value),
            _ => {
                let (least, most) = (allowed.start(), allowed.end());
                Err(self.error(given, format!("{key} is {number}; {least} to {most} is allowed")))
            }
        }
    }

    fn length(&self, key: &str, given: &Spanned<String>, max: usize) -> Result<String, FileError> {
        let length = given.get_ref().chars().count();
        if (1..=max).contains(&length) {
            return Ok(given.get_ref().clone());
        }
        Err(self.error(given, format!("{key} has {length} characters; 1 to {max} are allowed")))
    }

    fn types(&self, given: &Spanned<Vec<Spanned<String>>>) -> Result<Vec<TypePattern>, FileError> {
        let count = given.get_ref().len();
        if !(1..=TYPES_MAX).contains(&count) {
            return Err(self.error(given, format!("events.types has {count} entries; 1 to {TYPES_MAX} are allowed")));
        }
        let parse = |text: &str| TypePattern::parse(text).map_err(|error| error.message);
        given.get_ref().iter().map(|text| self.value("events.types", text, parse)).collect()
    }

    fn sources(&self, given: Option<&Spanned<Vec<Spanned<String>>>>) -> Result<Option<Vec<Source>>, FileError> {
        let Some(given) = given else { return Ok(None) };
        if given.get_ref().is_empty() {
            return Err(self.error(given, "events.sources is empty; leave it out to hear every source"));
        }
        let parse = |text: &str| Source::parse(text).map_err(|error| error.message);
        given.get_ref().iter().map(|text| self.value("events.sources", text, parse)).collect::<Result<_, _>>().map(Some)
    }

    fn template(&self, key: &str, given: &Spanned<String>, find: FindTemplate<'_>) -> Result<Template, FileError> {
        let path = given.get_ref();
        if path.starts_with('/') || path.split('/').any(|part| part == "..") {
            return Err(self.error(given, format!("{key} '{path}' must stay below the subscriber's folder")));
        }
        let source = find(path).map_err(|why| self.error(given, format!("{key} '{path}' {why}")))?;
        Template::compile(path, &source).map_err(|error| FileError {
            path: path.clone(),
            line: error.line,
            message: format!("{} (named by {})", error.message, self.file.path),
        })
    }
}

/// `1.2.3`, with an optional pre-release or build part.
fn semver(text: &str) -> Result<String, String> {
    let core = text.split(['-', '+']).next().unwrap_or_default();
    let number = |part: &str| {
        !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()) && (part == "0" || !part.starts_with('0'))
    };
    let legal = text.len() <= 64
        && core.split('.').count() == 3
        && core.split('.').all(number)
        && text[core.len()..].bytes().all(|b| b.is_ascii_alphanumeric() || b"-+.".contains(&b));
    match legal {
        true => Ok(text.to_owned()),
        false => Err(format!("'{}' must be a version such as 1.0.0", crate::event::excerpt(text))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = r#"[subscriber]
id = "ci"
name = "CI"
description = "Builds"
version = "1.0.0"

[events]
types = ["ci.build.failed"]

[batching]
window_ms = 2000

[output]
priority = "high"
inject_at = "after_tool"
template = "ci.toon.j2"
"#;

    fn parse(text: &str) -> Result<Arc<Subscriber>, FileError> {
        let file = SubscriberFile { path: "ci.toml".into(), text: text.into() };
        file.parse(&|path| match path {
            "ci.toon.j2" => Ok("ci: {{ events[0].source }}".into()),
            _ => Err("does not exist".into()),
        })
    }

    #[test]
    fn omitted_keys_have_the_documented_defaults() {
        let subscriber = parse(&GOOD.replace("window_ms = 2000", "")).unwrap();
        let batching = &subscriber.batching;
        assert_eq!((batching.window_ms, batching.max_size, batching.dedupe_window_ms), (2000, 10, 5000));
        assert_eq!(subscriber.severity_filter, Severity::Debug);
        assert_eq!(subscriber.output.audience, Audience::Agent);
        assert_eq!(subscriber.output.ttl_ms, TTL_DEFAULT_MS);
    }

    #[test]
    fn low_priority_waits_for_the_end_of_the_turn() {
        let subscriber = parse(&GOOD.replace("\"high\"", "\"low\"")).unwrap();
        assert_eq!(subscriber.output.inject_at, InjectionPoint::TurnEnd);
    }

    #[test]
    fn every_wrong_value_is_reported_with_file_line_and_what_is_allowed() {
        let wrong = [
            ("id = \"ci\"", "id = \"CI\""),
            ("id = \"ci\"", "id = \"user\""),
            ("name = \"CI\"", "name = \"\""),
            ("\"1.0.0\"", "\"1.0\""),
            ("description = \"Builds\"", "description = \"Builds\"\ncolour = \"red\""),
            ("[\"ci.build.failed\"]", "[]"),
            ("[\"ci.build.failed\"]", "[\"CI.build\"]"),
            ("[\"ci.build.failed\"]", "[\"ci.*d.failed\"]"),
            ("[batching]", "sources = []\n[batching]"),
            ("[batching]", "severity_filter = \"fatal\"\n[batching]"),
            ("window_ms = 2000", "window_ms = 10001"),
            ("window_ms = 2000", "window_ms = -1"),
            ("window_ms = 2000", "window_ms = \"2s\""),
            ("window_ms = 2000", "max_size = 0"),
            ("window_ms = 2000", "max_size = 101"),
            ("window_ms = 2000", "dedupe_window_ms = 60001"),
            ("window_ms = 2000", "dedupe_key = \"type::x\""),
            ("window_ms = 2000", "dedupe_key = \"paylod.service\""),
            ("\"ci.toon.j2\"", "\"ci.toon.j2\"\nreplace_key = \"ci\""),
            ("\"high\"", "\"urgent\""),
            ("\"after_tool\"", "\"soon\""),
            ("\"after_tool\"", "\"immediate\""),
            ("inject_at = \"after_tool\"\n", ""),
            ("\"ci.toon.j2\"", "\"../secret\""),
            ("\"ci.toon.j2\"", "\"absent.j2\""),
            ("\"ci.toon.j2\"", "\"ci.toon.j2\"\nttl_ms = 10"),
            ("\"ci.toon.j2\"", "\"ci.toon.j2\"\naudience = \"all\""),
            ("\"ci.toon.j2\"", "\"ci.toon.j2\"\ntemplate_user = \"ci.toon.j2\""),
            ("\"ci.toon.j2\"", "\"ci.toon.j2\"\naudience = \"both\"\ntemplate_user = \"absent.j2\""),
            ("[output]", "[output"),
        ];
        let errors: Vec<String> =
            wrong.iter().map(|(from, to)| parse(&GOOD.replace(from, to)).unwrap_err().to_string()).collect();
        insta::assert_snapshot!(errors.join("\n"));
    }
}

//! `[ingest.NAME]`: sources of webhooks, each with its own secret, origin and target.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use bellwire_core::event::reserved_name;
use toml::{Table, Value};

use super::Secret;
use crate::auth::reserved_origin;
use crate::http::ID_MAX;
use crate::ingest::Rule;

/// A source of webhooks: the calls of `POST /v1/ingest/NAME`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IngestSource {
    /// The name in the path, which is also the source of its events.
    pub name: String,
    /// The format of its calls.
    pub kind: IngestKind,
    /// The secret, if the file or the environment has it.
    pub secret: Option<Secret>,
    /// A file that contains the secret, and below it older ones that are still accepted.
    pub secret_file: Option<PathBuf>,
    /// The header that contains the secret, for kind json; none = `Authorization: Bearer SECRET`.
    pub header: Option<String>,
    /// The origin that people see.
    pub origin: String,
    /// The person whose agents are told; none = `user.default`.
    pub user: Option<String>,
    /// The only conversation that is told.
    pub conversation: Option<String>,
    /// Only open conversations of this folder and of folders above it are told.
    pub folder: Option<String>,
    /// The GitHub events that are taken; empty = the usual ones.
    pub events: Vec<String>,
    /// What becomes of a call, for the kinds json and standard_webhooks. The first rule that matches counts.
    pub rules: Vec<Rule>,
    /// How many calls a second are accepted; ten times as many in a burst.
    pub calls_per_second: u64,
}

/// The format of a source's calls.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum IngestKind {
    /// GitHub webhooks.
    Github,
    /// The webhook receiver of Prometheus Alertmanager.
    Alertmanager,
    /// The Standard Webhooks specification.
    StandardWebhooks,
    /// Any JSON, with rules.
    Json,
}

/// The sources by name.
pub type IngestSources = BTreeMap<String, IngestSource>;

/// An invalid field of a source: its name below `ingest.NAME`, empty for the source itself, and the message.
pub(super) type FieldMistake = (String, String);

const CALLS_PER_SECOND: u64 = 10;
const CALLS_PER_SECOND_MAX: i64 = 1000;
const SECRET_MIN: usize = 16;
const SECRET_MAX: usize = 1024;
const NAME_MAX: usize = 32;
const ORIGIN_MAX: usize = 128;
const FOLDER_MAX: usize = 1024;
const RULES_MAX: usize = 50;
const FIELDS: [&str; 11] = [
    "kind",
    "secret",
    "secret_file",
    "header",
    "origin",
    "user",
    "conversation",
    "folder",
    "events",
    "event",
    "calls_per_second",
];

impl IngestKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [Self::Github, Self::Alertmanager, Self::StandardWebhooks, Self::Json];

    /// The value in a configuration file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Github => "github",
            Self::Alertmanager => "alertmanager",
            Self::StandardWebhooks => "standard_webhooks",
            Self::Json => "json",
        }
    }
}

impl IngestSource {
    /// Parses the table of a source. A relative path is resolved against `base`.
    pub(super) fn parse(name: &str, value: &Value, base: &Path) -> Result<Self, FieldMistake> {
        check_name(name).map_err(|message| (String::new(), message))?;
        let table = value.as_table().ok_or((String::new(), "is no table; write [ingest.NAME]".to_owned()))?;
        let fields = Fields(table);
        fields.check_names()?;
        let kind = fields.kind()?;
        let source = Self {
            name: name.to_owned(),
            kind,
            secret: fields.secret()?,
            secret_file: fields.text("secret_file")?.map(|path| base.join(path)),
            header: fields.header(kind)?,
            origin: fields.origin(name)?,
            user: fields.id("user")?,
            conversation: fields.id("conversation")?,
            folder: fields.folder()?,
            events: fields.events(kind)?,
            rules: fields.rules(kind)?,
            calls_per_second: fields.calls_per_second()?,
        };
        match (&source.conversation, &source.folder) {
            (Some(_), Some(_)) => Err(mistake("folder", "and conversation are both set: keep one")),
            _ => Ok(source),
        }
    }

    /// The environment variable that may contain the secret.
    pub fn variable(name: &str) -> String {
        format!("BELLWIRE_INGEST_{}_SECRET", name.to_ascii_uppercase())
    }

    /// The secrets that are accepted; an error names the setting and the fix, and never repeats a secret.
    pub fn secrets(&self) -> Result<Vec<Secret>, String> {
        let (setting, texts) = match (&self.secret, &self.secret_file) {
            (Some(secret), _) => ("secret", vec![secret.reveal().to_owned()]),
            (None, Some(path)) => {
                let text = std::fs::read_to_string(path).map_err(|error| {
                    format!("ingest.{}.secret_file: {} cannot be read: {error}", self.name, path.display())
                })?;
                let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
                ("secret_file", lines.map(str::to_owned).collect())
            }
            (None, None) => ("secret", Vec::new()),
        };
        let name = &self.name;
        if texts.is_empty() {
            return Err(self.without_secret());
        }
        match texts.iter().find_map(|text| self.unusable(text)) {
            Some(why) => Err(format!("ingest.{name}.{setting} {why}")),
            None => Ok(texts.into_iter().map(Secret::new).collect()),
        }
    }

    /// The error of a source without a secret.
    pub(super) fn missing_secret(&self) -> Option<String> {
        (self.secret.is_none() && self.secret_file.is_none()).then(|| self.without_secret())
    }

    fn without_secret(&self) -> String {
        let (name, variable) = (&self.name, Self::variable(&self.name));
        format!("ingest.{name} has no secret, so that anybody could publish: set secret_file, secret or {variable}")
    }

    /// The settings in the form of a configuration file, without the secret.
    pub(super) fn to_toml(&self) -> Table {
        let mut table = Table::new();
        let mut set = |key: &str, value: Option<Value>| drop(value.map(|value| table.insert(key.to_owned(), value)));
        let text = |text: &Option<String>| text.clone().map(Value::String);
        set("kind", Some(self.kind.as_str().into()));
        set("secret", self.secret.as_ref().map(|_| super::setting::HIDDEN.into()));
        set("secret_file", self.secret_file.as_ref().map(|path| path.display().to_string().into()));
        set("header", text(&self.header));
        set("origin", Some(self.origin.clone().into()));
        set("user", text(&self.user));
        set("conversation", text(&self.conversation));
        set("folder", text(&self.folder));
        set("events", Some(self.events.clone()).filter(|list| !list.is_empty()).map(Value::from));
        set("calls_per_second", Some(Value::Integer(self.calls_per_second.cast_signed())));
        let rules: Vec<Value> = self.rules.iter().map(|rule| Value::Table(rule.to_toml())).collect();
        set("event", Some(rules).filter(|rules| !rules.is_empty()).map(Value::Array));
        table
    }

    /// Why a secret cannot be used.
    fn unusable(&self, secret: &str) -> Option<String> {
        let length = secret.len();
        if self.kind == IngestKind::StandardWebhooks {
            let is_key = signing_key(secret).is_some_and(|key| key.len() >= SECRET_MIN);
            return (!is_key).then(|| "is no signing secret: it has the form whsec_ and base64".to_owned());
        }
        (!(SECRET_MIN..=SECRET_MAX).contains(&length) || secret.contains(char::is_control)).then(|| {
            format!(
                "has {length} bytes; {SECRET_MIN} to {SECRET_MAX} without control characters are allowed, such as the \
                 output of `openssl rand -hex 32`"
            )
        })
    }
}

/// The key in a secret of Standard Webhooks.
pub(crate) fn signing_key(secret: &str) -> Option<Vec<u8>> {
    BASE64_STANDARD.decode(secret.strip_prefix("whsec_").unwrap_or(secret)).ok()
}

fn check_name(name: &str) -> Result<(), String> {
    let is_valid = name.len() <= NAME_MAX
        && name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_');
    match (is_valid, reserved_name(name)) {
        (false, _) => Err(format!(
            "is no name of a source; a lower-case letter and up to {} more of a-z, 0-9 and _ are allowed",
            NAME_MAX - 1
        )),
        (true, Some(_)) => Err("is reserved for Bellwire itself; choose another name".to_owned()),
        (true, None) => Ok(()),
    }
}

fn mistake(field: &str, message: impl Into<String>) -> FieldMistake {
    (field.to_owned(), message.into())
}

/// The fields of a source's table.
struct Fields<'a>(&'a Table);

impl Fields<'_> {
    fn check_names(&self) -> Result<(), FieldMistake> {
        let Some(unknown) = self.0.keys().find(|key| !FIELDS.contains(&key.as_str())) else { return Ok(()) };
        let message = match bellwire_core::nearest(unknown, FIELDS) {
            Some(near) => format!("is no setting of a source; did you mean {near}?"),
            None => format!("is no setting of a source; there are {}", FIELDS.join(", ")),
        };
        Err(mistake(unknown, message))
    }

    fn text(&self, field: &str) -> Result<Option<&str>, FieldMistake> {
        match self.0.get(field) {
            None => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.trim()).filter(|text| !text.is_empty())),
            // The error must not repeat a secret, even of the wrong type.
            Some(_) => Err(mistake(field, "is no text; a text is allowed")),
        }
    }

    fn kind(&self) -> Result<IngestKind, FieldMistake> {
        let text = self.text("kind")?.unwrap_or_default();
        let kind = IngestKind::ALL.into_iter().find(|kind| kind.as_str() == text);
        kind.ok_or_else(|| {
            let all = IngestKind::ALL.map(IngestKind::as_str).join(", ");
            mistake("kind", format!("is '{text}'; one of {all} is allowed"))
        })
    }

    fn secret(&self) -> Result<Option<Secret>, FieldMistake> {
        let both = self.0.contains_key("secret") && self.0.contains_key("secret_file");
        match self.text("secret")? {
            _ if both => Err(mistake("secret", "and secret_file are both set: keep one")),
            Some(super::setting::HIDDEN) => {
                Err(mistake("secret", "is what is shown instead of a secret; write the secret"))
            }
            secret => Ok(secret.map(Secret::new)),
        }
    }

    fn header(&self, kind: IngestKind) -> Result<Option<String>, FieldMistake> {
        let Some(text) = self.text("header")? else { return Ok(None) };
        if kind != IngestKind::Json {
            return Err(mistake("header", "is only for kind json; the others have headers of their own"));
        }
        match text.parse::<axum::http::HeaderName>() {
            Ok(name) => Ok(Some(name.to_string())),
            Err(_) => Err(mistake("header", format!("is '{text}'; the name of a header is allowed"))),
        }
    }

    fn origin(&self, name: &str) -> Result<String, FieldMistake> {
        let origin = self.text("origin")?.unwrap_or(name);
        let is_plain = origin.chars().count() <= ORIGIN_MAX && bellwire_core::person::one_line(origin) == origin;
        match reserved_origin(origin) {
            Some(reserved) => Err(mistake("origin", format!("'{reserved}' is reserved; name the sender"))),
            None if is_plain => Ok(origin.to_owned()),
            None => Err(mistake("origin", format!("must be 1 to {ORIGIN_MAX} visible characters"))),
        }
    }

    fn id(&self, field: &str) -> Result<Option<String>, FieldMistake> {
        let Some(id) = self.text(field)? else { return Ok(None) };
        match id == "*" || id.chars().count() > ID_MAX || id.contains(char::is_control) {
            true => Err(mistake(field, format!("is no id; one of at most {ID_MAX} characters is allowed"))),
            false => Ok(Some(id.to_owned())),
        }
    }

    fn folder(&self) -> Result<Option<String>, FieldMistake> {
        let Some(folder) = self.text("folder")? else { return Ok(None) };
        match Path::new(folder).is_absolute() && folder.len() <= FOLDER_MAX {
            true => Ok(Some(folder.to_owned())),
            false => Err(mistake("folder", format!("is '{folder}'; an absolute path is allowed"))),
        }
    }

    fn events(&self, kind: IngestKind) -> Result<Vec<String>, FieldMistake> {
        let Some(value) = self.0.get("events") else { return Ok(Vec::new()) };
        if kind != IngestKind::Github {
            return Err(mistake("events", "is only for kind github; others have rules, [[ingest.NAME.event]]"));
        }
        let known = crate::ingest::GITHUB_EVENTS;
        let wrong =
            |what: String| mistake("events", format!("has {what}; a list of these is allowed: {}", known.join(", ")));
        let list = value.as_array().ok_or_else(|| wrong("no list".to_owned()))?;
        let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
        let texts = texts.ok_or_else(|| wrong("something that is no text".to_owned()))?;
        match texts.iter().find(|text| !known.contains(text)) {
            Some(unknown) => Err(wrong(format!("'{unknown}'"))),
            None => Ok(texts.into_iter().map(str::to_owned).collect()),
        }
    }

    fn rules(&self, kind: IngestKind) -> Result<Vec<Rule>, FieldMistake> {
        let takes_rules = matches!(kind, IngestKind::Json | IngestKind::StandardWebhooks);
        let list = match self.0.get("event") {
            None if kind == IngestKind::Json => {
                return Err(mistake("event", "is missing: write [[ingest.NAME.event]] with the type of the event"));
            }
            None => return Ok(Vec::new()),
            Some(_) if !takes_rules => {
                return Err(mistake("event", "is only for the kinds json and standard_webhooks"));
            }
            Some(Value::Array(list)) if (1..=RULES_MAX).contains(&list.len()) => list,
            Some(_) => return Err(mistake("event", format!("must be 1 to {RULES_MAX} tables, [[ingest.NAME.event]]"))),
        };
        let rule = |(at, value): (usize, &Value)| {
            Rule::parse(value).map_err(|(field, message)| {
                let dot = if field.is_empty() { "" } else { "." };
                mistake(&format!("event[{at}]{dot}{field}"), message)
            })
        };
        list.iter().enumerate().map(rule).collect()
    }

    fn calls_per_second(&self) -> Result<u64, FieldMistake> {
        let wrong = || mistake("calls_per_second", format!("must be a whole number from 1 to {CALLS_PER_SECOND_MAX}"));
        match self.0.get("calls_per_second") {
            None => Ok(CALLS_PER_SECOND),
            Some(Value::Integer(number)) if (1..=CALLS_PER_SECOND_MAX).contains(number) => {
                u64::try_from(*number).map_err(|_| wrong())
            }
            Some(_) => Err(wrong()),
        }
    }
}

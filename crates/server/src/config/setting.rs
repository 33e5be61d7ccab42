use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use axum::http::Uri;
use toml::Value;

use super::{AllowedTarget, Config, EmailTls, LogFormat, Secret, TelegramMode};
use crate::channels::email::NamedAddress;
use crate::http::ID_MAX;

/// One setting: its key, its allowed values, and its field of [`Config`].
pub(super) struct Setting {
    pub(super) key: &'static str,
    kind: SettingKind,
}

/// The type and bounds of a setting, with access to its field.
enum SettingKind {
    Address(fn(&mut Config) -> &mut SocketAddr),
    Url(fn(&mut Config) -> &mut Option<String>),
    Hosts(fn(&mut Config) -> &mut Vec<String>),
    Origins(fn(&mut Config) -> &mut Vec<String>),
    Folder(fn(&mut Config) -> &mut Option<PathBuf>),
    File(fn(&mut Config) -> &mut Option<PathBuf>),
    Count(RangeInclusive<u64>, fn(&mut Config) -> &mut usize),
    Number(RangeInclusive<u64>, fn(&mut Config) -> &mut u64),
    Format(fn(&mut Config) -> &mut LogFormat),
    Level(fn(&mut Config) -> &mut String),
    Host(fn(&mut Config) -> &mut String),
    Port(fn(&mut Config) -> &mut u16),
    Encryption(fn(&mut Config) -> &mut EmailTls),
    Mode(fn(&mut Config) -> &mut TelegramMode),
    Word(fn(&mut Config) -> &mut String),
    Person(fn(&mut Config) -> &mut String),
    Hidden(fn(&mut Config) -> &mut Option<Secret>),
    Sender(fn(&mut Config) -> &mut NamedAddress),
    Names(fn(&mut Config) -> &mut Vec<String>),
    AllowLists(fn(&mut Config) -> &mut AllowLists),
}

/// The allowed targets of each origin.
type AllowLists = BTreeMap<String, Vec<AllowedTarget>>;

/// Every setting, in the order of the default file.
#[rustfmt::skip]
pub(super) const SETTINGS: &[Setting] = &[
    Setting { key: "server.listen",                 kind: SettingKind::Address(|c| &mut c.listen) },
    Setting { key: "server.public_url",             kind: SettingKind::Url(|c| &mut c.public_url) },
    Setting { key: "server.allowed_hosts",          kind: SettingKind::Hosts(|c| &mut c.allowed_hosts) },
    Setting { key: "server.allowed_origins",        kind: SettingKind::Origins(|c| &mut c.allowed_origins) },
    Setting { key: "data.dir",                      kind: SettingKind::Folder(|c| &mut c.data_dir) },
    Setting { key: "data.mailbox_cache_bytes",      kind: SettingKind::Count(262_144..=1 << 40, |c| &mut c.sizes.mailbox_cache_bytes) },
    Setting { key: "data.mailbox_log_bytes",        kind: SettingKind::Count(4096..=1 << 30, |c| &mut c.sizes.mailbox_log_bytes) },
    Setting { key: "limits.body_bytes",             kind: SettingKind::Count(131_072..=1_073_741_824, |c| &mut c.limits.body_bytes) },
    Setting { key: "limits.batch_events",           kind: SettingKind::Count(1..=1000, |c| &mut c.limits.batch_events) },
    Setting { key: "limits.request_seconds",        kind: SettingKind::Number(1..=300, |c| &mut c.limits.request_seconds) },
    Setting { key: "limits.concurrent_requests",    kind: SettingKind::Count(1..=100_000, |c| &mut c.limits.concurrent_requests) },
    Setting { key: "limits.streams",                kind: SettingKind::Count(1..=1_000_000, |c| &mut c.limits.streams) },
    Setting { key: "limits.concurrent_per_token",   kind: SettingKind::Count(0..=100_000, |c| &mut c.limits.concurrent_per_token) },
    Setting { key: "limits.streams_per_token",      kind: SettingKind::Count(0..=1_000_000, |c| &mut c.limits.streams_per_token) },
    Setting { key: "limits.mcp_sessions_per_token", kind: SettingKind::Count(0..=10_000, |c| &mut c.limits.mcp_sessions_per_token) },
    Setting { key: "limits.injections_per_second",  kind: SettingKind::Number(0..=1_000_000, |c| &mut c.limits.injections_per_second) },
    Setting { key: "limits.bytes_per_day",          kind: SettingKind::Number(0..=1_000_000_000_000_000, |c| &mut c.limits.bytes_per_day) },
    Setting { key: "limits.mcp_session_idle_seconds", kind: SettingKind::Number(1..=604_800, |c| &mut c.limits.mcp_session_idle_seconds) },
    Setting { key: "limits.publish_per_second",     kind: SettingKind::Number(0..=1_000_000, |c| &mut c.limits.publish_per_second) },
    Setting { key: "limits.publish_burst",          kind: SettingKind::Number(1..=10_000_000, |c| &mut c.limits.publish_burst) },
    Setting { key: "limits.notifications_per_hour", kind: SettingKind::Number(1..=10_000, |c| &mut c.limits.notifications_per_hour) },
    Setting { key: "limits.reminders_per_hour",     kind: SettingKind::Number(0..=10_000, |c| &mut c.limits.reminders_per_hour) },
    Setting { key: "limits.infos_per_hour",         kind: SettingKind::Number(0..=10_000, |c| &mut c.limits.infos_per_hour) },
    Setting { key: "limits.warnings_per_hour",      kind: SettingKind::Number(0..=10_000, |c| &mut c.limits.warnings_per_hour) },
    Setting { key: "limits.toasts_per_hour",        kind: SettingKind::Number(1..=10_000, |c| &mut c.limits.toasts_per_hour) },
    Setting { key: "retention.events_days",         kind: SettingKind::Number(7..=3650, |c| &mut c.retention.events_days) },
    Setting { key: "retention.answers_days",        kind: SettingKind::Number(7..=3650, |c| &mut c.retention.answers_days) },
    Setting { key: "retention.read_inbox_days",     kind: SettingKind::Number(1..=3650, |c| &mut c.retention.read_inbox_days) },
    Setting { key: "retention.unread_inbox_days",   kind: SettingKind::Number(1..=3650, |c| &mut c.retention.unread_inbox_days) },
    Setting { key: "retention.conversations_days",  kind: SettingKind::Number(1..=3650, |c| &mut c.retention.conversations_days) },
    Setting { key: "subscribers.dir",               kind: SettingKind::Folder(|c| &mut c.subscribers_dir) },
    Setting { key: "user.default",                  kind: SettingKind::Person(|c| &mut c.default_user) },
    Setting { key: "email.host",                    kind: SettingKind::Host(|c| &mut c.email.host) },
    Setting { key: "email.port",                    kind: SettingKind::Port(|c| &mut c.email.port) },
    Setting { key: "email.tls",                     kind: SettingKind::Encryption(|c| &mut c.email.tls) },
    Setting { key: "email.ca_file",                 kind: SettingKind::File(|c| &mut c.email.ca_file) },
    Setting { key: "email.username",                kind: SettingKind::Word(|c| &mut c.email.username) },
    Setting { key: "email.password",                kind: SettingKind::Hidden(|c| &mut c.email.password) },
    Setting { key: "email.password_file",           kind: SettingKind::File(|c| &mut c.email.password_file) },
    Setting { key: "email.from",                    kind: SettingKind::Sender(|c| &mut c.email.from) },
    Setting { key: "email.hello",                   kind: SettingKind::Host(|c| &mut c.email.hello) },
    Setting { key: "email.step_seconds",            kind: SettingKind::Number(1..=300, |c| &mut c.email.step_seconds) },
    Setting { key: "email.answer_seconds",          kind: SettingKind::Number(10..=1800, |c| &mut c.email.answer_seconds) },
    Setting { key: "email.workers",                 kind: SettingKind::Count(1..=64, |c| &mut c.email.workers) },
    Setting { key: "telegram.token",                kind: SettingKind::Hidden(|c| &mut c.telegram.token) },
    Setting { key: "telegram.token_file",           kind: SettingKind::File(|c| &mut c.telegram.token_file) },
    Setting { key: "telegram.api_url",              kind: SettingKind::Url(|c| &mut c.telegram.api_url) },
    Setting { key: "telegram.mode",                 kind: SettingKind::Mode(|c| &mut c.telegram.mode) },
    Setting { key: "telegram.webhook_secret_file",  kind: SettingKind::File(|c| &mut c.telegram.webhook_secret_file) },
    Setting { key: "telegram.messages_per_second",  kind: SettingKind::Number(0..=1000, |c| &mut c.telegram.messages_per_second) },
    Setting { key: "telegram.chat_interval_ms",     kind: SettingKind::Number(0..=60_000, |c| &mut c.telegram.chat_interval_ms) },
    Setting { key: "telegram.answer_seconds",       kind: SettingKind::Number(1..=60, |c| &mut c.telegram.answer_seconds) },
    Setting { key: "notify.allow",                  kind: SettingKind::AllowLists(|c| &mut c.notify.allow) },
    Setting { key: "switchboard.url",               kind: SettingKind::Url(|c| &mut c.switchboard.url) },
    Setting { key: "switchboard.token_file",        kind: SettingKind::File(|c| &mut c.switchboard.token_file) },
    Setting { key: "messenger.url",                 kind: SettingKind::Url(|c| &mut c.messenger.remote.url) },
    Setting { key: "messenger.token_file",          kind: SettingKind::File(|c| &mut c.messenger.remote.token_file) },
    Setting { key: "messenger.trusted_route_callers", kind: SettingKind::Names(|c| &mut c.messenger.trusted_route_callers) },
    Setting { key: "redis.url",                     kind: SettingKind::Hidden(|c| &mut c.redis.url) },
    Setting { key: "redis.url_file",                kind: SettingKind::File(|c| &mut c.redis.url_file) },
    Setting { key: "redis.wait_ms",                 kind: SettingKind::Number(1..=1000, |c| &mut c.redis.wait_ms) },
    Setting { key: "log.format",                    kind: SettingKind::Format(|c| &mut c.log.format) },
    Setting { key: "log.level",                     kind: SettingKind::Level(|c| &mut c.log.level) },
];

/// Shown instead of a secret.
pub(super) const HIDDEN: &str = "(hidden)";

/// Short names of environment variables.
pub(super) const SHORT: &[(&str, &str)] = &[("BELLWIRE_LISTEN", "server.listen"), ("BELLWIRE_LOG", "log.level")];

/// The setting with this key.
pub(super) fn find(key: &str) -> Option<&'static Setting> {
    SETTINGS.iter().find(|setting| setting.key == key)
}

impl Setting {
    /// Its environment variable: `BELLWIRE_LIMITS_STREAMS` for `limits.streams`.
    pub(super) fn variable(&self) -> String {
        format!("BELLWIRE_{}", self.key.replace('.', "_").to_ascii_uppercase())
    }

    /// Sets the value from a file. A relative path is resolved against the file's directory, `base`.
    pub(super) fn write(&self, config: &mut Config, value: &Value, base: &Path) -> Result<(), String> {
        let wrong = || format!("is {}; {} is allowed", kind_of(value), self.allowed());
        match (&self.kind, value) {
            (SettingKind::Count(..) | SettingKind::Number(..) | SettingKind::Port(_), Value::Integer(number)) => {
                self.write_number(config, *number)
            }
            (SettingKind::AllowLists(place), Value::Table(table)) => {
                *place(config) =
                    table.iter().map(|(origin, list)| allow_list(origin, list)).collect::<Result<_, _>>()?;
                Ok(())
            }
            (SettingKind::Hosts(_) | SettingKind::Origins(_) | SettingKind::Names(_), Value::Array(list)) => {
                let texts: Option<Vec<&str>> = list.iter().map(Value::as_str).collect();
                self.write_list(config, &texts.ok_or_else(wrong)?)
            }
            (
                SettingKind::Count(..)
                | SettingKind::Number(..)
                | SettingKind::Port(_)
                | SettingKind::Hosts(_)
                | SettingKind::Origins(_)
                | SettingKind::Names(_)
                | SettingKind::AllowLists(_),
                _,
            ) => Err(wrong()),
            (_, Value::String(text)) => self.write_text(config, text, base),
            // The error must not repeat a secret, even of the wrong type.
            (SettingKind::Hidden(_), _) => Err(format!("is no text; {} is allowed", self.allowed())),
            _ => Err(wrong()),
        }
    }

    /// Sets the value from the text of a variable or a flag; the items of a list are separated by commas.
    pub(super) fn write_untyped(&self, config: &mut Config, text: &str) -> Result<(), String> {
        match &self.kind {
            SettingKind::Count(..) | SettingKind::Number(..) | SettingKind::Port(_) => {
                let number = text.trim().parse::<i64>();
                let number = number.map_err(|_| format!("is '{text}'; {} is allowed", self.allowed()))?;
                self.write_number(config, number)
            }
            SettingKind::Hosts(_) | SettingKind::Origins(_) | SettingKind::Names(_) | SettingKind::AllowLists(_) => {
                let parts: Vec<&str> = text.split(',').map(str::trim).filter(|part| !part.is_empty()).collect();
                self.write_list(config, &parts)
            }
            _ => self.write_text(config, text, Path::new("")),
        }
    }

    /// The value in the form of a file.
    pub(super) fn read(&self, config: &Config) -> Value {
        // The accessors need a mutable reference, so reading uses a copy.
        let mut copy = config.clone();
        let path = |path: &Option<PathBuf>| path.as_ref().map(|path| path.display().to_string()).unwrap_or_default();
        let list = |list: &Vec<String>| Value::Array(list.iter().cloned().map(Value::String).collect());
        match &self.kind {
            SettingKind::Address(place) => Value::String(place(&mut copy).to_string()),
            SettingKind::Url(place) => Value::String(place(&mut copy).clone().unwrap_or_default()),
            SettingKind::Hosts(place) | SettingKind::Origins(place) | SettingKind::Names(place) => {
                list(place(&mut copy))
            }
            SettingKind::AllowLists(place) => {
                let targets =
                    |list: &Vec<AllowedTarget>| list.iter().map(|one| Value::String(one.to_string())).collect();
                let lists = place(&mut copy).iter().map(|(origin, list)| (origin.clone(), Value::Array(targets(list))));
                Value::Table(lists.collect())
            }
            SettingKind::Folder(place) | SettingKind::File(place) => Value::String(path(place(&mut copy))),
            SettingKind::Count(_, place) => Value::Integer(i64::try_from(*place(&mut copy)).unwrap_or(i64::MAX)),
            SettingKind::Number(_, place) => Value::Integer(i64::try_from(*place(&mut copy)).unwrap_or(i64::MAX)),
            SettingKind::Format(place) => Value::String(place(&mut copy).as_str().to_owned()),
            SettingKind::Level(place)
            | SettingKind::Host(place)
            | SettingKind::Word(place)
            | SettingKind::Person(place) => Value::String(place(&mut copy).clone()),
            SettingKind::Port(place) => Value::Integer(i64::from(*place(&mut copy))),
            SettingKind::Encryption(place) => Value::String(place(&mut copy).as_str().to_owned()),
            SettingKind::Mode(place) => Value::String(place(&mut copy).as_str().to_owned()),
            SettingKind::Hidden(place) => Value::String(place(&mut copy).as_ref().map_or("", |_| HIDDEN).to_owned()),
            SettingKind::Sender(place) => Value::String(place(&mut copy).to_string()),
        }
    }

    fn allowed(&self) -> String {
        match &self.kind {
            SettingKind::Address(_) => "an address and a port, such as 127.0.0.1:2355 or [::]:2355,".into(),
            SettingKind::Url(_) => "an address without a path, such as https://bell.example.org,".into(),
            SettingKind::Hosts(_) => "a list of host names, such as [\"bell.example.org\"],".into(),
            SettingKind::Origins(_) => "a list of web origins, such as [\"https://console.example.org\"],".into(),
            SettingKind::Folder(_) => "the path of a folder".into(),
            SettingKind::File(_) => "the path of a file".into(),
            SettingKind::Count(range, _) | SettingKind::Number(range, _) => {
                format!("a whole number from {} to {}", range.start(), range.end())
            }
            SettingKind::Format(_) => "auto, text or json".into(),
            SettingKind::Level(_) => "off, error, warn, info, debug, trace, or part=level with commas between,".into(),
            SettingKind::Host(_) => "a host name, such as smtp.example.org,".into(),
            SettingKind::Port(_) => "a whole number from 1 to 65535".into(),
            SettingKind::Encryption(_) => "starttls, implicit or none".into(),
            SettingKind::Mode(_) => "poll, webhook or send".into(),
            SettingKind::Word(_) | SettingKind::Hidden(_) => "a text on one line".into(),
            SettingKind::Names(_) => "a list of origins, such as [\"switchboard\"],".into(),
            SettingKind::AllowLists(_) => {
                "a table of origins with lists of targets, such as { health = [\"email:ada@example.org\"] },".into()
            }
            SettingKind::Person(_) => "the id of one person, such as me,".into(),
            SettingKind::Sender(_) => "a name and an address, such as Bellwire <bell@example.org>,".into(),
        }
    }

    fn write_number(&self, config: &mut Config, number: i64) -> Result<(), String> {
        let wrong = || format!("is {number}; {} is allowed", self.allowed());
        let fitting = |range: &RangeInclusive<u64>| u64::try_from(number).ok().filter(|number| range.contains(number));
        match &self.kind {
            SettingKind::Number(range, place) => *place(config) = fitting(range).ok_or_else(wrong)?,
            SettingKind::Count(range, place) => {
                let fits = fitting(range).and_then(|number| usize::try_from(number).ok());
                *place(config) = fits.ok_or_else(wrong)?;
            }
            SettingKind::Port(place) => {
                *place(config) = u16::try_from(number).ok().filter(|port| *port > 0).ok_or_else(wrong)?;
            }
            _ => return Err(wrong()),
        }
        Ok(())
    }

    fn write_list(&self, config: &mut Config, list: &[&str]) -> Result<(), String> {
        match &self.kind {
            SettingKind::Hosts(place) => {
                *place(config) = list.iter().map(|text| host(text)).collect::<Result<_, _>>()?
            }
            SettingKind::Origins(place) => {
                *place(config) = list.iter().map(|text| origin(text)).collect::<Result<_, _>>()?
            }
            SettingKind::Names(place) => {
                *place(config) = list.iter().map(|text| name(text)).collect::<Result<_, _>>()?
            }
            SettingKind::AllowLists(place) => *place(config) = allow_lists(list)?,
            _ => return Err(format!("is a list; {} is allowed", self.allowed())),
        }
        Ok(())
    }

    fn write_text(&self, config: &mut Config, text: &str, base: &Path) -> Result<(), String> {
        let text = text.trim();
        let wrong = || format!("is '{text}'; {} is allowed", self.allowed());
        match &self.kind {
            SettingKind::Address(place) => *place(config) = text.parse().map_err(|_| wrong())?,
            SettingKind::Url(place) => {
                *place(config) = Some(text).filter(|text| !text.is_empty()).map(url).transpose()?
            }
            SettingKind::Folder(place) | SettingKind::File(place) => *place(config) = folder(text, base)?,
            SettingKind::Format(place) => {
                let formats = [LogFormat::Auto, LogFormat::Text, LogFormat::Json];
                *place(config) = formats.into_iter().find(|one| one.as_str() == text).ok_or_else(wrong)?;
            }
            SettingKind::Level(place) => {
                *place(config) = Some(text).filter(|text| is_level(text)).ok_or_else(wrong)?.into()
            }
            SettingKind::Host(place) => *place(config) = if text.is_empty() { String::new() } else { host(text)? },
            SettingKind::Encryption(place) => {
                *place(config) = EmailTls::ALL.into_iter().find(|one| one.as_str() == text).ok_or_else(wrong)?;
            }
            SettingKind::Mode(place) => {
                *place(config) = TelegramMode::ALL.into_iter().find(|one| one.as_str() == text).ok_or_else(wrong)?;
            }
            SettingKind::Word(place) => {
                *place(config) = Some(text).filter(|text| !text.contains(char::is_control)).ok_or_else(wrong)?.into();
            }
            SettingKind::Person(place) => {
                *place(config) = Some(text).filter(|id| is_person(id)).ok_or_else(wrong)?.into()
            }
            SettingKind::Hidden(place) => *place(config) = secret(text)?,
            SettingKind::Sender(place) => {
                *place(config) = NamedAddress::parse(text).map_err(|why| format!("is wrong: {why}"))?
            }
            _ => return Err(wrong()),
        }
        Ok(())
    }
}

/// Whether it is the id of one person.
fn is_person(id: &str) -> bool {
    !id.is_empty() && id != "*" && id.chars().count() <= ID_MAX && !id.contains(char::is_control)
}

fn kind_of(value: &Value) -> String {
    match value {
        Value::String(text) => format!("the text \"{text}\""),
        Value::Integer(number) => format!("the number {number}"),
        Value::Float(number) => format!("the number {number}"),
        Value::Boolean(yes) => yes.to_string(),
        Value::Datetime(time) => format!("the time {time}"),
        Value::Array(_) => "a list of something else".into(),
        Value::Table(_) => "a table".into(),
    }
}

/// Accepts a URL without a path, such as `https://bell.example.org:8443`.
fn url(text: &str) -> Result<String, String> {
    let wrong = |why: &str| format!("is '{text}', {why}; write it like https://bell.example.org");
    let uri: Uri = text.parse().map_err(|_| wrong("which is no URL"))?;
    let (Some("http" | "https"), Some(authority)) = (uri.scheme_str(), uri.authority()) else {
        return Err(wrong("which does not begin with http:// or https:// and a host name"));
    };
    if authority.as_str().contains('@') {
        return Err(wrong("which has a user or password in it"));
    }
    if !matches!(uri.path(), "" | "/") || text.contains(['?', '#']) {
        return Err(wrong("which has a path; only scheme, host and port are allowed"));
    }
    Ok(text.trim_end_matches('/').to_ascii_lowercase())
}

fn host(text: &str) -> Result<String, String> {
    let wrong = |why: &str| Err(format!("has '{text}', {why}; write only the name, like bell.example.org"));
    let bare = text.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(text);
    match text {
        "" => wrong("which is empty"),
        text if text.contains('*') => wrong("but names are taken as they stand"),
        text if text.contains("://") => wrong("which has a scheme"),
        text if text.contains(['/', '@', ' ']) => wrong("which is no host name"),
        // A colon is allowed only inside the brackets of an IPv6 address.
        text if text.contains(':') && bare.len() == text.len() => wrong("which has a port"),
        text => Ok(text.to_ascii_lowercase()),
    }
}

fn origin(text: &str) -> Result<String, String> {
    let wrong = |why: &str| Err(format!("has '{text}', {why}; write it like https://console.example.org"));
    if text.contains('*') {
        return wrong("but every page of the web is too many: name those you trust");
    }
    match url(text) {
        Ok(_) if text.ends_with('/') => wrong("which ends with a slash; an origin has no path"),
        Ok(origin) => Ok(origin),
        Err(_) => wrong("which is no web origin: scheme, host name and port, without a path"),
    }
}

/// The name of an origin.
fn name(text: &str) -> Result<String, String> {
    let text = text.trim();
    match text.is_empty() || text.contains(char::is_control) {
        true => Err(format!("has '{text}'; write the name of an origin, like \"health\"")),
        false => Ok(text.to_owned()),
    }
}

fn allow_list(origin: &str, list: &Value) -> Result<(String, Vec<AllowedTarget>), String> {
    let texts: Option<Vec<&str>> = list.as_array().and_then(|list| list.iter().map(Value::as_str).collect());
    let wrong =
        || format!("has '{origin}' with {}; a list of texts like \"email:ada@example.org\" is allowed", kind_of(list));
    let targets = texts.ok_or_else(wrong)?.into_iter().map(AllowedTarget::parse).collect::<Result<_, _>>()?;
    Ok((name(origin)?, targets))
}

/// From the environment: `health=email:ada@example.org,health=telegram:123`.
fn allow_lists(list: &[&str]) -> Result<AllowLists, String> {
    let mut lists = AllowLists::new();
    for text in list {
        let wrong = || format!("has '{text}'; write origin, channel and target, like \"health=email:ada@example.org\"");
        let (origin, target) = text.split_once('=').ok_or_else(wrong)?;
        lists.entry(name(origin)?).or_default().push(AllowedTarget::parse(target)?);
    }
    Ok(lists)
}

fn folder(text: &str, base: &Path) -> Result<Option<PathBuf>, String> {
    match text {
        "" => Ok(None),
        text if text.starts_with('~') => Err(format!("is '{text}'; write the whole path instead of ~")),
        text => Ok(Some(base.join(text))),
    }
}

/// An error never repeats a secret. The placeholder of `bellwire config` is refused, so that its output cannot be pasted back.
fn secret(text: &str) -> Result<Option<Secret>, String> {
    match text {
        "" => Ok(None),
        HIDDEN => Err(format!("is '{HIDDEN}', which is what is shown instead of a password; write the password")),
        text if text.contains(char::is_control) => Err("has a control character in it; a text is allowed".to_owned()),
        text => Ok(Some(Secret::new(text))),
    }
}

fn is_level(text: &str) -> bool {
    let level = |word: &str| ["off", "error", "warn", "info", "debug", "trace"].contains(&word);
    let part = |part: &str| match part.trim().split_once('=') {
        Some((name, word)) => !name.is_empty() && level(word),
        None => level(part.trim()),
    };
    text.split(',').all(part)
}

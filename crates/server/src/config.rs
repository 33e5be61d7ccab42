//! The settings, their defaults and bounds.
//!
//! [`Config`] is a plain struct for tests and for programs that embed the hub; `Config::default()` is the parsed
//! `bellwire.default.toml`. [`load`] applies a file, the environment and flags over it and records the source of each
//! value. Loading reads no file and no variable: the caller passes the texts in.

mod check;
mod email;
mod file;
mod ingest;
mod load;
mod notify;
mod redis;
mod secret;
mod setting;
mod show;
mod telegram;
mod warning;

pub use email::{EmailConfig, EmailTls};
pub(crate) use ingest::signing_key;
pub use ingest::{IngestKind, IngestSource, IngestSources};
pub use load::{ConfigProblem, ConfigProblems, ConfigSources, Flag, LoadedConfig, SettingSource, load};
pub use notify::{AllowedTarget, MessengerConfig, NotifyConfig, RemoteConfig};
pub use redis::RedisConfig;
pub use secret::Secret;
pub use telegram::{TelegramConfig, TelegramMode};
pub use warning::ConfigWarning;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;

/// The default file, with its comments.
pub const DEFAULT_FILE: &str = include_str!("../../../bellwire.default.toml");

/// The settings of a hub. `Config::default()` works as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The address it listens on.
    pub listen: SocketAddr,
    /// The URL that clients use, without a path; none = the address it listens on.
    pub public_url: Option<String>,
    /// Host names it answers to besides its own address.
    pub allowed_hosts: Vec<String>,
    /// Web origins that may call it from a browser.
    pub allowed_origins: Vec<String>,
    /// The data directory; none = in memory, for tests.
    pub data_dir: Option<PathBuf>,
    /// The sizes of the store's mailbox cache and log.
    pub sizes: bellwire_store::Sizes,
    /// Limits on requests, tokens and people.
    pub limits: Limits,
    /// How long data is kept.
    pub retention: RetentionConfig,
    /// A folder of the operator's own subscribers; none = only the bundled ones.
    pub subscribers_dir: Option<PathBuf>,
    /// The person of this machine, who is signed in by the link that `bellwire serve` prints.
    pub default_user: String,
    /// The mail server for notifications.
    pub email: EmailConfig,
    /// The Telegram bot for notifications.
    pub telegram: TelegramConfig,
    /// The sources of webhooks.
    pub ingest: IngestSources,
    /// What `notify` may do beyond a person's own targets.
    pub notify: NotifyConfig,
    /// Where the Switchboard runs.
    pub switchboard: RemoteConfig,
    /// Where the Messenger runs, and whom it trusts.
    pub messenger: MessengerConfig,
    /// The Redis that caches refusals of the hourly limits.
    pub redis: RedisConfig,
    /// The log.
    pub log: LogConfig,
}

/// Limits on requests, tokens and people.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest request body, in bytes.
    pub body_bytes: usize,
    /// How many events one call may publish.
    pub batch_events: usize,
    /// The timeout of a request.
    pub request_seconds: u64,
    /// How many requests may run at once.
    pub concurrent_requests: usize,
    /// How many streams may be open at once.
    pub streams: usize,
    /// How many requests of one token may run at once; 0 = no limit.
    pub concurrent_per_token: usize,
    /// How many streams one token may have open at once; 0 = no limit.
    pub streams_per_token: usize,
    /// How many MCP sessions one token may have; 0 = no limit.
    pub mcp_sessions_per_token: usize,
    /// How many injections a second one token may make; 0 = no limit.
    pub injections_per_second: u64,
    /// How many bytes of request bodies one token may send in a day of UTC; 0 = no limit.
    pub bytes_per_day: u64,
    /// The idle timeout of an MCP session.
    pub mcp_session_idle_seconds: u64,
    /// How many events a second one token may publish; 0 = no limit.
    pub publish_per_second: u64,
    /// How many events a token may publish in a burst.
    pub publish_burst: u64,
    /// How many notifications one person may get within any 60 minutes.
    pub notifications_per_hour: u64,
    /// A separate limit for reminders; 0 = they count as notifications.
    pub reminders_per_hour: u64,
    /// The same for notifications of type info.
    pub infos_per_hour: u64,
    /// The same for warnings.
    pub warnings_per_hour: u64,
    /// How many toasts one person may get within any 60 minutes.
    pub toasts_per_hour: u64,
}

/// How long data is kept, in days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionConfig {
    /// Events, their traces, and their client event ids.
    pub events_days: u64,
    /// Answers of injections, by call id.
    pub answers_days: u64,
    /// Inbox items that the person has read.
    pub read_inbox_days: u64,
    /// What a person has not read.
    pub unread_inbox_days: u64,
    /// Unused conversations and mailboxes without anything pending.
    pub conversations_days: u64,
}

/// The settings of the log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// The format of a line.
    pub format: LogFormat,
    /// The filter: a level, or a list of `part=level` separated by commas.
    pub level: String,
}

/// The format of a log line.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// Readable text.
    Text,
    /// One JSON object per line.
    Json,
}

impl Default for Config {
    fn default() -> Self {
        load::defaults()
    }
}

impl Config {
    /// The accepted `Host` names: loopback, the listen address, the host of `public_url`, and `allowed_hosts`.
    pub(crate) fn allowed_hosts(&self) -> Arc<Vec<String>> {
        let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        let listen = match self.listen.ip() {
            IpAddr::V4(ip) => ip.to_string(),
            IpAddr::V6(ip) => format!("[{ip}]"),
        };
        let others = [listen].into_iter().chain(self.public_host());
        Arc::new(own.into_iter().chain(others).chain(self.allowed_hosts.iter().cloned()).collect())
    }

    fn public_host(&self) -> Option<String> {
        let uri: Uri = self.public_url.as_deref()?.parse().ok()?;
        uri.host().map(str::to_owned)
    }

    /// Placeholder values; the default file sets every one of them.
    fn blank() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 0)),
            public_url: None,
            allowed_hosts: Vec::new(),
            allowed_origins: Vec::new(),
            data_dir: None,
            sizes: bellwire_store::Sizes { mailbox_cache_bytes: 0, mailbox_log_bytes: 0 },
            limits: Limits {
                body_bytes: 0,
                batch_events: 0,
                request_seconds: 0,
                concurrent_requests: 0,
                streams: 0,
                concurrent_per_token: 0,
                streams_per_token: 0,
                mcp_sessions_per_token: 0,
                injections_per_second: 0,
                bytes_per_day: 0,
                mcp_session_idle_seconds: 0,
                publish_per_second: 0,
                publish_burst: 0,
                notifications_per_hour: 0,
                reminders_per_hour: 0,
                infos_per_hour: 0,
                warnings_per_hour: 0,
                toasts_per_hour: 0,
            },
            retention: RetentionConfig {
                events_days: 0,
                answers_days: 0,
                read_inbox_days: 0,
                unread_inbox_days: 0,
                conversations_days: 0,
            },
            subscribers_dir: None,
            default_user: String::new(),
            email: EmailConfig::blank(),
            telegram: TelegramConfig::blank(),
            ingest: IngestSources::new(),
            notify: NotifyConfig::default(),
            switchboard: RemoteConfig::default(),
            messenger: MessengerConfig::default(),
            redis: RedisConfig::blank(),
            log: LogConfig { format: LogFormat::Auto, level: String::new() },
        }
    }
}

impl Limits {
    pub(crate) fn request_timeout(&self) -> Duration {
        Duration::from_secs(self.request_seconds)
    }
}

impl LogFormat {
    /// The value in a configuration file.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Text => "text",
            Self::Json => "json",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_file_is_the_defaults() {
        let config = Config::default();
        assert_eq!(config.listen.to_string(), "127.0.0.1:2355");
        assert_eq!((config.public_url, config.data_dir, config.subscribers_dir), (None, None, None));
        assert_eq!((config.allowed_hosts, config.allowed_origins), (vec![], vec![]));
        let limits = Limits {
            body_bytes: 16 * 1024 * 1024,
            batch_events: 1000,
            request_seconds: 30,
            concurrent_requests: 1024,
            streams: 10_000,
            concurrent_per_token: 256,
            streams_per_token: 1000,
            mcp_sessions_per_token: 200,
            injections_per_second: 200,
            bytes_per_day: 10 * 1024 * 1024 * 1024,
            mcp_session_idle_seconds: 1800,
            publish_per_second: 1000,
            publish_burst: 5000,
            notifications_per_hour: 30,
            reminders_per_hour: 0,
            infos_per_hour: 0,
            warnings_per_hour: 0,
            toasts_per_hour: 60,
        };
        assert_eq!(config.limits, limits);
        let expected = RetentionConfig {
            events_days: 30,
            answers_days: 7,
            read_inbox_days: 90,
            unread_inbox_days: 365,
            conversations_days: 90,
        };
        assert_eq!(config.retention, expected);
        let email = EmailConfig {
            port: 587,
            from: crate::channels::email::NamedAddress::parse("Bellwire <bellwire@localhost>").expect("a mailbox"),
            step_seconds: 30,
            answer_seconds: 600,
            workers: 4,
            ..EmailConfig::blank()
        };
        assert_eq!(config.email, email);
        let telegram = TelegramConfig {
            api_url: Some("https://api.telegram.org".into()),
            messages_per_second: 30,
            chat_interval_ms: 1000,
            answer_seconds: 20,
            ..TelegramConfig::blank()
        };
        assert_eq!(config.telegram, telegram);
        assert_eq!((config.notify, config.switchboard), (NotifyConfig::default(), RemoteConfig::default()));
        assert_eq!(config.messenger.trusted_route_callers, ["switchboard"]);
        assert_eq!(config.redis, RedisConfig { wait_ms: 5, ..RedisConfig::blank() });
        assert_eq!(config.log, LogConfig { format: LogFormat::Auto, level: "info".into() });
    }

    #[test]
    fn the_public_address_is_a_host_it_answers_to() {
        let listen = "[fd00::1]:80".parse().expect("an address");
        let config = Config { listen, public_url: Some("https://bell.example.org:8443".into()), ..Config::default() };
        let hosts = config.allowed_hosts();
        for host in ["localhost", "[fd00::1]", "bell.example.org"] {
            assert!(hosts.iter().any(|one| one == host), "{host} is missing in {hosts:?}");
        }
    }
}

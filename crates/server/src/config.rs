//! Every setting, its default and its bounds.
//!
//! [`Config`] is a plain struct for tests and for programs that embed the hub; `Config::default()` is the file
//! `bellwire.default.toml`, read. [`load`] puts a file, the environment and flags over it and remembers where each value
//! came from. Nothing here reads a file or a variable: the caller brings the texts.

mod check;
mod email;
mod file;
mod load;
mod nearest;
mod redis;
mod secret;
mod setting;
mod show;

pub use email::{EmailConfig, EmailTls};
pub use load::{ConfigProblem, ConfigProblems, ConfigSources, Flag, LoadedConfig, SettingSource, load};
pub use redis::RedisConfig;
pub use secret::Secret;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::http::Uri;

/// The default file, with its comments.
pub const DEFAULT_FILE: &str = include_str!("../../../bellwire.default.toml");

/// How a hub runs. `Config::default()` needs nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Under which address it is reached, without a path; none = the one it listens on.
    pub public_url: Option<String>,
    /// Host names it answers to besides its own address.
    pub allowed_hosts: Vec<String>,
    /// Web origins that may call it from a browser.
    pub allowed_origins: Vec<String>,
    /// Where its data lies; none = in memory, for tests.
    pub data_dir: Option<PathBuf>,
    /// How much the store keeps at hand.
    pub sizes: bellwire_store::Sizes,
    /// What it refuses to do too much of.
    pub limits: Limits,
    /// How long it remembers.
    pub retention: RetentionConfig,
    /// A folder of the operator's own subscribers; none = only the bundled ones.
    pub subscribers_dir: Option<PathBuf>,
    /// The mail server its notifications go through.
    pub email: EmailConfig,
    /// Where refusals of the hourly cap are remembered.
    pub redis: RedisConfig,
    /// What it says about itself.
    pub log: LogConfig,
}

/// What a hub refuses to do too much of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    /// The largest request body.
    pub body_bytes: usize,
    /// How many events one call may bring.
    pub batch_events: usize,
    /// How long a request may take.
    pub request_seconds: u64,
    /// How many requests are worked on at once.
    pub concurrent_requests: usize,
    /// How many streams may be open at once.
    pub streams: usize,
    /// How many requests of one token are worked on at once; 0 = no limit.
    pub concurrent_per_token: usize,
    /// How many streams one token may have open at once; 0 = no limit.
    pub streams_per_token: usize,
    /// How many MCP sessions one token may have; 0 = no limit.
    pub mcp_sessions_per_token: usize,
    /// How many injections a second one token may make; 0 = no limit.
    pub injections_per_second: u64,
    /// How many bytes of request bodies one token may send in a day of UTC; 0 = no limit.
    pub bytes_per_day: u64,
    /// After how long an MCP session that nobody uses ends.
    pub mcp_session_idle_seconds: u64,
    /// How many events a second one token may publish; 0 = no limit.
    pub publish_per_second: u64,
    /// How many it may publish at once.
    pub publish_burst: u64,
    /// How many notifications one person may be sent within any 60 minutes.
    pub notifications_per_hour: u64,
    /// How many reminders, where they are counted apart; 0 = among the notifications.
    pub reminders_per_hour: u64,
    /// The same for news.
    pub infos_per_hour: u64,
    /// The same for warnings.
    pub warnings_per_hour: u64,
    /// How many toasts one person may be shown within any 60 minutes.
    pub toasts_per_hour: u64,
}

/// How long a hub remembers, in days.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetentionConfig {
    /// Events, their traces, and the ids their senders brought.
    pub events_days: u64,
    /// Answers by call id.
    pub answers_days: u64,
    /// What a person has read.
    pub read_inbox_days: u64,
}

/// What a hub says about itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// How a line looks.
    pub format: LogFormat,
    /// Which lines there are: a level, or `part=level` several times, with commas between.
    pub level: String,
}

/// How a line of the log looks.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// Text on a terminal, JSON elsewhere.
    Auto,
    /// For people.
    Text,
    /// For machines.
    Json,
}

impl Default for Config {
    fn default() -> Self {
        load::defaults()
    }
}

impl Config {
    /// Loopback by any of its names, the address it listens on, the public one, and what was added.
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

    /// Every value at its lowest, to be written over by the default file.
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
            retention: RetentionConfig { events_days: 0, answers_days: 0, read_inbox_days: 0 },
            subscribers_dir: None,
            email: EmailConfig::blank(),
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
    /// The word in a file.
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
        assert_eq!(config.retention, RetentionConfig { events_days: 30, answers_days: 7, read_inbox_days: 90 });
        let email = EmailConfig {
            port: 587,
            from: crate::deliver::email::NamedAddress::parse("Bellwire <bellwire@localhost>").expect("a mailbox"),
            step_seconds: 30,
            answer_seconds: 600,
            workers: 4,
            ..EmailConfig::blank()
        };
        assert_eq!(config.email, email);
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

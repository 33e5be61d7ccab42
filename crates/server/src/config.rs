//! Every setting, its default and its bounds.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How a hub runs. `Config::default()` needs nothing.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where its data lies; none = in memory, for tests.
    pub data_dir: Option<PathBuf>,
    /// Host names it answers to besides its own address.
    pub allowed_hosts: Vec<String>,
    /// What it refuses to do too much of.
    pub limits: Limits,
}

/// What a hub refuses to do too much of.
#[derive(Clone, Debug)]
pub struct Limits {
    /// The largest request body.
    pub body_bytes: usize,
    /// How long a request may take.
    pub request_seconds: u64,
    /// How many events a second one token may publish; 0 = no limit.
    pub publish_per_second: u64,
    /// How many it may publish at once.
    pub publish_burst: u64,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            listen: SocketAddr::from(([127, 0, 0, 1], 2355)),
            data_dir: None,
            allowed_hosts: Vec::new(),
            limits: Limits {
                // A thousand events of the largest payload do not fit; a thousand usual ones do.
                body_bytes: 16 * 1024 * 1024,
                request_seconds: 30,
                publish_per_second: 1000,
                publish_burst: 5000,
            },
        }
    }
}

impl Config {
    /// Loopback by any of its names, the address it listens on, and what was added.
    pub(crate) fn allowed_hosts(&self) -> Arc<Vec<String>> {
        let own = ["localhost", "127.0.0.1", "[::1]"].map(str::to_owned);
        let listen = self.listen.ip().to_string();
        Arc::new(own.into_iter().chain([listen]).chain(self.allowed_hosts.iter().cloned()).collect())
    }
}

impl Limits {
    pub(crate) fn request_timeout(&self) -> Duration {
        Duration::from_secs(self.request_seconds)
    }
}

use std::path::PathBuf;
use std::time::Duration;

use super::{ConfigWarning, Secret};

/// The Redis that caches refusals of the hourly limits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RedisConfig {
    /// Its URL, with the password if there is one; none = the cache is in the process.
    pub url: Option<Secret>,
    /// A file that contains the URL.
    pub url_file: Option<PathBuf>,
    /// How long a call waits for Redis before it asks the database.
    pub wait_ms: u64,
}

impl RedisConfig {
    /// Placeholder values; the default file sets every one of them.
    pub(super) fn blank() -> Self {
        Self { url: None, url_file: None, wait_ms: 0 }
    }

    /// The URL from the setting or the file; an error names the setting and the fix.
    pub fn address(&self) -> Result<Option<Secret>, String> {
        let Some(path) = &self.url_file else { return Ok(self.url.clone()) };
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("redis.url_file: {} cannot be read: {error}", path.display()))?;
        let secret = Secret::new(text.trim());
        match wrong(secret.reveal()) {
            Some(why) => Err(format!("redis.url_file: what {} holds {why}", path.display())),
            None => Ok(Some(secret)),
        }
    }

    pub(crate) fn patience(&self) -> Duration {
        Duration::from_millis(self.wait_ms)
    }

    /// Errors, each with the fix. The URL is a secret and is not repeated.
    pub(super) fn contradictions(&self) -> Vec<String> {
        let mut found = Vec::new();
        if self.url.is_some() && self.url_file.is_some() {
            found.push("redis.url and redis.url_file are both set: keep one".to_owned());
        }
        found.extend(self.url.as_ref().and_then(|url| wrong(url.reveal())).map(|why| format!("redis.url {why}")));
        found
    }

    /// Warnings: settings that are allowed but risky.
    pub(super) fn risks(&self) -> Vec<ConfigWarning> {
        let open = self.url.as_ref().is_some_and(|url| has_password(url.reveal()) && !is_local(url.reveal()));
        let risk = "redis.url has a password for another machine: it travels unencrypted";
        let fix = "let a tunnel on this machine encrypt, and name it in redis.url";
        open.then(|| ConfigWarning::new(risk, fix)).into_iter().collect()
    }
}

/// What is wrong with a URL, and what to write.
fn wrong(url: &str) -> Option<String> {
    let right = "write it like redis://127.0.0.1:6379 or redis://:PASSWORD@HOST:PORT/DATABASE";
    match url.split_once("://") {
        Some(("redis", rest)) if !host(rest).is_empty() => None,
        Some(("redis", _)) => Some(format!("names no host: {right}")),
        Some(("rediss", _)) => Some(
            "begins with rediss://, but no encrypted connection to Redis is built in: let a tunnel on this machine \
             encrypt, and name it with redis://"
                .to_owned(),
        ),
        _ => Some(format!("does not begin with redis://: {right}")),
    }
}

fn host(rest: &str) -> &str {
    let authority = rest.split(['/', '?']).next().unwrap_or_default();
    let address = authority.rsplit_once('@').map_or(authority, |(_, address)| address);
    match address.starts_with('[') {
        true => address.split_inclusive(']').next().unwrap_or_default(),
        false => address.split(':').next().unwrap_or_default(),
    }
}

fn has_password(url: &str) -> bool {
    url.contains('@')
}

fn is_local(url: &str) -> bool {
    let host = url.split_once("://").map_or("", |(_, rest)| host(rest));
    host == "localhost" || host == "[::1]" || host.starts_with("127.")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(url: &str) -> RedisConfig {
        RedisConfig { url: Some(Secret::new(url)), ..RedisConfig::blank() }
    }

    #[test]
    fn a_url_has_the_scheme_redis_and_a_host() {
        for right in ["redis://127.0.0.1:6379", "redis://:secret@cache.example.org/1", "redis://[::1]:6379"] {
            assert_eq!(of(right).contradictions(), Vec::<String>::new(), "{right}");
        }
        for wrong in ["127.0.0.1:6379", "http://cache", "redis://", "redis://:secret@", "rediss://cache"] {
            let found = of(wrong).contradictions();
            assert_eq!(found.len(), 1, "{wrong}");
            assert!(found[0].starts_with("redis.url ") && !found[0].contains("secret"), "{found:?}");
        }
    }

    #[test]
    fn a_password_for_another_machine_gives_a_warning() {
        assert_eq!(of("redis://:secret@cache.example.org").risks().len(), 1);
        for fine in ["redis://cache.example.org", "redis://:secret@127.0.0.1:6379", "redis://:secret@[::1]"] {
            assert_eq!(of(fine).risks(), [], "{fine}");
        }
    }
}

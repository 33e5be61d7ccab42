//! Checks of settings that depend on one another.

use super::{Config, ConfigWarning, RetentionConfig};

/// Errors: settings that contradict each other, each with the fix.
pub(super) fn contradictions(config: &Config) -> Vec<String> {
    let mut found = Vec::new();
    let (limits, listen) = (&config.limits, config.listen);
    if !listen.ip().is_loopback() && config.public_url.is_none() && config.allowed_hosts.is_empty() {
        found.push(format!(
            "server.listen is {listen}, which others can reach, but the hub knows no name they would use: set \
             server.public_url (such as \"https://bell.example.org\") or server.allowed_hosts"
        ));
    }
    if limits.publish_per_second > 0 && limits.publish_burst < limits.publish_per_second {
        found.push(format!(
            "limits.publish_burst is {} and below limits.publish_per_second, {}: raise the burst to at least {}",
            limits.publish_burst, limits.publish_per_second, limits.publish_per_second
        ));
    }
    if limits.publish_per_second > 0 && limits.publish_burst < limits.batch_events as u64 {
        found.push(format!(
            "limits.batch_events is {}, but no token may publish more than limits.publish_burst, {}, at once: raise \
             the burst or lower the batch",
            limits.batch_events, limits.publish_burst
        ));
    }
    found.extend(config.email.contradictions());
    found.extend(config.telegram.contradictions(config.public_url.as_deref()));
    found.extend(config.switchboard.contradictions("switchboard"));
    found.extend(config.messenger.remote.contradictions("messenger"));
    found.extend(config.redis.contradictions());
    found.extend(config.ingest.values().filter_map(|source| source.missing_secret()));
    found
}

/// Warnings: combinations that are allowed but risky.
pub(super) fn risks(config: &Config) -> Vec<ConfigWarning> {
    let mut found = Vec::new();
    let public = config.public_url.as_deref().unwrap_or_default();
    let open = !config.listen.ip().is_loopback();
    if open && !public.starts_with("https://") {
        found.push(ConfigWarning::new(
            "server.listen is open to others and server.public_url is not https: tokens travel unencrypted",
            "put a proxy with TLS before the hub, and set server.public_url to its https address",
        ));
    }
    if open && config.limits.publish_per_second == 0 {
        found.push(ConfigWarning::new(
            "server.listen is open to others and limits.publish_per_second is 0: publishing is not limited",
            "set limits.publish_per_second to a number above 0",
        ));
    }
    let plain = |origin: &&String| origin.starts_with("http://") && !is_local(origin);
    if let Some(origin) = config.allowed_origins.iter().find(plain).filter(|_| public.starts_with("https://")) {
        let message = format!(
            "server.allowed_origins trusts {origin}, which is not https: anyone on the network path can act as that origin"
        );
        found.push(ConfigWarning::new(message, "serve that page over https, and write its origin with https"));
    }
    found.extend(retention_risks(&config.retention));
    found.extend(config.email.risks(config.public_url.as_deref()));
    found.extend(config.redis.risks());
    found
}

fn retention_risks(retention: &RetentionConfig) -> Vec<ConfigWarning> {
    let mut found = Vec::new();
    let (events_days, answers_days) = (retention.events_days, retention.answers_days);
    if events_days < answers_days {
        found.push(ConfigWarning::new(
            "retention.events_days is below retention.answers_days: an answer may be given again whose events have no \
             trace any more",
            format!("set retention.events_days to at least {answers_days}"),
        ));
    }
    if events_days < 30 {
        found.push(ConfigWarning::new(
            "retention.events_days is below 30: a subscriber whose ttl_ms is longer loses events that still wait",
            "set retention.events_days to at least 30, or keep every ttl_ms shorter",
        ));
    }
    found
}

fn is_local(origin: &str) -> bool {
    let host = origin.trim_start_matches("http://");
    ["localhost", "127.0.0.1", "[::1]"].iter().any(|local| host == *local || host.starts_with(&format!("{local}:")))
}

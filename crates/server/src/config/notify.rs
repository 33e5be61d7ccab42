use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::path::PathBuf;

use axum::http::Uri;
use bellwire_core::notify::normalized_target;
use bellwire_core::person::ChannelName;

use super::Secret;

/// What `notify` may do beyond a person's own targets.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NotifyConfig {
    /// The targets that each origin may use although they are not its user's.
    pub allow: BTreeMap<String, Vec<AllowedTarget>>,
}

/// A target of an allow-list, written `channel:target`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedTarget {
    /// The channel.
    pub channel: ChannelName,
    /// The target, as it is written.
    pub target: String,
}

/// A process of the path of `notify` that may run elsewhere.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RemoteConfig {
    /// Its URL; none = it runs in this process.
    pub url: Option<String>,
    /// A file that contains the token for it.
    pub token_file: Option<PathBuf>,
}

/// The Messenger: where it runs, and whom it trusts if it runs here.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct MessengerConfig {
    /// Where it runs.
    pub remote: RemoteConfig,
    /// The origins of the daemon tokens that may call `route.execute`.
    pub trusted_route_callers: Vec<String>,
}

impl AllowedTarget {
    /// Parses `email:ada@example.org`.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = || format!("has '{text}'; write the channel and the target, like \"email:ada@example.org\"");
        let (channel, target) = text.trim().split_once(':').ok_or_else(wrong)?;
        let channel = ChannelName::parse(channel).map_err(|_| wrong())?;
        let target = target.trim();
        match target.is_empty() || target.contains(char::is_control) {
            true => Err(wrong()),
            false => Ok(Self { channel, target: target.to_owned() }),
        }
    }

    /// Whether this is the target, compared as the dedup key compares targets.
    pub(crate) fn is(&self, channel: &str, target: &str) -> bool {
        self.channel.as_str() == channel && normalized_target(&self.target) == normalized_target(target)
    }
}

impl std::fmt::Display for AllowedTarget {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}", self.channel, self.target)
    }
}

impl NotifyConfig {
    /// The lists as the store checks them again when a deferred message is due.
    pub(crate) fn allowed_targets(&self) -> BTreeMap<String, BTreeSet<(ChannelName, String)>> {
        let normal = |allowed: &AllowedTarget| (allowed.channel.clone(), normalized_target(&allowed.target));
        self.allow.iter().map(|(origin, list)| (origin.clone(), list.iter().map(normal).collect())).collect()
    }

    /// The target as the list has it, if the origin may use it.
    pub(crate) fn permitted(&self, origin: &str, channel: &str, target: &str) -> Option<&str> {
        let allowed = self.allow.get(origin)?.iter().find(|allowed| allowed.is(channel, target))?;
        Some(&allowed.target)
    }
}

impl RemoteConfig {
    /// The token, read from its file; an error names the setting and the fix.
    pub(crate) fn token(&self, section: &str) -> Result<Secret, String> {
        let Some(path) = &self.token_file else { return Err(format!("{section}.token_file is not set")) };
        let text = std::fs::read_to_string(path)
            .map_err(|error| format!("{section}.token_file: {} cannot be read: {error}", path.display()))?;
        let token = text.trim();
        // It goes into a header of every request.
        match token.is_empty() || !token.bytes().all(|byte| byte.is_ascii_graphic()) {
            true => Err(format!("{section}.token_file: {} contains no token", path.display())),
            false => Ok(Secret::new(token)),
        }
    }

    /// Errors: settings that contradict each other, each with the fix.
    pub(super) fn contradictions(&self, section: &str) -> Vec<String> {
        let mut found = Vec::new();
        match (&self.url, &self.token_file) {
            (Some(_), None) => found.push(format!(
                "{section}.url is set without {section}.token_file: name the file with its daemon token"
            )),
            (None, Some(_)) => {
                found.push(format!("{section}.token_file is set without {section}.url: say where it runs"));
            }
            _ => {}
        }
        if self.url.as_deref().is_some_and(|url| url.starts_with("http://") && !is_loopback(url)) {
            found.push(format!(
                "{section}.url is not https, and its token would travel for everybody to read: use https, or a tunnel \
                 on this machine"
            ));
        }
        found
    }
}

fn is_loopback(url: &str) -> bool {
    let host = url.parse::<Uri>().ok().and_then(|uri| uri.host().map(str::to_owned)).unwrap_or_default();
    let literal = host.trim_matches(['[', ']']).parse().is_ok_and(|ip: IpAddr| ip.is_loopback());
    literal || host == "localhost"
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_allowed_target_is_compared_like_a_target() {
        let allowed = AllowedTarget::parse(" email: Ada@Example.org ").expect("it is a target");
        assert!(allowed.is("email", "ada@example.ORG"));
        assert!(!allowed.is("telegram", "ada@example.org") && !allowed.is("email", "ada@example.org.evil"));
        assert_eq!(AllowedTarget::parse("telegram:-100:7").expect("it is a target").target, "-100:7");
        for wrong in ["", "email", "email:", ":x", "E-mail:x", "email:a\nb"] {
            assert!(AllowedTarget::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_token_is_not_sent_in_the_open_to_another_machine() {
        let found = |url: &str, token: bool| {
            let token_file = token.then(|| "token".into());
            RemoteConfig { url: Some(url.into()), token_file }.contradictions("messenger").len()
        };
        for url in ["https://messenger.example", "http://127.0.0.1:1", "http://[::1]:1", "http://localhost"] {
            assert_eq!(found(url, true), 0, "{url}");
        }
        assert_eq!(found("http://messenger.example", true), 1);
        assert_eq!(found("https://messenger.example", false), 1);
    }
}

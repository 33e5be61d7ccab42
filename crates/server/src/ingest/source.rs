use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::http::HeaderMap;
use bellwire_core::Time;
use bellwire_store::Caller;

use super::{Activity, BodyProblem, Mapped, Refusal, map, signature};
use crate::config::{Config, IngestKind, IngestSource, Secret, signing_key};
use crate::rate::{Rate, TokenBucket};
use crate::usage::{TokenLimits, TokenUsage};

/// A configured source: its settings and secrets, and what it has used of its limits.
pub struct Source {
    /// The settings.
    pub(crate) settings: IngestSource,
    /// The person whose agents are told.
    pub(crate) user: String,
    secrets: Vec<Secret>,
    /// The keys of Standard Webhooks, decoded.
    keys: Vec<Vec<u8>>,
    /// Bounds the concurrent calls and the memory of their bodies, before they are authenticated.
    pub(crate) usage: Arc<TokenUsage>,
    pub(crate) activity: Activity,
    calls: TokenBucket,
}

/// The configured sources by name.
#[derive(Clone, Default)]
pub struct Sources(Arc<BTreeMap<String, Source>>);

/// The burst of calls, in seconds of the rate.
const BURST_SECONDS: u64 = 10;

impl Sources {
    /// Reads the secrets; an error names the setting and the fix.
    pub(crate) fn of_config(config: &Config) -> Result<Self, String> {
        let source =
            |settings: &IngestSource| Ok((settings.name.clone(), Source::new(settings, &config.default_user)?));
        let sources: Result<BTreeMap<_, _>, String> = config.ingest.values().map(source).collect();
        Ok(Self(Arc::new(sources?)))
    }

    pub(crate) fn get(&self, name: &str) -> Option<&Source> {
        self.0.get(name)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Source> {
        self.0.values()
    }
}

impl Source {
    /// A source with its secrets; an error names the setting and the fix.
    pub fn new(settings: &IngestSource, default_user: &str) -> Result<Self, String> {
        let secrets = settings.secrets()?;
        let keys = match settings.kind {
            IngestKind::StandardWebhooks => secrets.iter().filter_map(|secret| signing_key(secret.reveal())).collect(),
            _ => Vec::new(),
        };
        Ok(Self {
            user: settings.user.clone().unwrap_or_else(|| default_user.to_owned()),
            settings: settings.clone(),
            secrets,
            keys,
            usage: Arc::new(TokenUsage::new(TokenLimits::of_source())),
            activity: Activity::default(),
            calls: TokenBucket::default(),
        })
    }

    /// Whether the call is from the sender that knows the secret.
    pub fn authenticate(&self, headers: &HeaderMap, body: &[u8], now: Time) -> Result<(), Refusal> {
        match self.settings.kind {
            IngestKind::Github => signature::github(headers, body, &self.secrets),
            IngestKind::StandardWebhooks => signature::standard(headers, body, &self.keys, now).map(drop),
            IngestKind::Alertmanager => signature::bearer(headers, None, &self.secrets),
            IngestKind::Json => signature::bearer(headers, self.settings.header.as_deref(), &self.secrets),
        }
    }

    /// Takes one authentic call from the rate, or returns after how many seconds to retry.
    pub(crate) fn take_call(&self, now: Instant) -> Result<(), u64> {
        let per_second = self.settings.calls_per_second;
        self.calls.take(Rate { per_second, burst: per_second * BURST_SECONDS }, 1, now)
    }

    /// What an authentic call becomes.
    pub(crate) fn map(&self, headers: &HeaderMap, body: &[u8]) -> Result<Mapped, BodyProblem> {
        map(&self.settings, headers, body)
    }

    /// As whom its events are published: bound to its person, with event ids of its own.
    pub(crate) fn caller(&self) -> Caller {
        Caller {
            user_id: Some(self.user.clone()),
            conversation_id: None,
            token_owner: format!("ingest:{}", self.settings.name),
            origin: Some(self.settings.origin.clone()),
        }
    }
}

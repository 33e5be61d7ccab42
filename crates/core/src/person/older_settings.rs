//! The stored form of settings. Earlier versions had a field for each of the two channels they knew.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::{ChannelName, ChannelSettings, PersonSettings, QuietSettings, ToastSettings};

/// Settings as any version has stored them.
#[derive(Deserialize, Default)]
#[serde(default)]
pub(super) struct StoredSettings {
    disabled_subscribers: Vec<String>,
    muted_origins: Vec<String>,
    channels: BTreeMap<ChannelName, ChannelSettings>,
    quiet_hours: Option<QuietSettings>,
    toasts: ToastSettings,
    email: Option<OlderEmail>,
    telegram: Option<OlderTelegram>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OlderEmail {
    enabled: bool,
    address: Option<String>,
    confirmed: bool,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct OlderTelegram {
    enabled: bool,
    chat_id: Option<i64>,
    paired: bool,
}

impl From<StoredSettings> for PersonSettings {
    fn from(stored: StoredSettings) -> Self {
        let mut channels = stored.channels;
        let email = stored.email.map(|OlderEmail { enabled, address: target, confirmed: verified }| {
            ("email", ChannelSettings { enabled, target, verified })
        });
        let telegram = stored.telegram.map(|OlderTelegram { enabled, chat_id, paired: verified }| {
            ("telegram", ChannelSettings { enabled, target: chat_id.map(|id| id.to_string()), verified })
        });
        for (name, settings) in email.into_iter().chain(telegram) {
            let name = ChannelName::parse(name).expect("the name is valid");
            channels.entry(name).or_insert(settings);
        }
        Self {
            disabled_subscribers: stored.disabled_subscribers,
            muted_origins: stored.muted_origins,
            channels,
            quiet_hours: stored.quiet_hours,
            toasts: stored.toasts,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_of_an_older_version_are_read() {
        let older = r#"{
            "disabled_subscribers": ["source_stale"], "muted_origins": ["butler"],
            "email": {"enabled": true, "address": "ada@example.org", "confirmed": true},
            "telegram": {"enabled": false, "chat_id": 77, "paired": true},
            "quiet_hours": {"start": "22:00", "end": "07:00", "timezone": "UTC"}, "toasts": {"enabled": false}
        }"#;
        let settings: PersonSettings = serde_json::from_str(older).expect("an older row");
        let email = ChannelSettings { enabled: true, target: Some("ada@example.org".into()), verified: true };
        let telegram = ChannelSettings { enabled: false, target: Some("77".into()), verified: true };
        assert_eq!((settings.channel("email"), settings.channel("telegram")), (email, telegram));
        assert_eq!((settings.muted_origins.len(), settings.disabled_subscribers.len()), (1, 1));
        assert!(settings.quiet_hours.is_some() && !settings.toasts.enabled);
        let again = serde_json::to_string(&settings).expect("it is JSON");
        assert_eq!(serde_json::from_str::<PersonSettings>(&again).expect("a row of this version"), settings);
        assert_eq!(serde_json::from_str::<PersonSettings>("{}").expect("an empty row"), PersonSettings::default());
    }
}

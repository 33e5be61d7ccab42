use bellwire_core::Severity;
use bellwire_core::person::{QuietChange, SettingsChange};
use bellwire_store::{ErrorKind, SettingsRequest, StoreError};
use serde_json::json;

use crate::backends::{Backend, event, on_every_store};

pub(crate) async fn change(
    backend: &Backend,
    change: SettingsChange,
) -> Result<bellwire_core::person::PersonSettings, StoreError> {
    backend.store().change_settings(SettingsRequest { user_id: "ada".into(), change }).await
}

fn disabling(ids: &[&str]) -> SettingsChange {
    let ids = ids.iter().map(|id| (*id).to_owned()).collect();
    SettingsChange { disabled_subscribers: Some(ids), ..SettingsChange::default() }
}

on_every_store! {
    async fn a_subscriber_that_is_switched_off_is_silent_from_the_next_event_on(backend: Backend) {
        let changed = || event("source.file.changed", Severity::Info, json!({"path": "a"}));
        assert_eq!(backend.publish(changed()).await.verdicts[0].verdict, "held");
        let off = change(&backend, disabling(&["source_stale"])).await.unwrap();
        let verdict = backend.publish(changed()).await.verdicts[0].clone();
        assert_eq!(verdict.verdict, "filtered");
        assert_eq!(verdict.reason, "the conversation's user disabled this subscriber");
        if backend.is_durable() {
            backend.restart().await;
        }
        assert_eq!(backend.store().settings("ada".into()).await.unwrap(), off);
        assert_eq!(backend.publish(changed()).await.verdicts[0].verdict, "filtered");
        change(&backend, disabling(&[])).await.unwrap();
        assert_ne!(backend.publish(changed()).await.verdicts[0].verdict, "filtered");
    }

    async fn of_two_changes_at_once_none_is_lost(backend: Backend) {
        let muted = SettingsChange { muted_origins: Some(vec!["butler".into()]), ..SettingsChange::default() };
        let silent = SettingsChange { toasts_enabled: Some(false), ..SettingsChange::default() };
        let (one, other, third) = tokio::join!(
            change(&backend, muted),
            change(&backend, silent),
            change(&backend, disabling(&["source_stale"])),
        );
        one.unwrap();
        other.unwrap();
        third.unwrap();
        if backend.is_durable() {
            backend.restart().await;
        }
        let settings = backend.store().settings("ada".into()).await.unwrap();
        assert_eq!(settings.muted_origins, ["butler"]);
        assert_eq!(settings.disabled_subscribers, ["source_stale"]);
        assert!(!settings.toasts.enabled);
    }

    async fn a_change_that_is_refused_changes_nothing_and_names_the_field(backend: Backend) {
        let quiet = QuietChange { start: Some("22:00".into()), end: Some("07:00".into()), timezone: Some("Mars".into()) };
        let wrong = SettingsChange { toasts_enabled: Some(false), quiet_hours: Some(Some(quiet)), ..SettingsChange::default() };
        let error = change(&backend, wrong).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::Invalid("quiet_hours.timezone"));
        assert_eq!(backend.store().settings("ada".into()).await.unwrap(), Default::default());
    }
}

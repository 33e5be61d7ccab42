use bellwire_core::Severity;
use bellwire_store::Settings;
use serde_json::json;

use crate::backends::{Backend, event, on_every_store};

on_every_store! {
    async fn a_subscriber_that_is_switched_off_is_silent_from_the_next_event_on(backend: Backend) {
        let changed = || event("source.file.changed", Severity::Info, json!({"path": "a"}));
        assert_eq!(backend.publish(changed()).await.verdicts[0].verdict, "held");
        let off = Settings { disabled_subscribers: vec!["source_stale".into()], rest: "{\"toasts\":1}".into() };
        backend.store().put_settings("ada".into(), off.clone()).await.unwrap();
        let verdict = backend.publish(changed()).await.verdicts.remove(0);
        assert_eq!(verdict.verdict, "filtered");
        assert_eq!(verdict.reason, "the conversation's user disabled this subscriber");
        if backend.is_durable() {
            backend.restart().await;
        }
        assert_eq!(backend.store().settings("ada".into()).await.unwrap(), off);
        assert_eq!(backend.publish(changed()).await.verdicts[0].verdict, "filtered");
        backend.store().put_settings("ada".into(), Settings::default()).await.unwrap();
        assert_ne!(backend.publish(changed()).await.verdicts[0].verdict, "filtered");
    }
}

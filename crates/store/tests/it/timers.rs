use bellwire_core::InjectionPoint::AfterTool;
use bellwire_core::{Severity, Time};
use bellwire_store::Caller;
use serde_json::json;

use crate::backends::{Backend, START, event, failure, on_every_store};

on_every_store! {
    async fn a_window_that_elapses_makes_its_notification_wait(backend: Backend) {
        let receipt = backend.publish(failure("grep")).await;
        let pending = || async { backend.store().conversation(Caller::user("ada"), "chat".into()).await.unwrap().pending };
        assert_eq!(pending().await, 0);
        backend.pass(2_000);
        backend.store().tick().await.unwrap();
        assert_eq!(pending().await, 1);
        let trace = backend.store().trace(Caller::user("ada"), receipt.event_id.to_string()).await.unwrap();
        assert_eq!(trace.notifications[0].state, "pending");
    }

    async fn windows_that_elapsed_while_stopped_fire_after_the_start(backend: Backend) {
        let receipt = backend.publish(failure("grep")).await;
        backend.pass(60_000);
        if backend.is_durable() {
            backend.restart().await;
        }
        backend.store().tick().await.unwrap();
        let trace = backend.store().trace(Caller::user("ada"), receipt.event_id.to_string()).await.unwrap();
        assert_eq!(trace.notifications[0].state, "pending");
        assert!(backend.inject(AfterTool, "c1").await.block.contains("grep"));
    }

    async fn notifications_expire_with_a_reason(backend: Backend) {
        let receipt = backend.publish(failure("grep")).await;
        backend.pass(3_000);
        backend.store().tick().await.unwrap();
        backend.pass(25 * 60 * 60 * 1000);
        backend.store().tick().await.unwrap();
        let trace = backend.store().trace(Caller::user("ada"), receipt.event_id.to_string()).await.unwrap();
        assert_eq!(trace.notifications[0].state, "expired");
        assert!(trace.notifications[0].reason.is_some());
    }

    async fn pending_notifications_are_counted_with_their_age(backend: Backend) {
        assert_eq!(backend.store().waiting().await.unwrap(), (0, None));
        backend.publish(failure("grep")).await;
        backend.pass(5_000);
        backend.store().tick().await.unwrap();
        backend.publish(event("budget.token.exceeded", Severity::Critical, json!({}))).await;
        assert_eq!(backend.store().waiting().await.unwrap(), (2, Some(Time::from_millis(START))));
        backend.inject(AfterTool, "c1").await;
        assert_eq!(backend.store().waiting().await.unwrap(), (0, None));
    }
}

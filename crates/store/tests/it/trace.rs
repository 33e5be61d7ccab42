use bellwire_core::InjectionPoint::AfterTool;
use bellwire_store::{Brought, Caller, ErrorKind};

use crate::backends::{Backend, failure, on_every_store};

on_every_store! {
    async fn one_events_life_is_told_from_verdict_to_words(backend: Backend) {
        let receipt = backend.publish(failure("grep")).await;
        backend.take(AfterTool, "c1").await;
        let trace = backend.store().trace(Caller::user("ada"), receipt.event_id.to_string()).await.unwrap();
        assert_eq!(trace.event.kind, "tool.call.failure");
        assert_eq!(trace.verdicts, receipt.verdicts);
        let notification = &trace.notifications[0];
        assert_eq!((notification.state.as_str(), notification.call_id.as_deref()), ("injected", Some("c1")));
        assert_eq!(notification.content.as_deref(), Some("tool_fail: grep timeout"));
        assert!(notification.ended_at.is_some());
    }

    async fn an_event_is_also_found_by_the_name_its_sender_brought(backend: Backend) {
        let brought = Some(Brought { id: "build-17".into(), content: [1; 16] });
        backend.publish_as(Caller::user("ada"), failure("grep"), brought).await.unwrap();
        let trace = backend.store().trace(Caller::user("ada"), "build-17".into()).await;
        assert!(trace.is_ok());
        let refused = backend.store().trace(Caller::user("bob"), "build-17".into()).await.unwrap_err();
        assert_eq!(refused.kind, ErrorKind::NotFound);
    }
}

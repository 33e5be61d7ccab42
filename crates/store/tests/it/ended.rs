//! A store reports that its writer has ended, with the reason: a hub without a writer must stop.

use std::sync::Arc;
use std::time::Duration;

use bellwire_store::{Caller, CommitReport, Ended, ErrorKind, Observer, Store};

use crate::backends::{Backend, failure, on_every_store};

/// Panics in the writer, right after a commit that took in an event.
fn panics_at_the_first_event() -> Observer {
    Arc::new(|report: &CommitReport| assert_eq!(report.events, 0, "on purpose"))
}

async fn ended(store: &dyn Store) -> Ended {
    tokio::time::timeout(Duration::from_secs(30), store.ended()).await.expect("the writer has ended")
}

on_every_store! {
    async fn a_store_that_was_closed_says_so(backend: Backend) {
        let store = backend.store();
        let waiting = store.ended();
        store.close().await.unwrap();
        assert_eq!((waiting.await, ended(&*store).await), (Ended::Closed, Ended::Closed));
        let late = backend.publish_as(Caller::user("ada"), failure("grep"), None).await.unwrap_err();
        assert_eq!(late.kind, ErrorKind::Retry);
    }

    async fn a_writer_that_panics_says_with_what_and_nothing_waits_for_it(backend: Backend) {
        backend.observe(panics_at_the_first_event()).await;
        let store = backend.store();
        let (mut doorbell, mut hints) = (store.doorbell("ada"), store.hints("ada", "chat"));
        let asked = backend.publish_as(Caller::user("ada"), failure("grep"), None).await.unwrap_err();
        assert_eq!(asked.kind, ErrorKind::Broken);
        assert!(asked.message.contains("on purpose"), "{asked}");
        let Ended::Panicked(message) = ended(&*store).await else { panic!("it did not end by itself") };
        assert!(message.contains("on purpose"), "{message}");
        assert_eq!(store.check().await.unwrap_err(), asked, "whoever comes later hears the same");
        assert!(!doorbell.rings().await);
        assert_eq!(hints.next().await, bellwire_store::HintEvent::Closed);
    }
}

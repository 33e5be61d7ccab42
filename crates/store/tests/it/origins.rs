//! A person sees the authenticated origin of a notification, whatever source its events name.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwire_core::Severity;
use bellwire_core::person::SettingsChange;
use bellwire_core::subscriber::{SubscriberFile, Subscribers};
use bellwire_store::{Caller, Claim, InboxState, Purpose};
use serde_json::json;

use crate::backends::{Backend, email, on_every_store};
use crate::notify::inbox;
use crate::outbox::mail_to;
use crate::settings::change;

/// A subscriber that tells a person what the builds of two seconds came to.
const BUILDS: &str = r#"
[subscriber]
id = "builds"
name = "Builds"
description = "Tells a person how builds went"
version = "1.0.0"
[events]
types = ["ci.build.failed"]
[batching]
window_ms = 2000
dedupe_window_ms = 5000
[output]
priority = "normal"
inject_at = "turn_start"
audience = "user"
template = "builds.toon.j2"
"#;

async fn publish(backend: &Backend, origin: Option<&str>, source: &str, number: u32) -> bellwire_store::Receipt {
    let event =
        bellwire_core::Event::new("ci.build.failed", source, Severity::Error, json!({ "number": number })).unwrap();
    let caller = Caller { origin: origin.map(str::to_owned), ..Caller::user("ada") };
    backend.publish_as(caller, event.in_conversation("chat"), None).await.unwrap()
}

async fn with_builds(backend: &Backend) {
    let file = SubscriberFile { path: "builds.toml".into(), text: BUILDS.into() };
    let template = ("builds.toon.j2".to_owned(), "{{ count }} builds failed".to_owned());
    let loaded = Subscribers::load(&[file], &BTreeMap::from([template]));
    assert!(loaded.errors.is_empty(), "{:?}", loaded.errors);
    backend.store().set_subscribers(Arc::new(loaded.subscribers)).await.unwrap();
}

async fn told(backend: &Backend) -> Vec<(String, Option<String>, String)> {
    let items = inbox(backend, InboxState::All).await.into_iter();
    let mut told: Vec<_> = items
        .map(|item| {
            let message = item.shown_message();
            (item.origin, item.source, message)
        })
        .collect();
    told.sort();
    told
}

fn said(origin: &str, source: Option<&str>, message: &str) -> (String, Option<String>, String) {
    (origin.to_owned(), source.map(str::to_owned), message.to_owned())
}

on_every_store! {
    async fn what_a_timer_tells_is_of_the_origin_that_sent_it(backend: Backend) {
        with_builds(&backend).await;
        publish(&backend, Some("butler"), "gardener", 1).await;
        publish(&backend, Some("gardener"), "gardener", 2).await;
        publish(&backend, Some("butler"), "ci", 3).await;
        publish(&backend, Some("butler"), "ci", 3).await;
        if backend.is_durable() {
            backend.restart().await;
            with_builds(&backend).await;
        }
        backend.pass(2_000);
        backend.store().tick().await.unwrap();
        let first = [said("butler", None, "2 builds failed"), said("gardener", Some("gardener"), "1 builds failed")];
        assert_eq!(told(&backend).await, first);
        publish(&backend, Some("butler"), "ci", 3).await;
        backend.pass(5_000);
        backend.store().tick().await.unwrap();
        // Repeats are counted in the item of the origin that sent them.
        let counted = said("butler", None, "2 builds failed (2 more times)");
        assert_eq!(told(&backend).await, [counted, first[1].clone()]);
    }

    async fn a_muted_origin_stays_muted_under_another_source(backend: Backend) {
        with_builds(&backend).await;
        mail_to(&backend, "ada@example.org").await;
        let mute = SettingsChange { muted_origins: Some(vec!["butler".into()]), ..SettingsChange::default() };
        change(&backend, mute).await.unwrap();
        for (number, source) in ["butler", "gardener", "ci"].into_iter().enumerate() {
            publish(&backend, Some("butler"), source, number as u32).await;
        }
        publish(&backend, Some("gardener"), "butler", 9).await;
        backend.pass(2_000);
        backend.store().tick().await.unwrap();
        assert_eq!(told(&backend).await.len(), 2, "the inbox has both");
        let mailed = backend.store().claim(email(), 10).await.unwrap();
        let [Claim { purpose: Purpose::Notifications(items), .. }] = &mailed[..] else { panic!("{mailed:?}") };
        let origins: Vec<&str> = items.iter().map(|item| item.origin.as_str()).collect();
        assert_eq!(origins, ["gardener"], "muting goes by the origin alone");
    }

    async fn a_sender_without_an_origin_reaches_no_person(backend: Backend) {
        with_builds(&backend).await;
        let receipt = publish(&backend, None, "ci", 1).await;
        let [verdict] = &receipt.verdicts[..] else { panic!("{receipt:?}") };
        assert_eq!((&*verdict.subscriber, &*verdict.verdict), ("builds", "filtered"));
        assert!(verdict.reason.starts_with("no_origin: "), "{receipt:?}");
        backend.pass(10_000);
        backend.store().tick().await.unwrap();
        assert_eq!(told(&backend).await, []);
    }
}

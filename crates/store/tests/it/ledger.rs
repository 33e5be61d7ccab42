//! The ledger lists every decision on `notify` requests and sums them per origin.

use std::collections::BTreeSet;

use bellwire_core::Time;
use bellwire_core::notify::{ErrorClass, Intent};
use bellwire_store::{LedgerDecision, LedgerDraft, LedgerQuery, OriginSums};
use uuid::Uuid;

use crate::backends::{Backend, on_every_store};
use crate::work::Reports;
use LedgerDecision::{Delivered, Refused};

const DAY_MS: i64 = 24 * 60 * 60 * 1000;

fn decision(origin: &str, user: Option<&str>, channel: &str, decision: LedgerDecision) -> LedgerDraft {
    LedgerDraft {
        origin: origin.into(),
        user_id: user.map(str::to_owned),
        channel: channel.into(),
        intent: Some(Intent::Send),
        decision,
        class: (decision != Delivered).then_some(ErrorClass::ValidationError),
        reason: (decision != Delivered).then(|| "channel".to_owned()),
        notification_id: Some(Uuid::from_u128(5)),
        request_id: None,
    }
}

async fn record(backend: &Backend, draft: LedgerDraft) {
    backend.store().record_decision(draft).await.unwrap();
}

async fn list(backend: &Backend, query: LedgerQuery) -> Vec<LedgerDraft> {
    let (entries, next) = backend.store().ledger(LedgerQuery { limit: 100, ..query }).await.unwrap();
    assert_eq!(next, None);
    entries.into_iter().map(|entry| entry.decided).collect()
}

fn count(sums: &[OriginSums], origin: &str, decision: LedgerDecision) -> u64 {
    sums.iter().find(|sums| sums.origin == origin).map_or(0, |sums| sums.count(decision))
}

on_every_store! {
    async fn decisions_are_listed_newest_first_by_every_filter(backend: Backend) {
        let drafts = [
            decision("health", Some("ada"), "email", Delivered),
            decision("health", Some("bob"), "telegram", Refused),
            decision("bank", Some("ada"), "telegram", Refused),
            decision("bank", None, "", Refused),
        ];
        let mut times = Vec::new();
        for draft in &drafts {
            times.push(backend.now());
            record(&backend, draft.clone()).await;
            backend.pass(1_000);
        }
        if backend.is_durable() {
            backend.restart().await;
        }
        let [first, second, third, fourth] = drafts;
        let all = LedgerQuery::default;
        assert_eq!(list(&backend, all()).await, [fourth.clone(), third.clone(), second.clone(), first.clone()]);
        let of = |origin: &str| LedgerQuery { origin: Some(origin.into()), ..all() };
        assert_eq!(list(&backend, of("health")).await, [second.clone(), first.clone()]);
        let about = |user: &str| LedgerQuery { user_id: Some(user.into()), ..all() };
        assert_eq!(list(&backend, about("ada")).await, [third.clone(), first.clone()]);
        assert_eq!(list(&backend, LedgerQuery { origin: Some("bank".into()), ..about("ada") }).await, std::slice::from_ref(&third));
        let by = LedgerQuery { channel: Some("telegram".into()), ..all() };
        assert_eq!(list(&backend, by).await, [third.clone(), second.clone()]);
        let kind = LedgerQuery { decision: Some(Delivered), ..all() };
        assert_eq!(list(&backend, kind).await, [first]);
        let since = LedgerQuery { since: Some(times[2]), ..all() };
        assert_eq!(list(&backend, since).await, [fourth, third]);
        let at = backend.store().ledger(LedgerQuery { limit: 1, ..all() }).await.unwrap().0[0].at;
        assert_eq!(at, times[3]);
    }

    async fn pages_follow_each_other_without_gaps_or_repeats(backend: Backend) {
        for number in 0..25 {
            record(&backend, decision(&format!("origin-{number}"), None, "email", Refused)).await;
        }
        let (mut seen, mut before) = (BTreeSet::new(), None);
        loop {
            let query = LedgerQuery { limit: 7, before, ..LedgerQuery::default() };
            let (entries, next) = backend.store().ledger(query).await.unwrap();
            assert!(entries.iter().all(|entry| seen.insert(entry.decided.origin.clone())), "no repeats");
            if next.is_none() {
                break;
            }
            before = next;
        }
        assert_eq!(seen.len(), 25);
    }

    async fn decisions_are_summed_per_origin_day_and_person(backend: Backend) {
        record(&backend, decision("health", Some("ada"), "email", Delivered)).await;
        backend.pass(3 * DAY_MS);
        for _ in 0..3 {
            record(&backend, decision("health", Some("ada"), "email", Refused)).await;
            record(&backend, decision("bank", Some("bob"), "email", Refused)).await;
        }
        record(&backend, decision("health", Some("bob"), "email", Delivered)).await;
        let store = backend.store();
        let week = backend.now().minus(7 * DAY_MS as u64);
        let all = store.ledger_sums(None, None, week).await.unwrap();
        assert_eq!((count(&all, "health", Delivered), count(&all, "health", Refused)), (2, 3));
        assert_eq!(all.iter().map(|sums| sums.never_gets_through()).collect::<Vec<_>>(), [true, false]);
        let today = store.ledger_sums(None, None, backend.now()).await.unwrap();
        assert_eq!(count(&today, "health", Delivered), 1);
        let bank = store.ledger_sums(Some("bank".into()), None, week).await.unwrap();
        assert_eq!((bank.len(), count(&bank, "bank", Refused)), (1, 3));
        let adas = store.ledger_sums(None, Some("ada".into()), week).await.unwrap();
        assert_eq!((adas.len(), count(&adas, "health", Delivered), count(&adas, "health", Refused)), (1, 1, 3));
        let none = store.ledger_sums(Some("bank".into()), Some("ada".into()), Time::ZERO).await.unwrap();
        assert_eq!(none, []);
    }

    async fn an_origin_that_floods_the_ledger_is_only_counted(backend: Backend) {
        const FLOOD: usize = 10_050;
        let reports = Reports::of(&mut backend).await;
        let mut recording = tokio::task::JoinSet::new();
        for _ in 0..FLOOD {
            let store = backend.store();
            let draft = decision("flood", Some("ada"), "email", Refused);
            recording.spawn(async move { store.record_decision(draft).await.unwrap() });
        }
        recording.join_all().await;
        record(&backend, decision("health", Some("ada"), "email", Delivered)).await;
        reports.check("a flood of decisions");
        let sums = backend.store().ledger_sums(None, None, backend.now()).await.unwrap();
        assert_eq!((count(&sums, "flood", Refused), count(&sums, "health", Delivered)), (FLOOD as u64, 1));
        let (mut listed, mut before) = (0, None);
        loop {
            let query = LedgerQuery { limit: 10_000, before, ..LedgerQuery::default() };
            let (entries, next) = backend.store().ledger(query).await.unwrap();
            listed += entries.len();
            if next.is_none() {
                break;
            }
            before = next;
        }
        assert_eq!(listed, 10_001, "the first ten thousand, and the other origin's");
        backend.pass(DAY_MS);
        record(&backend, decision("flood", Some("ada"), "email", Delivered)).await;
        let newest = LedgerQuery { limit: 1, ..LedgerQuery::default() };
        assert_eq!(backend.store().ledger(newest).await.unwrap().0[0].decided.decision, Delivered, "a new day");
    }
}

use std::collections::{BTreeMap, BTreeSet};

use bellwire_core::Time;
use bellwire_core::notify::{RequestContext, normalized_target};
use bellwire_core::person::PersonSettings;
use uuid::Uuid;

use super::Memory;
use crate::damage::Found;
use crate::error::StoreError;
use crate::executor::NotifyRowSource;
use crate::notify::{
    AgentKey, AnswerCount, InboundMessage, InboundRow, LedgerDecision, LedgerEntry, LedgerQuery, NotifyAnswer,
    NotifyChanges, NotifyKey, NotifyRow, OriginSums, ReplyContextRow, day_of, sum_up, targets_of,
};
use crate::single_writer::NotifyReader;
use crate::writer::PruneCutoffs;

/// The tables of `notify`.
#[derive(Default)]
pub(super) struct NotifyTables {
    requests: BTreeMap<NotifyKey, NotifyRow>,
    ledger: BTreeMap<Uuid, LedgerEntry>,
    ledger_days: BTreeMap<(String, i64, LedgerDecision), u64>,
    inbound: BTreeMap<(String, String), InboundRow>,
    reply_contexts: BTreeMap<AgentKey, ReplyContextRow>,
    answer_counts: BTreeMap<NotifyKey, AnswerCount>,
}

impl NotifyTables {
    pub(super) fn commit(&mut self, changes: &NotifyChanges) {
        self.requests.extend(changes.requests.iter().map(|(key, row)| (*key, row.clone())));
        for row in &changes.ledger {
            let LedgerEntry { at, decided, .. } = &row.entry;
            let day = (decided.origin.clone(), day_of(*at), decided.decision);
            *self.ledger_days.entry(day).or_default() += 1;
            self.ledger.extend(row.is_listed.then(|| (row.entry.id, row.entry.clone())));
        }
        self.inbound.extend(changes.inbound.iter().map(|(key, row)| (key.clone(), row.clone())));
        self.reply_contexts.extend(changes.reply_contexts.iter().map(|(key, row)| (key.clone(), row.clone())));
        self.answer_counts.extend(changes.answer_counts.iter().map(|(key, row)| (*key, row.clone())));
    }

    pub(super) fn erase(&mut self, user: &str) {
        let is_other = |person: &Option<String>| person.as_deref() != Some(user);
        self.requests.retain(|_, row| is_other(&row.user_id) && is_other(&row.on_behalf_of));
        self.ledger.retain(|_, entry| is_other(&entry.decided.user_id));
        self.inbound.retain(|_, row| row.user_id != user);
        self.reply_contexts.retain(|(owner, ..), _| &**owner != user);
        self.answer_counts.retain(|_, row| is_other(&row.user_id));
    }

    pub(super) fn prune(&mut self, before: &PruneCutoffs) -> usize {
        let rows = self.len();
        self.requests.retain(|_, row| row.ended_at.is_none_or(|at| at >= before.idempotency_keys));
        self.ledger.retain(|_, entry| entry.at >= before.ledger);
        self.ledger_days.retain(|(_, day, _), _| *day >= day_of(before.ledger));
        self.inbound.retain(|_, row| row.at >= before.events);
        self.reply_contexts.retain(|_, row| row.at >= before.events);
        self.answer_counts.retain(|_, row| row.at >= before.events);
        rows - self.len()
    }

    fn len(&self) -> usize {
        let small = [self.inbound.len(), self.reply_contexts.len(), self.answer_counts.len(), self.ledger_days.len()];
        self.requests.len() + self.ledger.len() + small.into_iter().sum::<usize>()
    }

    pub(super) fn leases(&self) -> impl Iterator<Item = Time> {
        self.requests.values().filter(|row| row.is_leased()).filter_map(|row| row.lease_until)
    }
}

impl NotifyRowSource for Memory {
    async fn notify_request(&mut self, key: &NotifyKey) -> Result<Option<NotifyRow>, StoreError> {
        Ok(self.lock().notify.requests.get(key).cloned())
    }

    async fn lapsed_notify(
        &mut self,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> Result<Found<NotifyRow>, StoreError> {
        let tables = self.lock();
        let is_excluded = |row: &NotifyRow| row.user_id.as_ref().is_some_and(|user| except.contains(user));
        let lapsed = tables.notify.requests.values().filter(|row| row.has_lapsed(now) && !is_excluded(row));
        let mut lapsed: Vec<_> = lapsed.cloned().collect();
        lapsed.sort_by_key(|row| row.lease_until);
        lapsed.truncate(limit);
        Ok(lapsed.into())
    }

    async fn nth_listed(&mut self, limit_key: &NotifyKey, since: Time, nth: usize) -> Result<Option<Time>, StoreError> {
        let tables = self.lock();
        let rows = tables.notify.requests.values().filter(|row| row.limit_key.as_ref() == Some(limit_key));
        let mut times: Vec<Time> = rows.map(|row| row.created_at).filter(|at| *at > since).collect();
        times.sort();
        Ok(times.len().checked_sub(nth).and_then(|at| times.get(at).copied()))
    }

    async fn answer_count(&mut self, key: &NotifyKey) -> Result<Option<AnswerCount>, StoreError> {
        Ok(self.lock().notify.answer_counts.get(key).cloned())
    }

    async fn ledger_count(&mut self, origin: &str, day: i64) -> Result<u64, StoreError> {
        let tables = self.lock();
        let days = tables.notify.ledger_days.iter().filter(|((of, on, _), _)| of == origin && *on == day);
        Ok(days.map(|(_, count)| count).sum())
    }
}

impl NotifyReader for Memory {
    async fn notify_answer(&self, key: &NotifyKey, since: Time) -> Result<Option<NotifyAnswer>, StoreError> {
        let tables = self.lock();
        let row = tables.notify.requests.get(key).filter(|row| row.ended_at.is_some_and(|at| at > since));
        Ok(row.and_then(|row| row.answer.clone()))
    }

    async fn ledger(&self, query: &LedgerQuery) -> Result<Vec<LedgerEntry>, StoreError> {
        let tables = self.lock();
        let since = query.since.unwrap_or(Time::ZERO);
        let is_before = |entry: &&LedgerEntry| query.before.is_none_or(|before| entry.id < before);
        let rows = tables.notify.ledger.values().rev().filter(is_before).filter(|entry| entry.at >= since);
        // The same rows that an index of the database reads.
        let of_key = |entry: &&LedgerEntry| match (&query.user_id, &query.origin) {
            (Some(user), _) => entry.decided.user_id.as_ref() == Some(user),
            (None, Some(origin)) => entry.decided.origin == *origin,
            (None, None) => true,
        };
        Ok(rows.filter(of_key).take(LedgerQuery::SCANNED_MAX).cloned().collect())
    }

    async fn ledger_sums(&self, origin: Option<&str>, since: Time) -> Result<Vec<OriginSums>, StoreError> {
        let tables = self.lock();
        let days = tables
            .notify
            .ledger_days
            .iter()
            .filter(|((of, day, _), _)| *day >= day_of(since) && origin.is_none_or(|origin| origin == of));
        Ok(sum_up(days.map(|((origin, _, decision), count)| (origin.clone(), *decision, *count))))
    }

    async fn inbound_message(&self, channel: &str, thread: &str) -> Result<Option<InboundMessage>, StoreError> {
        let key = (channel.to_owned(), thread.to_owned());
        Ok(self.lock().notify.inbound.get(&key).and_then(InboundRow::message))
    }

    async fn reply_context(
        &self,
        user_id: &str,
        conversation_id: &str,
        agent: &str,
    ) -> Result<Option<RequestContext>, StoreError> {
        let key: AgentKey = (user_id.into(), conversation_id.into(), agent.into());
        Ok(self.lock().notify.reply_contexts.get(&key).and_then(ReplyContextRow::context))
    }

    async fn chosen_context(&self, call_key: &NotifyKey, since: Time) -> Result<Option<RequestContext>, StoreError> {
        let tables = self.lock();
        let rows = tables.notify.requests.values().filter(|row| row.ended_at.is_none_or(|at| at > since));
        let chosen = rows.filter_map(|row| Some((row.created_at, row.chosen.as_ref()?)));
        let oldest = chosen.filter(|(_, chosen)| chosen.call_key == *call_key).min_by_key(|(at, _)| *at);
        Ok(oldest.map(|(_, chosen)| chosen.context.clone()))
    }

    async fn people_with_target(&self, channel: &str, target: &str, limit: usize) -> Result<Vec<String>, StoreError> {
        let target = normalized_target(target);
        let has = |settings: &PersonSettings| {
            targets_of(settings).any(|(of, known)| of == channel && normalized_target(known) == target)
        };
        let tables = self.lock();
        let people = tables.people.settings.iter().filter(|(_, settings)| has(settings));
        let mut people: Vec<String> = people.map(|(user_id, _)| user_id.clone()).collect();
        people.sort();
        people.truncate(limit);
        Ok(people)
    }
}

//! Runs erasures: one bounded step after each commit, so that other commands run in between.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::{Backend, CommitReport, Writer};
use crate::error::StoreError;
use crate::people::OutboxCounts;
use crate::reply::PendingReply;
use crate::work::Work;

/// About how many rows one step erases. 5,000 would be allowed; this many take about 20 ms.
const STEP_ROWS: usize = 500;
/// How long to wait after a failed step.
const RETRY: Duration = Duration::from_secs(1);
/// How long to wait after a step that was blocked by a reader: doubled each time, between these two.
const BLOCKED_MIN: Duration = Duration::from_millis(20);
const BLOCKED_MAX: Duration = Duration::from_secs(1);

/// The result of one step of an erasure.
pub(crate) struct Erased {
    /// How many rows it wrote or deleted.
    pub(crate) rows: usize,
    /// How many rows it read to find them.
    pub(crate) looked: usize,
    /// How many pending notifications were among the deleted rows.
    pub(crate) pending: usize,
    /// The change of the numbers of waiting deliveries.
    pub(crate) outbox: OutboxCounts,
    pub(crate) progress: EraseProgress,
}

/// The progress of an erasure.
#[derive(Clone, Debug)]
pub(crate) enum EraseProgress {
    /// There may be more rows.
    More,
    /// The rows are deleted, but a reader still uses the write-ahead log that contains their pages.
    Blocked,
    /// The rows of this step are deleted and the erasure is recorded, but it could not be completed. A later step
    /// retries.
    Failed(StoreError),
    /// No row is left. `known` = there was one, in this erasure or in one of the last days.
    Done { known: bool },
}

/// The erasures in progress; they get steps in turn.
#[derive(Default)]
pub(super) struct Erasures {
    queue: VecDeque<Erasure>,
    /// The next step must not run before this time.
    not_before: Option<Instant>,
}

struct Erasure {
    user_id: String,
    /// The callers to answer when it is done.
    replies: Vec<PendingReply<()>>,
    /// How long it waited after the last step that was blocked by a reader.
    blocked: Duration,
}

impl Erasure {
    fn new(user_id: String, replies: Vec<PendingReply<()>>) -> Self {
        Self { user_id, replies, blocked: Duration::ZERO }
    }

    /// How long to wait before the next step.
    fn wait_after(&mut self, progress: &EraseProgress) -> Option<Duration> {
        match progress {
            EraseProgress::More | EraseProgress::Done { .. } => None,
            EraseProgress::Failed(_) => Some(RETRY),
            EraseProgress::Blocked => {
                self.blocked = (self.blocked * 2).clamp(BLOCKED_MIN, BLOCKED_MAX);
                Some(self.blocked)
            }
        }
    }

    fn answer(&mut self, result: &Result<(), StoreError>) {
        for mut reply in self.replies.drain(..) {
            let _ = reply.hold(result.clone());
            reply.send(Ok(()));
        }
    }
}

impl Erasures {
    /// Continues an erasure that an earlier process started.
    pub(super) fn resume(&mut self, user_id: String) {
        self.queue.push_back(Erasure::new(user_id, Vec::new()));
    }

    /// The time until the next step; none without an erasure.
    pub(super) fn until_next(&self) -> Option<Duration> {
        let wait = self.not_before.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
        (!self.queue.is_empty()).then_some(wait)
    }
}

impl<B: Backend> Writer<B> {
    /// Starts an erasure and runs its first step, or joins the one in progress. A small erasure ends with its first
    /// step.
    pub(super) async fn begin_erasing(&mut self, user_id: String, reply: PendingReply<()>) {
        if let Some(known) = self.erasures.queue.iter_mut().find(|known| known.user_id == user_id) {
            return known.replies.push(reply);
        }
        self.executor.evict_user(&user_id);
        self.erasing.begin(&user_id);
        let mut erasure = Erasure::new(user_id, vec![reply]);
        match self.erase_some(&mut erasure).await {
            Ok(EraseProgress::Done { .. }) => {}
            Ok(progress) => self.wait_for_next_step(erasure, &progress),
            Err(error) => {
                // The step was rolled back together with the record of the erasure, so the caller may retry.
                self.erasing.end(&erasure.user_id);
                erasure.answer(&Err(error));
            }
        }
    }

    /// Runs a step of the oldest erasure, if it is due.
    pub(super) async fn go_on_erasing(&mut self) {
        if self.erasures.until_next() != Some(Duration::ZERO) {
            return;
        }
        let Some(mut erasure) = self.erasures.queue.pop_front() else { return };
        match self.erase_some(&mut erasure).await {
            Ok(EraseProgress::Done { .. }) => self.erasures.not_before = None,
            Ok(progress) => self.wait_for_next_step(erasure, &progress),
            Err(error) => {
                erasure.answer(&Err(error.clone()));
                self.wait_for_next_step(erasure, &EraseProgress::Failed(error));
            }
        }
    }

    fn wait_for_next_step(&mut self, mut erasure: Erasure, progress: &EraseProgress) {
        self.erasures.not_before = erasure.wait_after(progress).map(|wait| Instant::now() + wait);
        self.erasures.queue.push_back(erasure);
    }

    /// Runs one step in its own transaction. Answers the callers after the last one.
    async fn erase_some(&mut self, erasure: &mut Erasure) -> Result<EraseProgress, StoreError> {
        let started = Instant::now();
        let erased = self.backend.erase(&erasure.user_id, STEP_ROWS, self.clock.now()).await;
        if let Some(observer) = &self.observer {
            let failed = erased.as_ref().err().map(|error| error.kind);
            let (read, written) = erased.as_ref().map_or((0, 0), |erased| (erased.looked, erased.rows));
            let work = Work { read, written, ..Work::default() };
            observer(&CommitReport { commands: 1, took: started.elapsed(), work, failed, ..CommitReport::default() });
        }
        let erased = erased?;
        self.waiting.fetch_sub(i64::try_from(erased.pending).unwrap_or(0), Ordering::SeqCst);
        self.count_outbox(&erased.outbox);
        match &erased.progress {
            EraseProgress::More | EraseProgress::Blocked => {}
            EraseProgress::Failed(error) => erasure.answer(&Err(error.clone())),
            EraseProgress::Done { known } => {
                // Timers may have loaded rows of the person since the first step.
                self.executor.evict_user(&erasure.user_id);
                self.refusals.forget(&self.rules.quotas(&erasure.user_id));
                self.erasing.end(&erasure.user_id);
                self.erased.send_modify(|count| *count += 1);
                erasure.answer(&if *known { Ok(()) } else { Err(StoreError::not_found("user")) });
            }
        }
        Ok(erased.progress)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_blocked_erasure_is_tried_once_a_second_after_a_while() {
        let mut erasure = Erasure::new("ada".into(), Vec::new());
        let waits: Vec<u128> =
            (0..8).filter_map(|_| erasure.wait_after(&EraseProgress::Blocked)).map(|wait| wait.as_millis()).collect();
        assert_eq!(waits, [20, 40, 80, 160, 320, 640, 1_000, 1_000]);
    }
}

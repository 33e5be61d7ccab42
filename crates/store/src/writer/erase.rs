//! Erasures, one bounded step after each commit: other commands go in between.

use std::collections::VecDeque;
use std::sync::atomic::Ordering;
use std::time::Duration;

use tokio::time::Instant;

use super::{Backend, CommitReport, Writer};
use crate::error::StoreError;
use crate::reply::PendingReply;
use crate::work::Work;

/// The rows one step erases, about. 5,000 would be allowed; so many take some 20 ms.
const STEP_ROWS: usize = 500;
/// How long to wait after a step that failed, and after one that a reader was in the way of.
const RETRY: Duration = Duration::from_secs(1);
const BLOCKED: Duration = Duration::from_millis(20);

/// What one step of an erasure did.
pub(crate) struct Erased {
    /// How many rows it wrote or deleted.
    pub(crate) rows: usize,
    /// How many pending notifications were among the deleted rows.
    pub(crate) pending: usize,
    pub(crate) progress: Progress,
}

/// How far an erasure is.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// There may be more rows.
    More,
    /// The rows are gone, but a reader still needs the log that their pages are in.
    Blocked,
    Done,
}

/// The erasures under way; each in turn gets a step.
#[derive(Default)]
pub(super) struct Erasures {
    queue: VecDeque<Erasure>,
    /// No step before this.
    not_before: Option<Instant>,
}

struct Erasure {
    user_id: String,
    /// Those who are answered when it is done.
    replies: Vec<PendingReply<()>>,
}

impl Erasure {
    fn answer(&mut self, result: &Result<(), StoreError>) {
        for mut reply in self.replies.drain(..) {
            let _ = reply.hold(result.clone());
            reply.send(Ok(()));
        }
    }
}

impl Erasures {
    /// Goes on with an erasure that an earlier process began.
    pub(super) fn resume(&mut self, user_id: String) {
        self.queue.push_back(Erasure { user_id, replies: Vec::new() });
    }

    /// When the next step is to be made, from now; none without an erasure.
    pub(super) fn until_next(&self) -> Option<Duration> {
        let wait = self.not_before.map_or(Duration::ZERO, |at| at.saturating_duration_since(Instant::now()));
        (!self.queue.is_empty()).then_some(wait)
    }
}

impl<B: Backend> Writer<B> {
    /// Begins to erase a person with a first step; joins an erasure that is under way. A small one ends with that step.
    pub(super) async fn begin_erasing(&mut self, user_id: String, reply: PendingReply<()>) {
        if let Some(known) = self.erasures.queue.iter_mut().find(|known| known.user_id == user_id) {
            return known.replies.push(reply);
        }
        self.executor.evict_user(&user_id);
        self.erasing.begin(&user_id);
        let mut erasure = Erasure { user_id, replies: vec![reply] };
        match self.erase_some(&mut erasure).await {
            Ok(Progress::Done) => {}
            Ok(_) => self.erasures.queue.push_back(erasure),
            Err(error) => {
                // Nothing has happened, and the caller may ask again.
                self.erasing.end(&erasure.user_id);
                erasure.answer(&Err(error));
            }
        }
    }

    /// Makes a step of the erasure that waited longest for one, if its time has come.
    pub(super) async fn go_on_erasing(&mut self) {
        if self.erasures.until_next() != Some(Duration::ZERO) {
            return;
        }
        let Some(mut erasure) = self.erasures.queue.pop_front() else { return };
        let wait = match self.erase_some(&mut erasure).await {
            Ok(Progress::Done) => return self.erasures.not_before = None,
            Ok(Progress::More) => None,
            Ok(Progress::Blocked) => Some(BLOCKED),
            Err(error) => {
                erasure.answer(&Err(error));
                Some(RETRY)
            }
        };
        self.erasures.not_before = wait.map(|wait| Instant::now() + wait);
        self.erasures.queue.push_back(erasure);
    }

    /// One step, a transaction of its own. The callers are answered when it was the last one.
    async fn erase_some(&mut self, erasure: &mut Erasure) -> Result<Progress, StoreError> {
        let started = Instant::now();
        let erased = self.backend.erase(&erasure.user_id, STEP_ROWS).await;
        if let Some(observer) = &self.observer {
            let failed = erased.as_ref().err().map(|error| error.kind);
            let work = Work { written: erased.as_ref().map_or(0, |erased| erased.rows), ..Work::default() };
            observer(&CommitReport { commands: 1, took: started.elapsed(), work, failed, ..CommitReport::default() });
        }
        let erased = erased?;
        self.waiting.fetch_sub(i64::try_from(erased.pending).unwrap_or(0), Ordering::SeqCst);
        if erased.progress == Progress::Done {
            self.refusals.forget(&self.rules.quotas(&erasure.user_id));
            self.erasing.end(&erasure.user_id);
            self.erased.send_modify(|count| *count += 1);
            erasure.answer(&Ok(()));
        }
        Ok(erased.progress)
    }
}

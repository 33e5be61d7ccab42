//! A step is the work of one commit: timers, then jobs in order. A job that fails is removed from its step. A commit
//! that the database refuses is divided until the refused job is alone.

use std::ops::Range;

use super::Job;
use crate::rows::MailboxKey;

/// A job and its progress.
pub(super) struct Task {
    pub(super) job: Job,
    pub(super) state: State,
    /// Steps that did not finish it.
    pub(super) steps: u32,
    /// The mailboxes that it needs in its next step.
    pub(super) pins: Vec<MailboxKey>,
}

/// What a step did for a job.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum State {
    /// Its answer is decided and sent after the commit.
    Decided,
    /// It used up its reads of one step and staged nothing; it is decided again in the next.
    Unfinished,
    /// It has staged a part of its work.
    Part,
}

impl Task {
    pub(super) fn new(job: Job) -> Self {
        Self { job, state: State::Unfinished, steps: 0, pins: Vec::new() }
    }
}

/// How many of the jobs of a step were decided.
pub(super) enum Decided {
    All,
    /// The first jobs, this many; they are enough work for a commit.
    First(usize),
    /// This one failed after it had staged changes.
    Failed(usize),
}

/// How many of the due timers a step has handled.
#[derive(Copy, Clone, PartialEq, Eq)]
pub(super) enum Fired {
    /// The step handles no timers.
    Nothing,
    /// More may be due.
    Part,
    All,
    /// They failed and are tried again later.
    Failed,
}

/// Jobs that are decided and committed together, and whether timers are handled before them.
pub(super) struct Step {
    pub(super) jobs: Range<usize>,
    pub(super) fires: bool,
}

impl Step {
    /// The jobs after a failed one and the jobs before it, in this order.
    pub(super) fn without(self, failed: usize) -> [Self; 2] {
        let (before, behind) = (self.jobs.start..failed, failed + 1..self.jobs.end);
        [Self { jobs: behind, fires: false }, Self { jobs: before, fires: self.fires }]
    }

    pub(super) fn is_divisible(&self) -> bool {
        self.jobs.len() + usize::from(self.fires) > 1
    }

    /// Three steps for the timers, the first half of the jobs and the second half, in reverse order.
    pub(super) fn halves(self) -> Vec<Self> {
        let Range { start, end } = self.jobs;
        let middle = start + (end - start) / 2;
        let timers = self.fires.then_some(Self { jobs: start..start, fires: true });
        let halves = [middle..end, start..middle].into_iter().filter(|jobs| !jobs.is_empty());
        halves.map(|jobs| Self { jobs, fires: false }).chain(timers).collect()
    }
}

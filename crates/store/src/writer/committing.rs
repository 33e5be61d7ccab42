//! Who commits: takes the backend and a group, writes, tells everyone, and hands the backend back.

use std::sync::Arc;

use tokio::sync::{mpsc, oneshot};

use super::disk::Written;
use super::{Backend, Group};
use crate::error::StoreError;
use crate::hints::Board;
use crate::people::{Doorbells, PeopleRules};
use crate::refusals::Refusals;
use crate::report::{Observer, Report};
use crate::rows::Changes;

/// A backend on its way to the disk.
pub(super) struct Trip<B> {
    pub(super) backend: B,
    pub(super) changes: Changes,
    pub(super) group: Group,
    pub(super) home: oneshot::Sender<Back<B>>,
}

/// A backend that comes back, and what became of the commit.
pub(super) struct Back<B> {
    pub(super) backend: B,
    pub(super) written: Written,
}

/// Who hears of a commit.
#[derive(Clone)]
pub(super) struct Hearers {
    pub(super) observer: Option<Observer>,
    pub(super) hints: Arc<Board>,
    pub(super) doorbells: Arc<Doorbells>,
    pub(super) refusals: Arc<dyn Refusals>,
    pub(super) rules: PeopleRules,
}

/// Commits until nobody decides any more. The end of `ended` tells that everyone has been told.
pub(super) async fn run<B: Backend>(
    mut trips: mpsc::UnboundedReceiver<Trip<B>>,
    hearers: Hearers,
    ended: oneshot::Sender<()>,
) {
    while let Some(Trip { mut backend, changes, group, home }) = trips.recv().await {
        let committed = backend.commit(&changes).await;
        hearers.note(&changes, &group, &committed);
        // What comes next is got ready while everyone is told of this.
        drop(home.send(Back { backend, written: Written { changes, committed: committed.clone() } }));
        hearers.tell(group, &committed);
    }
    drop(ended);
}

impl Hearers {
    /// What has to be known before anybody is told.
    pub(super) fn note(&self, changes: &Changes, group: &Group, committed: &Result<(), StoreError>) {
        if let Some(observer) = &self.observer {
            let (commands, waited, took) = (group.held.len(), group.waited, group.started.elapsed());
            let failed = committed.as_ref().err().map(|error| error.kind);
            observer(&Report { commands, waited, took, failed, ..Report::of(changes) });
        }
        if committed.is_ok() {
            let Changes { erased_users, people, .. } = changes;
            people.refused.iter().for_each(|(quota, until)| self.refusals.remember(quota, *until));
            erased_users.iter().for_each(|user| self.refusals.forget(&self.rules.quotas(user)));
            self.doorbells.ring(people);
        }
    }

    /// Tells streams, and whoever asked.
    pub(super) fn tell(&self, group: Group, committed: &Result<(), StoreError>) {
        if committed.is_ok() {
            group.hints.into_iter().for_each(|hint| self.hints.post(hint));
        }
        group.held.into_iter().for_each(|answer| answer(committed.clone()));
    }

    /// Tells everyone who listens that there will be nothing more.
    pub(super) fn close(&self) {
        self.doorbells.close();
        self.hints.close();
    }
}

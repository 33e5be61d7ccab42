//! Who decides: takes what is asked, lets the post room answer, and sends what is to be written away as one commit.

use std::time::Duration;

use bellwire_core::Time;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use super::committing::Hearers;
use super::disk::{Disk, Written};
use super::{Backend, Before, Clock, Group, Held, Job, Opening, hold, noted};
use crate::Kept;
use crate::command::Once;
use crate::error::StoreError;
use crate::postroom::PostRoom;

/// The most commands one commit carries.
const GROUP_MAX: usize = 256;
/// After this many events a commit takes no further command.
const EVENTS_MAX: usize = 1000;
/// How many due mailboxes one commit handles.
const DUE_MAX: usize = 256;
/// Timers are looked at this often even if nobody expects them: another process may have set them.
const LOOK_MS: u64 = 1_000;
/// What a probe found holds for so long, so that asking often costs no more than asking once a second.
const PROBED_FOR: Duration = Duration::from_secs(1);

pub(super) struct Writer<B> {
    room: PostRoom,
    disk: Disk<B>,
    hearers: Hearers,
    /// Ends when everyone has been told of everything.
    told: oneshot::Receiver<()>,
    clock: Clock,
    timers: bool,
    /// Who is answered by the next commit.
    group: Group,
    /// When a timer is due, as far as this writer knows.
    due: Time,
    /// Whether a commit would be taken, as far as is known, and since when.
    probed: Option<(Instant, Result<(), StoreError>)>,
}

impl<B: Backend> Writer<B> {
    pub(super) fn new(opening: Opening, disk: Disk<B>, hearers: Hearers, told: oneshot::Receiver<()>) -> Self {
        Self {
            room: PostRoom::new(opening.subscribers, opening.seed, opening.people),
            disk,
            hearers,
            told,
            clock: opening.clock,
            timers: opening.timers,
            group: Group::new(),
            due: Time::ZERO,
            probed: None,
        }
    }

    pub(super) async fn run(mut self, mut asked: mpsc::Receiver<(Instant, Job)>) {
        let mut jobs = Vec::with_capacity(GROUP_MAX);
        while !self.disk.is_lost() {
            let (is_away, wait) = (self.disk.is_away(), self.until_due());
            tokio::select! {
                biased;
                () = self.disk.come_back(), if is_away => self.settle(),
                received = asked.recv_many(&mut jobs, GROUP_MAX) => {
                    let closing = self.carry_out(&mut jobs).await;
                    if received == 0 || !closing.is_empty() {
                        self.send().await;
                        return self.close(closing).await;
                    }
                }
                () = tokio::time::sleep(wait), if self.timers && !is_away => {}
            }
            if !self.disk.is_away() {
                self.send().await;
            }
        }
        self.hearers.close();
    }

    /// How long nothing is due.
    fn until_due(&self) -> Duration {
        Duration::from_millis(self.due.millis_since((self.clock)()).min(LOOK_MS))
    }

    /// Decides on what was asked, and gives back who wants the store closed.
    async fn carry_out(&mut self, jobs: &mut Vec<(Instant, Job)>) -> Vec<Job> {
        let (mut closing, mut reads) = (Vec::new(), Vec::new());
        self.room.set_now((self.clock)());
        for (asked, job) in jobs.drain(..) {
            match job {
                Job::Close(_) => closing.push(job),
                Job::Conversation(..) => reads.push(job),
                // An erasure has a commit of its own: what was asked before it is erased, what was asked after it stays.
                Job::EraseUser(..) => {
                    self.flush().await;
                    self.decide(job, asked).await;
                    self.flush().await;
                }
                job => self.decide(job, asked).await,
            }
        }
        // Reading needs no commit, and must go on where none is taken; but nobody is shown what is not written yet.
        if !reads.is_empty() {
            self.flush().await;
        }
        for read in reads {
            let answer = self.answer(read, &mut None).await;
            self.settle();
            answer(Ok(()));
        }
        closing
    }

    /// What is refused has changed nothing; if the store itself fails, everyone in the group hears of it.
    async fn decide(&mut self, job: Job, asked: Instant) {
        if self.group.held.len() >= GROUP_MAX || self.group.events >= EVENTS_MAX {
            self.send().await;
        }
        if self.group.held.is_empty() {
            self.group = Group { waited: asked.elapsed(), ..Group::new() };
        }
        self.group.events += if let Job::Publish(publish, _) = &job { publish.events.len() } else { 0 };
        let mut failed = None;
        let held = self.answer(job, &mut failed).await;
        self.group.held.push(held);
        if let Some(error) = failed {
            self.fail(error);
        }
        self.settle();
    }

    /// Takes note of what became of the last commit, if it is back. If it failed, whatever was decided since rests on what
    /// was not written, and fails with it.
    fn settle(&mut self) {
        let Some(Written { changes, committed }) = self.disk.written() else { return };
        match committed {
            Ok(()) => {
                // It may have been smaller than a probe: ask anew.
                drop(self.probed.take_if(|(_, found)| found.is_err()));
                self.room.committed(&changes);
            }
            Err(error) => {
                self.room.roll_back(changes);
                self.probed = Some((Instant::now(), Err(error.clone())));
                self.fail(error);
            }
        }
    }

    /// Nothing of what is being decided happens.
    fn fail(&mut self, error: StoreError) {
        let changes = std::mem::take(&mut self.room.changes);
        let (group, committed) = (std::mem::replace(&mut self.group, Group::new()), Err(error));
        if !group.held.is_empty() {
            self.hearers.note(&changes, &group, &committed);
        }
        self.room.roll_back(changes);
        self.hearers.tell(group, &committed);
    }

    /// Sends what was decided away to be written, after what was sent before.
    async fn send(&mut self) {
        self.disk.come_back().await;
        self.settle();
        self.room.set_now((self.clock)());
        if self.timers
            && self.due <= (self.clock)()
            && let Err(error) = self.fire_timers().await
        {
            return self.fail(error);
        }
        let group = std::mem::replace(&mut self.group, Group::new());
        let (changes, hints) = self.room.seal();
        if changes.is_empty() {
            if !group.held.is_empty() {
                self.hearers.note(&changes, &group, &Ok(()));
                self.hearers.tell(group, &Ok(()));
            }
            return;
        }
        self.due = self.due.min(changes.next_due());
        self.disk.send(changes, Group { hints, ..group });
    }

    /// Waits until everything decided is written, or has failed.
    async fn flush(&mut self) {
        self.send().await;
        self.disk.come_back().await;
        self.settle();
    }

    async fn fire_timers(&mut self) -> Result<(), StoreError> {
        // Where it fails it is tried again, but not at once.
        self.due = (self.clock)().plus(LOOK_MS);
        let more = self.room.tick(DUE_MAX, &mut self.disk).await?;
        if more {
            self.due = Time::ZERO;
        }
        Ok(())
    }

    /// Lets the file go before it says so: whoever waited may open it again.
    async fn close(self, closing: Vec<Job>) {
        self.hearers.close();
        let closed = match self.disk.into_backend().await {
            Some(backend) => backend.close().await,
            None => Ok(()),
        };
        // Whoever was answered by the last commit has the answer first.
        let _ = self.told.await;
        for job in closing {
            if let Job::Close(reply) = job {
                let _ = reply.send(closed.clone());
            }
        }
    }

    /// Whether a commit would be taken: what is known, or a try if that is too old.
    async fn probe(&mut self) -> Result<(), StoreError> {
        if let Some((at, found)) = &self.probed
            && at.elapsed() < PROBED_FOR
        {
            return found.clone();
        }
        let found = self.disk.here().await?.probe().await;
        self.probed = Some((Instant::now(), found.clone()));
        found
    }

    async fn answer(&mut self, job: Job, failed: &mut Option<StoreError>) -> Held {
        let (room, backend) = (&mut self.room, &mut self.disk);
        match job {
            Job::Publish(publish, reply) => hold(reply, noted(room.publish(publish, backend).await, failed)),
            Job::Take(take, reply) => hold(reply, noted(room.take(&take, backend).await, failed)),
            Job::PutConversation(caller, id, user, title, reply) => {
                hold(reply, noted(room.put_conversation(&caller, &id, &user, title, backend).await, failed))
            }
            Job::Conversation(caller, id, reply) => hold(reply, noted(room.view(&caller, &id, backend).await, failed)),
            Job::Connect(caller, id, reply) => hold(reply, noted(room.connect(&caller, &id, backend).await, failed)),
            Job::Rotate(caller, id, once, reply) => {
                hold(reply, noted(room.rotate(&caller, &id, once.as_ref(), backend).await, failed))
            }
            Job::Errand(errand) => errand.carry_out(room, backend, failed).await,
            Job::PutToken(token, once, reply) => {
                hold(reply, noted(room.put_token(*token, once.as_ref(), backend).await, failed))
            }
            Job::AnswerOnce(once, answer, reply) => {
                hold(reply, noted(room.answer_once(&once, answer, backend).await, failed))
            }
            Job::EraseUser(user, reply) => {
                room.erase_user(&user);
                hold(reply, Ok(()))
            }
            Job::Prune(Kept { events, answers, inbox }, limit, reply) => {
                let once = Time::from_millis((self.clock)().as_millis().saturating_sub_unsigned(Once::KEPT_MS));
                let before = Before { events, answers, inbox, once };
                let pruned = async { backend.here().await?.prune(&before, limit).await };
                hold(reply, pruned.await)
            }
            Job::Tick(reply) => {
                let ticked = room.tick(usize::MAX, backend).await.map(drop);
                hold(reply, noted(ticked, failed))
            }
            Job::SetSubscribers(subscribers, reply) => {
                room.set_subscribers(subscribers);
                hold(reply, Ok(()))
            }
            Job::Check(reply) => hold(reply, self.probe().await),
            Job::Close(reply) => hold(reply, Ok(())),
        }
    }
}

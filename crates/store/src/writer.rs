//! One writer, many askers: whatever has been asked meanwhile goes into the next commit together.
//!
//! That is where throughput comes from: a commit costs one wait for the disk, however many answers it carries.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bellwire_core::Time;
use bellwire_core::render::Boundary;
use bellwire_core::subscriber::Subscribers;
use tokio::sync::{mpsc, oneshot};

use crate::command::{Caller, ConversationView, Given, Hint, Publish, Receipt, Settings, Take, Token};
use crate::error::{ErrorKind, StoreError};
use crate::hints::{Board, Hints};
use crate::postroom::{PostRoom, Source};
use crate::rows::Changes;

/// The most commands one commit carries.
const GROUP_MAX: usize = 256;
/// How many commands may wait before askers wait too.
const QUEUE_MAX: usize = 4096;
/// How many due mailboxes one commit handles.
const DUE_MAX: usize = 256;
/// Timers are looked at this often even if nobody expects them: another process may have set them.
const LOOK_MS: u64 = 1_000;

/// Tells the time. Handed in, so that tests have a clock of their own.
pub type Clock = Arc<dyn Fn() -> Time + Send + Sync>;

/// What a store is opened with.
#[derive(Clone)]
pub struct Opening {
    /// The subscribers in force.
    pub subscribers: Arc<Subscribers>,
    /// Random bits for ids, secrets and boundaries.
    pub seed: u128,
    /// The time.
    pub clock: Clock,
    /// Whether timers fire by themselves; a test with a clock of its own asks for them.
    pub timers: bool,
}

/// Where rows come from and go to, all or none.
pub(crate) trait Backend: Source + Send + 'static {
    fn commit(&mut self, changes: &Changes) -> impl Future<Output = Result<(), StoreError>> + Send;
    fn prune(
        &mut self,
        events_before: Time,
        answers_before: Time,
        limit: usize,
    ) -> impl Future<Output = Result<usize, StoreError>> + Send;
}

pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

pub(crate) enum Job {
    Publish(Publish, Reply<Vec<Receipt>>),
    Take(Box<Take>, Reply<Given>),
    PutConversation(Caller, String, String, Option<String>, Reply<ConversationView>),
    Conversation(Caller, String, Reply<ConversationView>),
    Connect(Caller, String, Reply<Vec<Hint>>),
    Rotate(Caller, String, Reply<Boundary>),
    PutSettings(String, Settings, Reply<()>),
    PutToken(Box<Token>, Reply<()>),
    EraseUser(String, Reply<()>),
    Prune(Time, Time, usize, Reply<usize>),
    Tick(Reply<()>),
    SetSubscribers(Arc<Subscribers>, Reply<()>),
    Check(Reply<()>),
    Close(Reply<()>),
}

/// The asking end of a writer.
#[derive(Clone)]
pub(crate) struct Handle {
    jobs: mpsc::Sender<Job>,
    hints: Arc<Board>,
}

impl Handle {
    /// Asks, and waits until the commit that answers.
    pub(crate) async fn ask<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let stopped = || StoreError::new(ErrorKind::Retry, "the store is shutting down");
        self.jobs.send(job(reply)).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    pub(crate) fn hints(&self, conversation_id: &str) -> Hints {
        self.hints.listen(conversation_id)
    }
}

/// Starts the writer; it ends when it is closed, or when the last handle is gone and everything asked is answered.
pub(crate) fn start<B: Backend>(backend: B, opening: Opening) -> Handle {
    let (jobs, asked) = mpsc::channel(QUEUE_MAX);
    let hints = Arc::new(Board::default());
    let handle = Handle { jobs, hints: hints.clone() };
    let room = PostRoom::new(opening.subscribers, opening.seed);
    let writer = Writer { room, backend, clock: opening.clock, timers: opening.timers, hints, due: Time::ZERO };
    tokio::spawn(writer.run(asked));
    handle
}

struct Writer<B> {
    room: PostRoom,
    backend: B,
    clock: Clock,
    timers: bool,
    hints: Arc<Board>,
    /// When a timer is due, as far as this writer knows.
    due: Time,
}

/// An answer that waits for its commit.
type Held = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

fn hold<T: Send + 'static>(reply: Reply<T>, result: Result<T, StoreError>) -> Held {
    Box::new(move |committed| {
        // An asker that has gone away wants no answer.
        let _ = reply.send(committed.and(result));
    })
}

impl<B: Backend> Writer<B> {
    async fn run(mut self, mut asked: mpsc::Receiver<Job>) {
        let mut group = Vec::with_capacity(GROUP_MAX);
        loop {
            let received = match self.until_due() {
                Some(wait) => tokio::time::timeout(wait, asked.recv_many(&mut group, GROUP_MAX)).await.ok(),
                None => Some(asked.recv_many(&mut group, GROUP_MAX).await),
            };
            if received == Some(0) {
                return self.hints.close();
            }
            let (closing, jobs): (Vec<Job>, Vec<Job>) = group.drain(..).partition(|job| matches!(job, Job::Close(_)));
            self.carry_out(jobs).await;
            if !closing.is_empty() {
                return self.close(closing);
            }
        }
    }

    /// Lets the file go before it says so: whoever waited may open it again.
    fn close(self, closing: Vec<Job>) {
        self.hints.close();
        drop(self);
        for job in closing {
            if let Job::Close(reply) = job {
                let _ = reply.send(Ok(()));
            }
        }
    }

    /// How long nothing is due; none where timers do not fire by themselves.
    fn until_due(&self) -> Option<Duration> {
        let wait = self.due.millis_since((self.clock)()).min(LOOK_MS);
        self.timers.then(|| Duration::from_millis(wait))
    }

    /// One group, one commit. What is refused has changed nothing; if the store itself fails, everyone hears of it.
    async fn carry_out(&mut self, jobs: Vec<Job>) {
        self.room.set_now((self.clock)());
        let mut held = Vec::with_capacity(jobs.len());
        let mut failed = None;
        if self.timers && self.due <= (self.clock)() {
            failed = self.fire_timers().await.err();
        }
        for job in jobs {
            held.push(match failed.clone() {
                Some(error) => refuse(job, error),
                None => self.answer(job, &mut failed).await,
            });
        }
        let committed = match failed {
            Some(error) => Err(error),
            None => self.commit().await,
        };
        match &committed {
            Ok(()) => {
                self.due = self.due.min(self.room.next_due());
                let hints = self.room.committed();
                hints.into_iter().for_each(|hint| self.hints.post(hint));
            }
            Err(_) => self.room.rolled_back(),
        }
        for answer in held {
            answer(committed.clone());
        }
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        self.room.seal();
        match self.room.changes.is_empty() && self.room.changes.mailbox_rows.is_empty() {
            true => Ok(()),
            false => self.backend.commit(&self.room.changes).await,
        }
    }

    async fn fire_timers(&mut self) -> Result<(), StoreError> {
        let more = self.room.tick(DUE_MAX, &mut self.backend).await?;
        self.due = if more { Time::ZERO } else { (self.clock)().plus(LOOK_MS) };
        Ok(())
    }

    async fn answer(&mut self, job: Job, failed: &mut Option<StoreError>) -> Held {
        let (room, backend) = (&mut self.room, &mut self.backend);
        match job {
            Job::Publish(publish, reply) => hold(reply, noted(room.publish(&publish, backend).await, failed)),
            Job::Take(take, reply) => hold(reply, noted(room.take(&take, backend).await, failed)),
            Job::PutConversation(caller, id, user, title, reply) => {
                hold(reply, noted(room.put_conversation(&caller, &id, &user, title, backend).await, failed))
            }
            Job::Conversation(caller, id, reply) => hold(reply, noted(room.view(&caller, &id, backend).await, failed)),
            Job::Connect(caller, id, reply) => hold(reply, noted(room.connect(&caller, &id, backend).await, failed)),
            Job::Rotate(caller, id, reply) => hold(reply, noted(room.rotate(&caller, &id, backend).await, failed)),
            Job::PutSettings(user, settings, reply) => hold(reply, room.put_settings(&user, settings)),
            Job::PutToken(token, reply) => {
                room.put_token(*token);
                hold(reply, Ok(()))
            }
            Job::EraseUser(user, reply) => {
                room.erase_user(&user);
                hold(reply, Ok(()))
            }
            Job::Prune(events, answers, limit, reply) => hold(reply, backend.prune(events, answers, limit).await),
            Job::Tick(reply) => {
                let ticked = room.tick(usize::MAX, backend).await.map(drop);
                hold(reply, noted(ticked, failed))
            }
            Job::SetSubscribers(subscribers, reply) => {
                room.set_subscribers(subscribers);
                hold(reply, Ok(()))
            }
            Job::Check(reply) => hold(reply, backend.commit(&Changes::default()).await),
            Job::Close(reply) => hold(reply, Ok(())),
        }
    }
}

/// A refusal concerns one asker; a failure of the store concerns the whole commit.
fn noted<T>(result: Result<T, StoreError>, failed: &mut Option<StoreError>) -> Result<T, StoreError> {
    if let Err(error) = &result
        && matches!(error.kind, ErrorKind::Retry | ErrorKind::Broken | ErrorKind::NoSpace)
    {
        *failed = Some(error.clone());
    }
    result
}

fn refuse(job: Job, error: StoreError) -> Held {
    match job {
        Job::Publish(_, reply) => hold(reply, Err(error)),
        Job::Take(_, reply) => hold(reply, Err(error)),
        Job::PutConversation(.., reply) | Job::Conversation(.., reply) => hold(reply, Err(error)),
        Job::Connect(.., reply) => hold(reply, Err(error)),
        Job::Rotate(.., reply) => hold(reply, Err(error)),
        Job::PutSettings(.., reply) | Job::PutToken(_, reply) | Job::EraseUser(_, reply) => hold(reply, Err(error)),
        Job::Prune(.., reply) => hold(reply, Err(error)),
        Job::Tick(reply) | Job::SetSubscribers(_, reply) | Job::Check(reply) | Job::Close(reply) => {
            hold(reply, Err(error))
        }
    }
}

//! Group commit: one writer task executes the commands of all requests. All commands that wait in the queue go into the
//! next commit together.
//!
//! A commit waits for the disk once, however many commands it contains. A command that fails does not fail the other
//! commands of its group.

mod backend;
mod erase;
mod health;
mod job;
mod step;

pub(crate) use backend::{Backend, PruneCutoffs, Pruned};
pub(crate) use erase::{EraseProgress, Erased};
pub(crate) use job::Job;

use job::commits;
use step::{Decided, Fired, State, Step, Task};

use std::collections::VecDeque;
use std::future::Future;
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bellwire_core::subscriber::Subscribers;
use bellwire_core::{Randomness, Time};
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::RetentionCutoffs;
use crate::clock::Clock;
use crate::command::{IdempotencyKey, Token};
use crate::ended::{self, Ended};
use crate::erasing::Erasing;
use crate::error::{ErrorKind, StoreError};
use crate::executor::{Executor, RowSource as _};
use crate::hints::{HintReceiver, HintRouter};
use crate::live::Live;
use crate::notify::LedgerQuery;
use crate::people::{Doorbells, OutboxCounts, PeopleRules};
use crate::refusals::RefusalCache;
use crate::reply::PendingReply;
use crate::report::{CommitReport, Observer};
use crate::rows::ConversationKey;
use crate::sizes::Sizes;
use crate::work::Counted;

/// The maximum number of commands in one commit.
const GROUP_MAX: usize = 256;
/// After this much work, a commit gets no further command. A part of a large command is about as much, so that no step
/// exceeds 5,000 units of work.
const STEP_WORK: usize = 2_400;
/// The number of rows a command may read in one step. The loaded rows stay in memory, and the command continues in the
/// next step.
const STEP_READS: usize = 1_500;
/// A command that needs more steps than this is refused. The largest publish needs about 800.
const STEPS_MAX: u32 = 4_096;
/// The work of timers in one step. They run before the commands of the same commit.
const TIMER_WORK: usize = 800;
/// The capacity of the command queue; further callers wait.
const QUEUE_MAX: usize = 4096;
/// The maximum number of due mailboxes per commit.
const DUE_MAX: usize = 128;
/// Timers that failed because of a database error are retried after this long.
const RETRY_MS: u64 = 1_000;
/// While a timer is set, the clock is read this often, because timers become due early when the wall clock is set
/// forward. Shorter than the 100 ms that a timer may be late.
const CLOCK_MS: u64 = 50;

/// The options for opening a store.
#[derive(Clone)]
pub struct StoreOptions {
    /// The initial subscribers.
    pub subscribers: Arc<Subscribers>,
    /// The source of boundaries, of the secrets of mailboxes, and of the seed for ids.
    pub randomness: Randomness,
    /// The clock. Tests pass their own.
    pub clock: Clock,
    /// Whether timers fire automatically. Tests with their own clock call [`crate::Store::tick`] instead.
    pub timers: bool,
    /// Called after every commit.
    pub observer: Option<Observer>,
    /// Limits and channels for notifications to people.
    pub people: PeopleRules,
    /// Sizes of the caches.
    pub sizes: Sizes,
}

/// Sends commands to the writer.
#[derive(Clone)]
pub(crate) struct WriterHandle {
    jobs: mpsc::Sender<(Instant, Job)>,
    ended: watch::Receiver<Option<Ended>>,
    hints: Arc<HintRouter>,
    pub(crate) live: Live,
    pub(crate) doorbells: Arc<Doorbells>,
    pub(crate) erasing: Arc<Erasing>,
    /// The number of completed erasures.
    pub(crate) erased: watch::Receiver<u64>,
    /// The number of pending notifications.
    pub(crate) waiting: Arc<AtomicI64>,
    /// The number of waiting deliveries of each channel.
    pub(crate) outbox: Arc<Mutex<OutboxCounts>>,
    pub(crate) clock: Clock,
    pub(crate) rules: Arc<PeopleRules>,
    pub(crate) refusals: Arc<dyn RefusalCache>,
}

impl WriterHandle {
    /// Sends a command and waits for its answer, which is sent after the commit.
    pub(crate) async fn ask<T>(&self, job: impl FnOnce(PendingReply<T>) -> Job) -> Result<T, StoreError> {
        let (reply, answer) = PendingReply::new();
        if self.jobs.send((Instant::now(), job(reply))).await.is_err() {
            return Err(self.ended().await.error());
        }
        match answer.await {
            Ok(answer) => answer,
            // The writer drops a reply only when it ends.
            Err(_) => Err(self.ended().await.error()),
        }
    }

    /// Completes when the writer has ended.
    pub(crate) fn ended(&self) -> impl Future<Output = Ended> + Send + 'static {
        ended::wait(self.ended.clone())
    }

    pub(crate) fn hints(&self, conversation: ConversationKey) -> HintReceiver {
        self.hints.listen(conversation)
    }
}

/// Makes a writer: a handle for commands and the future that runs it. The future ends when the writer is closed, or when the
/// last handle is dropped and every command is answered.
pub(crate) fn make<B: Backend>(
    backend: B,
    opening: StoreOptions,
    refusals: Arc<dyn RefusalCache>,
) -> Result<(WriterHandle, impl Future<Output = ()> + Send + 'static), StoreError> {
    let (jobs, asked) = mpsc::channel(QUEUE_MAX);
    let (end, ended) = watch::channel(None);
    let hints = Arc::new(HintRouter::default());
    let doorbells = Arc::new(Doorbells::default());
    let live = Live::default();
    let (tell_erased, erased) = watch::channel(0);
    let (erasing, mut erasures) = (Arc::<Erasing>::default(), erase::Erasures::default());
    for user_id in backend.unfinished_erasures() {
        erasing.begin(&user_id);
        erasures.resume(user_id);
    }
    let waiting = Arc::new(AtomicI64::new(i64::try_from(backend.waiting()?).unwrap_or(i64::MAX)));
    let outbox = Arc::new(Mutex::new(backend.outbox()?));
    let rules = Arc::new(opening.people);
    let handle = WriterHandle {
        jobs,
        ended,
        hints: hints.clone(),
        live: live.clone(),
        doorbells: doorbells.clone(),
        erasing: erasing.clone(),
        erased,
        waiting: waiting.clone(),
        outbox: outbox.clone(),
        clock: opening.clock.clone(),
        rules: rules.clone(),
        refusals: refusals.clone(),
    };
    let cache_bytes = opening.sizes.mailbox_cache_bytes;
    let mut executor = Executor::new(opening.subscribers, opening.randomness, rules.clone()).keeping(cache_bytes);
    executor.erasing = erasing.clone();
    let writer = Writer {
        executor,
        backend: Counted::new(backend),
        clock: opening.clock,
        timers: opening.timers,
        observer: opening.observer,
        hints: hints.clone(),
        live,
        doorbells: doorbells.clone(),
        rules,
        refusals,
        due: Time::ZERO,
        delivery_due: Time::ZERO,
        unfinished: VecDeque::new(),
        probed: None,
        broken: None,
        erasing,
        erasures,
        erased: tell_erased,
        waiting,
        outbox,
    };
    let running = async move {
        let why = ended::run(writer.run(asked)).await;
        // Ends the streams and the outbox, also after a panic.
        doorbells.close();
        hints.close();
        end.send_replace(Some(why));
    };
    Ok((handle, running))
}

struct Writer<B> {
    executor: Executor,
    backend: Counted<B>,
    clock: Clock,
    timers: bool,
    observer: Option<Observer>,
    hints: Arc<HintRouter>,
    live: Live,
    doorbells: Arc<Doorbells>,
    rules: Arc<PeopleRules>,
    refusals: Arc<dyn RefusalCache>,
    /// When the next mailbox or reminder is due, or earlier. A value that is too early costs one query.
    due: Time,
    /// When the next delivery is due or the next lease ends, or earlier. The outbox worker is then woken.
    delivery_due: Time,
    /// Commands that need another step, the oldest first.
    unfinished: VecDeque<Task>,
    /// The latest result of a probe or a failed commit, and its time.
    probed: Option<(Instant, Result<(), StoreError>)>,
    /// The latest error that needs a repair of the database, and its time. Cleared by a successful commit or, after
    /// `BROKEN_FOR`, by a probe.
    broken: Option<(Instant, StoreError)>,
    erasing: Arc<Erasing>,
    erasures: erase::Erasures,
    /// The number of completed erasures.
    erased: watch::Sender<u64>,
    /// The number of pending notifications.
    waiting: Arc<AtomicI64>,
    /// The number of waiting deliveries of each channel.
    outbox: Arc<Mutex<OutboxCounts>>,
}

impl<B: Backend> Writer<B> {
    async fn run(mut self, mut asked: mpsc::Receiver<(Instant, Job)>) {
        let mut group = Vec::with_capacity(GROUP_MAX);
        loop {
            let received = match self.until_due() {
                Some(wait) => tokio::time::timeout(wait, asked.recv_many(&mut group, GROUP_MAX)).await.ok(),
                None => Some(asked.recv_many(&mut group, GROUP_MAX).await),
            };
            if received == Some(0) {
                while !self.unfinished.is_empty() {
                    self.go_on().await;
                }
                return;
            }
            if received.is_none() && !self.is_due() && self.unfinished.is_empty() {
                self.go_on_erasing().await;
                continue;
            }
            let waited = group.first().map_or(Duration::ZERO, |(asked, _): &(Instant, Job)| asked.elapsed());
            let jobs = group.drain(..).map(|(_, job)| job);
            let (closing, jobs): (Vec<Job>, Vec<Job>) = jobs.partition(|job| matches!(job, Job::Close(_)));
            for jobs in commits(jobs) {
                match <[Job; 1]>::try_from(jobs) {
                    Ok([Job::EraseUser(user_id, reply)]) => self.begin_erasing(user_id, reply).await,
                    Ok([job]) => self.carry_out(vec![Task::new(job)], waited).await,
                    Err(jobs) => self.carry_out(jobs.into_iter().map(Task::new).collect(), waited).await,
                }
            }
            // One step of one unfinished command and of one erasure. Then the newly queued commands get their turn.
            self.go_on().await;
            self.go_on_erasing().await;
            if !closing.is_empty() {
                while !self.unfinished.is_empty() {
                    self.go_on().await;
                }
                return self.close(closing).await;
            }
        }
    }

    /// Closes the database before it answers, so that the caller can open it again.
    async fn close(self, closing: Vec<Job>) {
        self.doorbells.close();
        self.hints.close();
        let closed = self.backend.close().await;
        for mut job in closing {
            if let Job::Close(reply) = &mut job {
                let _ = reply.hold(closed.clone());
            }
            job.answer(Ok(()));
        }
    }

    /// Executes the next step of the oldest unfinished command.
    async fn go_on(&mut self) {
        if let Some(task) = self.unfinished.pop_front() {
            self.carry_out(vec![task], Duration::ZERO).await;
        }
    }

    /// How long to wait for commands before the clock is read again. None = wait without limit, because no automatic
    /// timer is set and no erasure is in progress.
    fn until_due(&self) -> Option<Duration> {
        let due = self.due.min(self.delivery_due);
        if !self.unfinished.is_empty() {
            return Some(Duration::ZERO);
        }
        let wait = due.millis_since(self.clock.now()).min(CLOCK_MS);
        let timer = (self.timers && due < Time::NEVER).then(|| Duration::from_millis(wait));
        timer.into_iter().chain(self.erasures.until_next()).min()
    }

    fn is_due(&self) -> bool {
        self.timers && self.due.min(self.delivery_due) <= self.clock.now()
    }

    /// Executes a group of jobs, in one commit if none fails. A failed job affects only its own caller: if it had
    /// staged changes, all staged changes are dropped and the other jobs are decided again.
    async fn carry_out(&mut self, tasks: Vec<Task>, waited: Duration) {
        let now = self.clock.now();
        self.executor.set_now(now);
        let (reads, mut tasks): (Vec<Task>, Vec<Task>) =
            tasks.into_iter().partition(|task| matches!(task.job, Job::Conversation(..)));
        let mut committed: Vec<Result<(), StoreError>> = vec![Ok(()); tasks.len()];
        let fires = self.timers && self.due <= now;
        // The remaining steps, the next one last.
        let mut steps = vec![Step { jobs: 0..tasks.len(), fires }];
        while let Some(mut step) = steps.pop() {
            let started = Instant::now();
            self.backend.begin_step();
            let fired = if step.fires { self.fire_timers().await } else { Fired::Nothing };
            match self.decide(&mut tasks[step.jobs.clone()]).await {
                Decided::All => {}
                Decided::First(count) => {
                    let next = step.jobs.start + count;
                    steps.push(Step { jobs: next..step.jobs.end, fires: false });
                    step.jobs.end = next;
                }
                Decided::Failed(at) => {
                    self.executor.roll_back();
                    let at = step.jobs.start + at;
                    steps.extend(step.without(at));
                    continue;
                }
            }
            let done = self.commit().await;
            if let Err(error) = &done
                && step.is_divisible()
                && self.is_about_rows(error).await
            {
                self.executor.roll_back();
                steps.extend(step.halves());
                continue;
            }
            self.note_broken(&done);
            self.observe(step.jobs.len(), waited, started, &done);
            self.end(now, fired, &done).await;
            committed[step.jobs].fill(done);
        }
        if self.timers && self.delivery_due <= now {
            self.doorbells.ring_outbox();
            self.delivery_due = self.backend.next_delivery(now).await.unwrap_or_else(|_| now.plus(RETRY_MS));
        }
        for (task, committed) in tasks.into_iter().zip(committed) {
            self.answer(task, committed);
        }
        self.answer_reads(reads).await;
    }

    /// Answers commands that only read. They need no commit, so they work even if the database accepts none. Each reads
    /// a few rows, so that a group of them is less than one step.
    async fn answer_reads(&mut self, reads: Vec<Task>) {
        if reads.is_empty() {
            return;
        }
        let started = Instant::now();
        self.backend.begin_step();
        self.backend.allow(usize::MAX);
        for mut read in reads {
            let _ = self.decide_one(&mut read.job).await;
            read.job.answer(Ok(()));
        }
        // Report the work, but zero commands, because there was no commit.
        self.observe(0, Duration::ZERO, started, &Ok(()));
    }

    /// Answers a command, or queues it for its next step.
    fn answer(&mut self, mut task: Task, mut committed: Result<(), StoreError>) {
        if let Job::Publish(publishing, reply) = &mut task.job
            && (task.state != State::Unfinished || committed.is_err())
        {
            self.executor.published(publishing, task.state == State::Part && committed.is_ok());
            reply.explain(|error| publishing.explain(error));
            committed = committed.map_err(|error| publishing.explain(error));
        }
        match task.state {
            State::Unfinished | State::Part if committed.is_ok() => self.unfinished.push_back(task),
            _ => {
                self.executor.unpin(task.pins);
                task.job.answer(committed);
            }
        }
    }

    /// Decides jobs in order, up to the first that fails after it has staged changes, or until there is enough to commit.
    async fn decide(&mut self, tasks: &mut [Task]) -> Decided {
        let count = tasks.len();
        for (at, task) in tasks.iter_mut().enumerate() {
            if self.backend.work(&self.executor.changes).total() >= task.job.shares_up_to() {
                return Decided::First(at);
            }
            self.executor.unpin(std::mem::take(&mut task.pins));
            self.executor.begin_command();
            self.backend.allow(STEP_READS);
            let decided = self.decide_one(&mut task.job).await;
            if let Err(error) = &decided
                && error.kind == ErrorKind::Broken
                && !matches!(task.job, Job::Check(_))
            {
                self.broken = Some((Instant::now(), error.clone()));
            }
            let failed = decided.is_err();
            task.state = match &task.job {
                _ if self.executor.take_unfinished() => match task.steps < STEPS_MAX {
                    true => State::Unfinished,
                    false => {
                        tracing::error!(steps = task.steps, "a command did not end within its steps; it is refused");
                        State::Decided
                    }
                },
                job if !job.has_answer() => State::Part,
                _ => State::Decided,
            };
            if task.state != State::Decided {
                task.steps += 1;
                task.pins = self.executor.pin_loaded();
            }
            if failed && self.executor.changes.is_touched() {
                return Decided::Failed(at);
            }
            if task.state != State::Decided && at + 1 < count {
                return Decided::First(at + 1);
            }
        }
        Decided::All
    }

    fn observe(&mut self, commands: usize, waited: Duration, started: Instant, done: &Result<(), StoreError>) {
        if let Some(observer) = &self.observer {
            let failed = done.as_ref().err().map(|error| error.kind);
            let (took, damaged) = (started.elapsed(), self.executor.damage.take_fresh());
            let work = self.backend.work(&self.executor.changes);
            observer(&CommitReport {
                commands,
                waited,
                took,
                damaged,
                work,
                failed,
                ..CommitReport::of(&self.executor.changes)
            });
        }
    }

    /// After a successful commit: updates the timers and sends doorbells, refusals and hints. After a failed one: rolls
    /// back.
    async fn end(&mut self, now: Time, fired: Fired, done: &Result<(), StoreError>) {
        match fired {
            Fired::Nothing => {}
            Fired::Part if done.is_ok() => {}
            Fired::All if done.is_ok() => {
                self.due = self.backend.next_due(now).await.unwrap_or_else(|_| now.plus(RETRY_MS));
            }
            _ => self.due = now.plus(RETRY_MS),
        }
        if done.is_err() {
            return self.executor.roll_back();
        }
        self.due = self.due.min(self.executor.next_due());
        self.delivery_due = self.delivery_due.min(self.executor.next_delivery());
        self.live.append(&self.executor.changes);
        self.doorbells.ring(&self.executor.changes.people);
        if self.executor.changes.notify.has_endings() {
            self.doorbells.ring_notify();
        }
        self.tell_refusals();
        self.waiting.fetch_add(self.executor.changes.waiting, Ordering::SeqCst);
        let hints = self.executor.committed();
        hints.into_iter().for_each(|hint| self.hints.post(hint));
    }

    /// Records the refusals of this commit before they are answered.
    fn tell_refusals(&self) {
        let refused = &self.executor.changes.people.refused;
        refused.iter().for_each(|(quota, until)| self.refusals.remember(quota, *until));
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        self.executor.build_rows();
        if self.executor.changes.is_empty() && self.executor.changes.mailbox_rows.is_empty() {
            return Ok(());
        }
        let committed = self.backend.commit(&self.executor.changes).await;
        // A failed commit says as much as a failed probe. A successful one may have been smaller than a probe, so it
        // only clears an earlier error.
        match &committed {
            Ok(outbox) => {
                self.probed.take_if(|(_, found)| found.is_err());
                self.count_outbox(outbox);
            }
            Err(error) => self.probed = Some((Instant::now(), Err(error.clone()))),
        }
        committed.map(drop)
    }

    fn count_outbox(&self, change: &OutboxCounts) {
        self.outbox.lock().unwrap_or_else(PoisonError::into_inner).apply(change);
    }

    /// Handles due timers. A failure does not affect the commands of the step.
    async fn fire_timers(&mut self) -> Fired {
        self.backend.allow(TIMER_WORK);
        match self.executor.tick(DUE_MAX, TIMER_WORK, &mut self.backend).await {
            Ok(true) => Fired::Part,
            Ok(false) => Fired::All,
            Err(error) => {
                tracing::warn!(%error, "timers could not be handled; they will be tried again");
                self.executor.roll_back();
                Fired::Failed
            }
        }
    }

    async fn decide_one(&mut self, job: &mut Job) -> Result<(), StoreError> {
        if let Some(Err(erasing)) = job.about().map(|user_id| self.erasing.check(user_id)) {
            return job.refuse(erasing);
        }
        let (executor, backend) = (&mut self.executor, &mut self.backend);
        match job {
            Job::Publish(publishing, reply) => reply.hold_if_complete(executor.publish(publishing, backend).await),
            Job::Inject(command, reply) => reply.hold_if_complete(executor.inject(command, backend).await),
            Job::PutConversation(caller, id, user, details, reply) => {
                reply.hold(executor.put_conversation(caller, id, user, details.clone(), backend).await)
            }
            Job::Conversation(caller, id, reply) => reply.hold(executor.view(caller, id, backend).await),
            Job::Summaries(keys, reply) => reply.hold(executor.summaries(keys, backend).await),
            Job::Connect(caller, id, seen, reply) => reply.hold(executor.connect(caller, id, *seen, backend).await),
            Job::Boundary(caller, id, agent, reply) => reply.hold(executor.boundary(caller, id, agent, backend).await),
            Job::Rotate(caller, id, agent, idempotency_key, reply) => {
                reply.hold(executor.rotate(caller, id, agent, idempotency_key.as_ref(), backend).await)
            }
            Job::People(command) => command.decide(executor, backend).await,
            Job::PutToken(token, idempotency_key, reply) => {
                reply.hold(executor.put_token(Token::clone(token), idempotency_key.as_ref(), backend).await)
            }
            Job::AnswerOnce(idempotency_key, answer, about, reply) => {
                reply.hold(executor.answer_once(idempotency_key, answer.clone(), about.as_deref(), backend).await)
            }
            // `run` carries out an erasure outside of groups.
            Job::EraseUser(_, reply) => reply.hold(Err(StoreError::new(ErrorKind::Retry, "ask again"))),
            Job::Prune(cutoffs, limit, reply) => {
                let idempotency_keys = self.clock.now().minus(IdempotencyKey::KEPT_MS);
                let RetentionCutoffs { events, answers, inbox, unread_inbox, conversations } = *cutoffs;
                // An unfinished command may have loaded a conversation, so none is deleted meanwhile.
                let conversations = if self.unfinished.is_empty() { conversations } else { Time::ZERO };
                let (sessions, ledger) = (self.clock.now(), self.clock.now().minus(LedgerQuery::KEPT_MS));
                let before = PruneCutoffs {
                    events,
                    answers,
                    inbox,
                    unread_inbox,
                    conversations,
                    idempotency_keys,
                    ledger,
                    sessions,
                };
                let pruned = backend.prune(&before, *limit).await;
                pruned.iter().for_each(|pruned| executor.evict_pruned(pruned));
                reply.hold(pruned.map(|pruned| pruned.rows))
            }
            Job::Tick(reply) => {
                backend.allow(TIMER_WORK);
                reply.hold(executor.tick(DUE_MAX, TIMER_WORK, backend).await)
            }
            Job::SetSubscribers(subscribers, reply) => {
                executor.set_subscribers(subscribers.clone());
                reply.hold(Ok(()))
            }
            Job::Check(reply) => reply.hold(self.probe().await),
            Job::Close(reply) => reply.hold(Ok(())),
        }
    }
}

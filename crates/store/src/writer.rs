//! One writer, many askers: whatever has been asked meanwhile goes into the next commit together.
//!
//! That is where throughput comes from: a commit costs one wait for the disk, however many answers it carries. A job that
//! fails does not fail the others of its group.

use std::future::Future;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use bellwire_core::Time;
use bellwire_core::render::Boundary;
use bellwire_core::subscriber::Subscribers;
use tokio::sync::{mpsc, watch};
use tokio::time::Instant;

use crate::Kept;
use crate::clock::Clock;
use crate::command::{Caller, ConversationView, Given, Hint, Once, Publish, Receipt, Take, Token};
use crate::ended::{self, Ended};
use crate::error::{ErrorKind, StoreError};
use crate::hints::{Board, Hints};
use crate::people::{Doorbells, Errand, PeopleRules};
use crate::postroom::{PostRoom, Source};
use crate::refusals::Refusals;
use crate::reply::Reply;
use crate::report::{Observer, Report};
use crate::rows::{Changes, ConversationKey};

/// The most commands one commit carries.
const GROUP_MAX: usize = 256;
/// After this many events a commit takes no further command.
const EVENTS_MAX: usize = 1000;
/// How many commands may wait before askers wait too.
const QUEUE_MAX: usize = 4096;
/// How many due mailboxes one commit handles.
const DUE_MAX: usize = 256;
/// Timers that could not be handled, because the database failed, are tried again after this long.
const RETRY_MS: u64 = 1_000;
/// While a timer is set, the clock is read this often: a wall clock that is set forward makes timers due that the
/// monotonic wait does not know of. Less than the 100 ms that a timer may be late.
const CLOCK_MS: u64 = 50;

/// What a probe found holds for so long, so that asking often costs no more than asking once a second.
const PROBED_FOR: Duration = Duration::from_secs(1);

/// What a store is opened with.
#[derive(Clone)]
pub struct Opening {
    /// The subscribers in force.
    pub subscribers: Arc<Subscribers>,
    /// Random bits for ids, secrets and boundaries.
    pub seed: u128,
    /// The time. Handed in, so that tests have a clock of their own.
    pub clock: Clock,
    /// Whether timers fire by themselves; a test with a clock of its own asks for them.
    pub timers: bool,
    /// Who hears of every commit.
    pub observer: Option<Observer>,
    /// How much people may be told, and by which ways.
    pub people: PeopleRules,
}

/// Where rows come from and go to, all or none.
pub(crate) trait Backend: Source + Send + 'static {
    fn commit(&mut self, changes: &Changes) -> impl Future<Output = Result<(), StoreError>> + Send;
    /// Writes something that means nothing, to see whether a commit would be taken.
    fn probe(&mut self) -> impl Future<Output = Result<(), StoreError>> + Send;
    fn prune(&mut self, before: &Before, limit: usize) -> impl Future<Output = Result<usize, StoreError>> + Send;
    /// Lets the data go.
    fn close(self) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// What is older than this may go.
pub(crate) struct Before {
    pub(crate) events: Time,
    pub(crate) answers: Time,
    pub(crate) inbox: Time,
    pub(crate) once: Time,
}

pub(crate) enum Job {
    Publish(Publish, Reply<Vec<Receipt>>),
    Take(Box<Take>, Reply<Given>),
    PutConversation(Caller, String, String, Option<String>, Reply<ConversationView>),
    Conversation(Caller, String, Reply<ConversationView>),
    Connect(Caller, String, Reply<Vec<Hint>>),
    Rotate(Caller, String, Option<Once>, Reply<Boundary>),
    Errand(Errand),
    PutToken(Box<Token>, Option<Once>, Reply<()>),
    AnswerOnce(Once, String, Option<String>, Reply<String>),
    EraseUser(String, Reply<()>),
    Prune(Kept, usize, Reply<usize>),
    Tick(Reply<()>),
    SetSubscribers(Arc<Subscribers>, Reply<()>),
    Check(Reply<()>),
    Close(Reply<()>),
}

impl Job {
    /// Sends the answer after the commit.
    fn answer(self, committed: Result<(), StoreError>) {
        match self {
            Self::Publish(_, reply) => reply.send(committed),
            Self::Take(_, reply) => reply.send(committed),
            Self::PutConversation(.., reply) | Self::Conversation(.., reply) => reply.send(committed),
            Self::Connect(.., reply) => reply.send(committed),
            Self::Rotate(.., reply) => reply.send(committed),
            Self::Errand(errand) => errand.answer(committed),
            Self::PutToken(.., reply) | Self::EraseUser(_, reply) => reply.send(committed),
            Self::AnswerOnce(.., reply) => reply.send(committed),
            Self::Prune(.., reply) => reply.send(committed),
            Self::Tick(reply) | Self::SetSubscribers(_, reply) | Self::Check(reply) | Self::Close(reply) => {
                reply.send(committed)
            }
        }
    }
}

/// The asking end of a writer.
#[derive(Clone)]
pub(crate) struct Handle {
    jobs: mpsc::Sender<(Instant, Job)>,
    ended: watch::Receiver<Option<Ended>>,
    hints: Arc<Board>,
    pub(crate) doorbells: Arc<Doorbells>,
    pub(crate) clock: Clock,
    pub(crate) rules: PeopleRules,
    pub(crate) refusals: Arc<dyn Refusals>,
}

impl Handle {
    /// Asks, and waits until the commit that answers.
    pub(crate) async fn ask<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T, StoreError> {
        let (reply, answer) = Reply::new();
        if self.jobs.send((Instant::now(), job(reply))).await.is_err() {
            return Err(self.ended().await.error());
        }
        match answer.await {
            Ok(answer) => answer,
            // The writer drops what it did not answer only when it ends.
            Err(_) => Err(self.ended().await.error()),
        }
    }

    /// Completes when the writer has ended.
    pub(crate) fn ended(&self) -> impl Future<Output = Ended> + Send + 'static {
        ended::wait(self.ended.clone())
    }

    pub(crate) fn hints(&self, conversation: ConversationKey) -> Hints {
        self.hints.listen(conversation)
    }
}

/// A writer, and the end to ask it by. Somebody has to run it; it ends when it is closed, or when the last handle is gone
/// and everything asked is answered.
pub(crate) fn make<B: Backend>(
    backend: B,
    opening: Opening,
    refusals: Arc<dyn Refusals>,
) -> (Handle, impl Future<Output = ()> + Send + 'static) {
    let (jobs, asked) = mpsc::channel(QUEUE_MAX);
    let (end, ended) = watch::channel(None);
    let hints = Arc::new(Board::default());
    let doorbells = Arc::new(Doorbells::default());
    let handle = Handle {
        jobs,
        ended,
        hints: hints.clone(),
        doorbells: doorbells.clone(),
        clock: opening.clock.clone(),
        rules: opening.people,
        refusals: refusals.clone(),
    };
    let room = PostRoom::new(opening.subscribers, opening.seed, opening.people);
    let writer = Writer {
        room,
        backend,
        clock: opening.clock,
        timers: opening.timers,
        observer: opening.observer,
        hints: hints.clone(),
        doorbells: doorbells.clone(),
        rules: opening.people,
        refusals,
        due: Time::ZERO,
        mail_due: Time::ZERO,
        probed: None,
    };
    let running = async move {
        let why = ended::run(writer.run(asked)).await;
        // Those who wait for news hear that none will come, also after a panic.
        doorbells.close();
        hints.close();
        end.send_replace(Some(why));
    };
    (handle, running)
}

struct Writer<B> {
    room: PostRoom,
    backend: B,
    clock: Clock,
    timers: bool,
    observer: Option<Observer>,
    hints: Arc<Board>,
    doorbells: Arc<Doorbells>,
    rules: PeopleRules,
    refusals: Arc<dyn Refusals>,
    /// When the next mailbox or reminder is due. Never later than it is; earlier costs one look.
    due: Time,
    /// The same for deliveries that wait or are leased: the outbox is told then.
    mail_due: Time,
    /// Whether a commit would be taken, as far as is known, and since when.
    probed: Option<(Instant, Result<(), StoreError>)>,
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
                return;
            }
            if received.is_none() && !self.is_due() {
                continue;
            }
            let waited = group.first().map_or(Duration::ZERO, |(asked, _): &(Instant, Job)| asked.elapsed());
            let jobs = group.drain(..).map(|(_, job)| job);
            let (closing, jobs): (Vec<Job>, Vec<Job>) = jobs.partition(|job| matches!(job, Job::Close(_)));
            for jobs in commits(jobs) {
                self.carry_out(jobs, waited).await;
            }
            if !closing.is_empty() {
                return self.close(closing).await;
            }
        }
    }

    /// Lets the file go before it says so: whoever waited may open it again.
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

    /// How long to wait for commands before the clock is read again; none where no timer is set, or where timers do not
    /// fire by themselves.
    fn until_due(&self) -> Option<Duration> {
        let due = self.due.min(self.mail_due);
        let wait = due.millis_since(self.clock.now()).min(CLOCK_MS);
        (self.timers && due < Time::NEVER).then(|| Duration::from_millis(wait))
    }

    fn is_due(&self) -> bool {
        self.timers && self.due.min(self.mail_due) <= self.clock.now()
    }

    /// Carries out a group of jobs in one commit where all goes well. A job that fails concerns its asker alone: where it
    /// had staged changes before it failed, everything staged is dropped and the other jobs are decided again.
    async fn carry_out(&mut self, jobs: Vec<Job>, waited: Duration) {
        let now = self.clock.now();
        self.room.set_now(now);
        let (reads, mut jobs): (Vec<Job>, Vec<Job>) =
            jobs.into_iter().partition(|job| matches!(job, Job::Conversation(..)));
        let mut committed: Vec<Result<(), StoreError>> = vec![Ok(()); jobs.len()];
        let fires = self.timers && self.due <= now;
        // What is still to be done, the next step last.
        let mut steps = vec![Step { jobs: 0..jobs.len(), fires }];
        while let Some(step) = steps.pop() {
            let started = Instant::now();
            let fired = if step.fires { self.fire_timers().await } else { Fired::Nothing };
            let decided = step.jobs.start + self.decide(&mut jobs[step.jobs.clone()]).await;
            if decided < step.jobs.end {
                self.room.roll_back();
                steps.extend(step.without(decided));
                continue;
            }
            let done = self.commit().await;
            if let Err(error) = &done
                && step.is_divisible()
                && self.is_about_rows(error).await
            {
                self.room.roll_back();
                steps.extend(step.halves());
                continue;
            }
            self.observe(step.jobs.len(), waited, started, &done);
            self.end(now, fired, &done).await;
            committed[step.jobs].fill(done);
        }
        if self.timers && self.mail_due <= now {
            self.doorbells.ring_outbox();
            self.mail_due = self.backend.next_delivery(now).await.unwrap_or_else(|_| now.plus(RETRY_MS));
        }
        for (job, committed) in jobs.into_iter().zip(committed) {
            job.answer(committed);
        }
        // Reading needs no commit, and must go on where none is taken.
        for mut read in reads {
            let _ = self.decide_one(&mut read).await;
            read.answer(Ok(()));
        }
    }

    /// Decides jobs in order up to the first that fails after it has staged changes; how many come before it.
    async fn decide(&mut self, jobs: &mut [Job]) -> usize {
        for (at, job) in jobs.iter_mut().enumerate() {
            self.room.changes.begin();
            if self.decide_one(job).await.is_err() && self.room.changes.is_touched() {
                return at;
            }
        }
        jobs.len()
    }

    /// Whether a commit failed because of what it writes, so that a smaller one may succeed: the store itself works.
    async fn is_about_rows(&mut self, error: &StoreError) -> bool {
        matches!(error.kind, ErrorKind::Broken | ErrorKind::Damaged) && self.backend.probe().await.is_ok()
    }

    fn observe(&mut self, commands: usize, waited: Duration, started: Instant, done: &Result<(), StoreError>) {
        if let Some(observer) = &self.observer {
            let failed = done.as_ref().err().map(|error| error.kind);
            let (took, damaged) = (started.elapsed(), self.room.damage.take_fresh());
            observer(&Report { commands, waited, took, damaged, failed, ..Report::of(&self.room.changes) });
        }
    }

    /// What follows from a commit, or from its failure.
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
            return self.room.roll_back();
        }
        self.due = self.due.min(self.room.next_due());
        self.mail_due = self.mail_due.min(self.room.next_delivery());
        self.doorbells.ring(&self.room.changes.people);
        self.tell_refusals();
        let hints = self.room.committed();
        hints.into_iter().for_each(|hint| self.hints.post(hint));
    }

    /// Has remembered what this commit refused and forgotten whom it erased, before anybody hears of either.
    fn tell_refusals(&self) {
        let Changes { erased_users, people, .. } = &*self.room.changes;
        people.refused.iter().for_each(|(quota, until)| self.refusals.remember(quota, *until));
        erased_users.iter().for_each(|user| self.refusals.forget(&self.rules.quotas(user)));
    }

    async fn commit(&mut self) -> Result<(), StoreError> {
        self.room.seal();
        if self.room.changes.is_empty() && self.room.changes.mailbox_rows.is_empty() {
            return Ok(());
        }
        let committed = self.backend.commit(&self.room.changes).await;
        // A commit that failed is as good as a probe. One that succeeded may have been smaller than one: ask anew.
        match &committed {
            Ok(()) => drop(self.probed.take_if(|(_, found)| found.is_err())),
            Err(error) => self.probed = Some((Instant::now(), Err(error.clone()))),
        }
        committed
    }

    /// Handles what is due. Commands go on where this fails.
    async fn fire_timers(&mut self) -> Fired {
        match self.room.tick(DUE_MAX, &mut self.backend).await {
            Ok(true) => Fired::Part,
            Ok(false) => Fired::All,
            Err(error) => {
                tracing::warn!(%error, "timers could not be handled; they will be tried again");
                self.room.roll_back();
                Fired::Failed
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
        let found = self.backend.probe().await;
        self.probed = Some((Instant::now(), found.clone()));
        found
    }

    async fn decide_one(&mut self, job: &mut Job) -> Result<(), StoreError> {
        let (room, backend) = (&mut self.room, &mut self.backend);
        match job {
            Job::Publish(publish, reply) => reply.hold(room.publish(publish, backend).await),
            Job::Take(take, reply) => reply.hold(room.take(take, backend).await),
            Job::PutConversation(caller, id, user, title, reply) => {
                reply.hold(room.put_conversation(caller, id, user, title.clone(), backend).await)
            }
            Job::Conversation(caller, id, reply) => reply.hold(room.view(caller, id, backend).await),
            Job::Connect(caller, id, reply) => reply.hold(room.connect(caller, id, backend).await),
            Job::Rotate(caller, id, once, reply) => reply.hold(room.rotate(caller, id, once.as_ref(), backend).await),
            Job::Errand(errand) => errand.decide(room, backend).await,
            Job::PutToken(token, once, reply) => {
                reply.hold(room.put_token(Token::clone(token), once.as_ref(), backend).await)
            }
            Job::AnswerOnce(once, answer, about, reply) => {
                reply.hold(room.answer_once(once, answer.clone(), about.as_deref(), backend).await)
            }
            Job::EraseUser(user, reply) => {
                room.erase_user(user);
                reply.hold(Ok(()))
            }
            Job::Prune(Kept { events, answers, inbox }, limit, reply) => {
                let once = self.clock.now().minus(Once::KEPT_MS);
                let before = Before { events: *events, answers: *answers, inbox: *inbox, once };
                reply.hold(backend.prune(&before, *limit).await)
            }
            Job::Tick(reply) => reply.hold(room.tick(usize::MAX, backend).await.map(drop)),
            Job::SetSubscribers(subscribers, reply) => {
                room.set_subscribers(subscribers.clone());
                reply.hold(Ok(()))
            }
            Job::Check(reply) => reply.hold(self.probe().await),
            Job::Close(reply) => reply.hold(Ok(())),
        }
    }
}

/// How much of what was due a step has handled.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Fired {
    /// It was not to handle anything.
    Nothing,
    /// There may be more.
    Part,
    All,
    /// It could not; this is tried again later.
    Failed,
}

/// Jobs that are decided and committed together, and whether timers are handled before them.
struct Step {
    jobs: Range<usize>,
    fires: bool,
}

impl Step {
    /// The jobs before and behind one that failed, the former last.
    fn without(self, failed: usize) -> [Self; 2] {
        let (before, behind) = (self.jobs.start..failed, failed + 1..self.jobs.end);
        [Self { jobs: behind, fires: false }, Self { jobs: before, fires: self.fires }]
    }

    fn is_divisible(&self) -> bool {
        self.jobs.len() + usize::from(self.fires) > 1
    }

    /// The timers alone, then one half of the jobs, then the other; the first last.
    fn halves(self) -> Vec<Self> {
        let Range { start, end } = self.jobs;
        let middle = start + (end - start) / 2;
        let timers = self.fires.then_some(Self { jobs: start..start, fires: true });
        let halves = [middle..end, start..middle].into_iter().filter(|jobs| !jobs.is_empty());
        halves.map(|jobs| Self { jobs, fires: false }).chain(timers).collect()
    }
}

/// An erasure has a commit of its own: what was asked before it is erased, what was asked after it stays. Many events are
/// spread over several commits, so that nobody waits for all of them. Without any jobs there is still one commit, for
/// what is due.
fn commits(jobs: Vec<Job>) -> Vec<Vec<Job>> {
    let (mut commits, mut alone, mut events) = (vec![Vec::new()], false, 0);
    for job in jobs {
        let erases = matches!(job, Job::EraseUser(..));
        let full = events >= EVENTS_MAX;
        if (erases || alone || full) && commits.last().is_some_and(|last: &Vec<Job>| !last.is_empty()) {
            commits.push(Vec::new());
            events = 0;
        }
        alone = erases;
        events += if let Job::Publish(publish, _) = &job { publish.events.len() } else { 0 };
        commits.last_mut().expect("there is always one").push(job);
    }
    commits
}

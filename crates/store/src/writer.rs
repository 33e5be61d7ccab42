//! One writer, many askers: whatever has been asked meanwhile goes into the next commit together.
//!
//! That is where throughput comes from: a commit costs one wait for the disk, however many answers it carries. And while
//! one commit is written the next is decided: the writer has two halves, and the backend goes to and fro between them.

mod committing;
mod deciding;
mod disk;

use committing::Hearers;
use deciding::Writer;
use disk::Disk;

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use bellwire_core::Time;
use bellwire_core::render::Boundary;
use bellwire_core::subscriber::Subscribers;
use tokio::sync::{mpsc, oneshot};
use tokio::time::Instant;

use crate::Kept;
use crate::command::{Caller, ConversationView, Given, Hint, Once, Publish, Receipt, Take, Token};
use crate::error::{ErrorKind, StoreError};
use crate::hints::{Board, Hints};
use crate::people::{Doorbells, Errand, PeopleRules};
use crate::postroom::Source;
use crate::refusals::Refusals;
use crate::report::Observer;
use crate::rows::{Changes, ConversationKey};

/// How many commands may wait before askers wait too.
const QUEUE_MAX: usize = 4096;

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

pub(crate) type Reply<T> = oneshot::Sender<Result<T, StoreError>>;

pub(crate) enum Job {
    Publish(Publish, Reply<Vec<Receipt>>),
    Take(Box<Take>, Reply<Given>),
    PutConversation(Caller, String, String, Option<String>, Reply<ConversationView>),
    Conversation(Caller, String, Reply<ConversationView>),
    Connect(Caller, String, Reply<Vec<Hint>>),
    Rotate(Caller, String, Option<Once>, Reply<Boundary>),
    Errand(Errand),
    PutToken(Box<Token>, Option<Once>, Reply<()>),
    AnswerOnce(Once, String, Reply<String>),
    EraseUser(String, Reply<()>),
    Prune(Kept, usize, Reply<usize>),
    Tick(Reply<()>),
    SetSubscribers(Arc<Subscribers>, Reply<()>),
    Check(Reply<()>),
    Close(Reply<()>),
}

/// The asking end of a writer.
#[derive(Clone)]
pub(crate) struct Handle {
    jobs: mpsc::Sender<(Instant, Job)>,
    hints: Arc<Board>,
    pub(crate) doorbells: Arc<Doorbells>,
    pub(crate) clock: Clock,
    pub(crate) rules: PeopleRules,
    pub(crate) refusals: Arc<dyn Refusals>,
}

impl Handle {
    /// Asks, and waits until the commit that answers.
    pub(crate) async fn ask<T>(&self, job: impl FnOnce(Reply<T>) -> Job) -> Result<T, StoreError> {
        let (reply, answer) = oneshot::channel();
        let stopped = || StoreError::new(ErrorKind::Retry, "the store is shutting down");
        self.jobs.send((Instant::now(), job(reply))).await.map_err(|_| stopped())?;
        answer.await.map_err(|_| stopped())?
    }

    pub(crate) fn hints(&self, conversation: ConversationKey) -> Hints {
        self.hints.listen(conversation)
    }
}

/// A writer: the end to ask it by, and its two halves. Somebody has to run each; they end when the writer is closed, or when
/// the last handle is gone and everything asked is answered.
pub(crate) fn make<B: Backend>(
    backend: B,
    opening: Opening,
    refusals: Arc<dyn Refusals>,
) -> (Handle, impl Future<Output = ()> + Send + 'static, impl Future<Output = ()> + Send + 'static) {
    let (jobs, asked) = mpsc::channel(QUEUE_MAX);
    let (trips, taken) = mpsc::unbounded_channel();
    let (ended, end) = oneshot::channel();
    let (hints, doorbells) = (Arc::new(Board::default()), Arc::new(Doorbells::default()));
    let handle = Handle {
        jobs,
        hints: hints.clone(),
        doorbells: doorbells.clone(),
        clock: opening.clock.clone(),
        rules: opening.people,
        refusals: refusals.clone(),
    };
    let hearers = Hearers { observer: opening.observer.clone(), hints, doorbells, refusals, rules: opening.people };
    let writer = Writer::new(opening, Disk::new(backend, trips), hearers.clone(), end);
    (handle, writer.run(asked), committing::run(taken, hearers, ended))
}

/// What is answered together.
struct Group {
    held: Vec<Held>,
    /// What streams are told of it.
    hints: Vec<Hint>,
    /// How many events were asked to be taken in.
    events: usize,
    /// How long the first had waited for its turn.
    waited: Duration,
    started: Instant,
}

impl Group {
    fn new() -> Self {
        Self { held: Vec::new(), hints: Vec::new(), events: 0, waited: Duration::ZERO, started: Instant::now() }
    }
}

/// An answer that waits for its commit.
pub(crate) type Held = Box<dyn FnOnce(Result<(), StoreError>) + Send>;

pub(crate) fn hold<T: Send + 'static>(reply: Reply<T>, result: Result<T, StoreError>) -> Held {
    Box::new(move |committed| {
        // An asker that has gone away wants no answer.
        let _ = reply.send(committed.and(result));
    })
}

/// A refusal concerns one asker; a failure of the store concerns the whole commit.
pub(crate) fn noted<T>(result: Result<T, StoreError>, failed: &mut Option<StoreError>) -> Result<T, StoreError> {
    if let Err(error) = &result
        && matches!(error.kind, ErrorKind::Retry | ErrorKind::Broken | ErrorKind::NoSpace)
    {
        *failed = Some(error.clone());
    }
    result
}

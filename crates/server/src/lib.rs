//! The hub: any agent in any language publishes events, asks for its block, and is woken, over HTTP.
//!
//! [`App::start`] wires a store, the router and a listener; it answers until `shutdown` resolves, then finishes what it
//! accepted. Everything that decides is in `bellwire-core`, everything that lasts in `bellwire-store`.

pub mod auth;
pub mod clock;
pub mod config;
pub mod deliver;
pub mod descriptors;
pub mod folder;
pub mod http;
mod listen;
pub mod mcp;
mod metrics;
mod rate;
mod refusals;
mod supervise;
pub mod tools;
mod usage;

pub use config::Config;

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bellwire_core::Randomness;
use bellwire_core::subscriber::Subscribers;
use bellwire_store::{
    Ended, MemoryStore, NoRefusalCache, Observer, PeopleRules, RefusalCache, RetentionCutoffs, Sizes, SqliteStore,
    Store, StoreError, StoreOptions, Token,
};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};

use crate::auth::Authenticator;
use crate::config::RetentionConfig;
use crate::deliver::email::Smtp;
use crate::deliver::{MailSender, Outbox};
use crate::folder::SubscriberFolder;
use crate::http::{ConcurrencyLimits, Hub, Parts, TraceIds};
use crate::metrics::Metrics;
use crate::supervise::Supervisor;
use crate::usage::TokenLimits;

/// How often old rows are looked for, and how many go at once.
const RETENTION_EVERY: std::time::Duration = std::time::Duration::from_secs(60);
const RETENTION_STEP: usize = 2_000;
const RETENTION_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);
/// Whoever sends half a request and no more is waited for so long when the hub stops. Whatever asks a hub to stop kills it
/// after ten seconds, as a rule.
const STOP_GRACE: std::time::Duration = std::time::Duration::from_secs(5);
/// A claim lasts longer than the longest attempt by this much, for writing down what became of it.
const ATTEMPT_MARGIN: std::time::Duration = std::time::Duration::from_secs(60);
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A running hub.
pub struct App {
    /// Where it listens.
    pub address: SocketAddr,
    /// What it remembers; an embedding program may use it too.
    pub store: Arc<dyn Store>,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
    /// Sends mail, where mail is configured.
    outbox: Option<tokio::task::JoinHandle<()>>,
    supervisor: Supervisor,
}

/// What a program does with the store before the hub answers anybody.
pub type Prepared = Result<(), Box<dyn std::error::Error + Send + Sync>>;

impl App {
    /// Opens the store and answers on the listener until `shutdown` resolves. When this returns, it is ready.
    pub async fn start(
        config: Config,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Self, StartError> {
        Self::start_prepared(config, listener, shutdown, async |_| Ok(())).await
    }

    /// The same, but `prepare` uses the store first: whatever it makes is there before the hub is ready.
    pub async fn start_prepared(
        config: Config,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
        prepare: impl AsyncFnOnce(Arc<dyn Store>) -> Prepared,
    ) -> Result<Self, StartError> {
        Self::assemble(config, listener, shutdown, |server| server, prepare).await
    }

    /// The same, with an MCP server that offers more: `offer` gets ours and gives what clients shall meet instead.
    pub async fn start_offering<H: rmcp::ServerHandler + Send + 'static>(
        config: Config,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
        offer: impl Fn(mcp::McpServer) -> H + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        Self::assemble(config, listener, shutdown, offer, async |_| Ok(())).await
    }

    async fn assemble<H: rmcp::ServerHandler + Send + 'static>(
        config: Config,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
        offer: impl Fn(mcp::McpServer) -> H + Send + Sync + 'static,
        prepare: impl AsyncFnOnce(Arc<dyn Store>) -> Prepared,
    ) -> Result<Self, StartError> {
        let address = listener.local_addr().map_err(StartError::Listen)?;
        let mut folder = config.subscribers_dir.as_deref().map(SubscriberFolder::new);
        // Watched before it is read: what changes in between is read again.
        let watched = folder.as_ref().map(SubscriberFolder::watch);
        let subscribers = first_subscribers(folder.as_mut())?;
        let metrics = Arc::new(Metrics::new());
        let counted = metrics.clone();
        let smtp = Smtp::new(&config.email).map_err(StartError::Email)?;
        let people = rules(&config, smtp.as_ref());
        let (stop, stopping) = watch::channel(false);
        let supervisor = Supervisor::new(stopping.clone());
        let refusals: Arc<dyn RefusalCache> = match config.data_dir {
            Some(_) => refusals::open(&config.redis, stopping.clone()).map_err(StartError::Redis)?,
            None => Arc::new(NoRefusalCache),
        };
        let dir = config.data_dir.as_deref();
        let store = open_store(dir, subscribers.clone(), &metrics, (people, config.sizes), refusals.clone()).await?;
        tokio::spawn(watch_writer(store.ended(), supervisor.clone(), stop.subscribe()));
        prepare(store.clone()).await.map_err(StartError::Prepare)?;
        let subscribers_watch = watch::channel(subscribers);
        if let Some((folder, watched)) = folder.zip(watched) {
            let following = watch_subscribers(folder, watched, store.clone(), subscribers_watch.0, stop.subscribe());
            supervisor.spawn("the watcher of the subscriber folder", following);
        }
        let unsubscribe = deliver::UnsubscribeLinks::new(link_key(&*store).await?);
        let places = descriptors::places(&config.limits);
        let hub = Hub::new(Parts {
            store: store.clone(),
            tokens: Arc::new(Authenticator::new(store.clone(), TokenLimits::new(&config.limits))),
            subscribers_watch: subscribers_watch.1,
            batch_max: config.limits.batch_events,
            metrics,
            overload: Arc::new(ConcurrencyLimits::new(config.limits.concurrent_requests, places.streams)),
            trace_ids: TraceIds::under(clock::random()),
            revoked: broadcast::channel(256).0,
            unsubscribe: unsubscribe.clone(),
            mails: smtp.is_some(),
            refusals,
            notification_throttle: tools::NotificationThrottle::default(),
            // Well before the request itself runs out of time.
            erase_wait: config.limits.request_timeout() / 2,
            metrics_page: tokio::sync::Mutex::default(),
            stopping,
            supervisor: supervisor.clone(),
        });
        tokio::spawn(forget_erased_tokens(hub.clone(), stop.subscribe()));
        let endpoint = mcp::Endpoint::new(hub.clone(), &config.limits, offer);
        let api = http::router::api(hub, &config, endpoint);
        let outbox = smtp.map(|smtp| {
            // Without a public name the link that stops mails works here alone; a warning at the start says so.
            let hub = config.public_url.clone().unwrap_or_else(|| format!("http://{address}"));
            let postage = MailSender { smtp, from: config.email.from.clone(), hub, unsubscribe };
            let outbox = Outbox::new(store.clone(), postage.sender(), config.email.workers);
            supervisor.spawn("the outbox", outbox.run(stop.subscribe()))
        });
        let retention = run_retention(store.clone(), config.retention.clone(), stop.subscribe());
        supervisor.spawn("retention", retention);
        let grace = grace(stop.subscribe());
        let watched = supervisor.clone();
        let ended = async move {
            tokio::select! {
                () = shutdown => {}
                () = watched.failed() => {}
            }
            // Streams end by themselves; everything else is answered before the listener closes.
            let _ = stop.send(true);
        };
        let serving = tokio::spawn(async move {
            tokio::select! {
                () = listen::serve(listener, api, places.connections, counted, ended) => Ok(()),
                () = grace => Ok(()),
            }
        });
        Ok(Self { address, store, serving, outbox, supervisor })
    }

    /// Waits until an essential task of the hub has died. The hub then stops by itself.
    pub fn failed(&self) -> impl Future<Output = ()> + Send + 'static {
        let supervisor = self.supervisor.clone();
        async move { supervisor.failed().await }
    }

    /// Waits until the hub has stopped: everything it accepted is answered, and its data is free for another. A hub that
    /// stopped because an essential task died answers with the reason.
    pub async fn stopped(self) -> std::io::Result<()> {
        let served = self.serving.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        if let Some(mut outbox) = self.outbox {
            // A mail that is on its way may take long to be answered. One that is left is of unknown fate, and told so.
            if tokio::time::timeout(STOP_GRACE, &mut outbox).await.is_err() {
                outbox.abort();
            }
        }
        let closed = self.store.close().await.map_err(std::io::Error::other);
        match self.supervisor.failure() {
            Some(reason) => Err(std::io::Error::other(reason)),
            None => served.and(closed),
        }
    }
}

/// Makes a token in a store that nobody serves yet, such as the first one; gives its secret.
pub async fn create_token(store: &dyn Store, scope: auth::Scope, name: &str) -> Result<String, StoreError> {
    let (secret, secret_hash) = auth::new_secret();
    let token = Token {
        id: uuid::Builder::from_random_bytes(clock::random()).into_uuid().to_string(),
        secret_hash,
        scope: scope.as_str().to_owned(),
        name: Some(name.to_owned()),
        user_id: None,
        origin: None,
        conversation_id: None,
        created_at: clock::now(),
        expires_at: None,
        revoked_at: None,
    };
    store.put_token(token).await?;
    Ok(secret)
}

/// Why a hub did not start.
#[derive(Debug)]
pub enum StartError {
    /// It cannot listen.
    Listen(std::io::Error),
    /// Its data folder cannot be made.
    SubscriberFolder(std::io::Error),
    /// The folder of its subscribers cannot be read.
    Subscribers(std::io::Error),
    /// Its store cannot be opened.
    Store(StoreError),
    /// Its mail server cannot be used.
    Email(deliver::email::SetupError),
    /// Its Redis cannot be used as it is named.
    Redis(String),
    /// What had to be done before it answers could not be done.
    Prepare(Box<dyn std::error::Error + Send + Sync>),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listen(error) => write!(f, "cannot listen: {error}"),
            Self::SubscriberFolder(error) => write!(f, "cannot make the data folder: {error}"),
            Self::Subscribers(error) => write!(f, "cannot read the folder of subscribers (subscribers.dir): {error}"),
            Self::Store(error) => write!(f, "cannot open the store: {error}"),
            Self::Email(error) => write!(f, "cannot send mail: {error}"),
            Self::Redis(error) => write!(f, "cannot use Redis: {error}"),
            Self::Prepare(error) => write!(f, "{error}"),
        }
    }
}

impl std::error::Error for StartError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Self::Prepare(error) => error.source(),
            _ => None,
        }
    }
}

async fn open_store(
    dir: Option<&Path>,
    subscribers: Arc<Subscribers>,
    metrics: &Arc<Metrics>,
    (people, sizes): (PeopleRules, Sizes),
    refusals: Arc<dyn RefusalCache>,
) -> Result<Arc<dyn Store>, StartError> {
    let randomness = Randomness::new(clock::random);
    let observer = Some(observer(metrics.clone()));
    let opening =
        StoreOptions { subscribers, randomness, clock: clock::system(), timers: true, observer, people, sizes };
    match dir {
        None => Ok(Arc::new(MemoryStore::open(opening))),
        Some(dir) => {
            std::fs::create_dir_all(dir).map_err(StartError::SubscriberFolder)?;
            let store = SqliteStore::open_remembering(&dir.join("bellwire.db"), opening, refusals).await;
            Ok(Arc::new(store.map_err(StartError::Store)?))
        }
    }
}

/// Counts what every commit did, and logs whom it told.
fn observer(metrics: Arc<Metrics>) -> Observer {
    Arc::new(move |report| {
        metrics.committed(report);
        for told in report.told.iter().filter(|_| report.failed.is_none()) {
            // Never what it says: a log is read by others than the person.
            let (conversation_id, correlation_id) = (told.conversation_id.as_deref(), told.correlation_id.as_deref());
            let (user_id, origin) = (told.user_id.as_str(), told.origin.as_str());
            tracing::info!(notification_id = %told.id, user_id, origin, conversation_id, correlation_id, "notification created");
        }
    })
}

/// Fails the hub when its store can no longer write.
async fn watch_writer(ended: impl Future<Output = Ended>, supervisor: Supervisor, stopping: watch::Receiver<bool>) {
    match ended.await {
        Ended::Closed if *stopping.borrow() => {}
        Ended::Closed => supervisor.fail("the writer of the store has ended".to_owned()),
        Ended::Panicked(message) => supervisor.fail(format!("the writer of the store has panicked: {message}")),
    }
}

/// The key of the links in mails: made once, the same for as long as the data lives.
async fn link_key(store: &dyn Store) -> Result<Vec<u8>, StartError> {
    let fresh: [u8; 32] = clock::random();
    store.secret("unsubscribe".to_owned(), fresh.to_vec()).await.map_err(StartError::Store)
}

/// How much people may be told, and by which ways.
fn rules(config: &Config, smtp: Option<&Smtp>) -> PeopleRules {
    let attempt = smtp.map(|smtp| smtp.attempt_max() + ATTEMPT_MARGIN).unwrap_or_default();
    let own = |per_hour: u64| Some(per_hour).filter(|per_hour| *per_hour > 0);
    PeopleRules {
        email: smtp.is_some(),
        attempt_ms: u64::try_from(attempt.as_millis()).unwrap_or(u64::MAX),
        notifications_per_hour: config.limits.notifications_per_hour,
        reminders_per_hour: own(config.limits.reminders_per_hour),
        infos_per_hour: own(config.limits.infos_per_hour),
        warnings_per_hour: own(config.limits.warnings_per_hour),
        toasts_per_hour: config.limits.toasts_per_hour,
        ..PeopleRules::default()
    }
}

/// The subscribers to begin with. A file that is wrong is reported; the hub starts without it.
fn first_subscribers(folder: Option<&mut SubscriberFolder>) -> Result<Arc<Subscribers>, StartError> {
    let Some(folder) = folder else { return Ok(Arc::new(Subscribers::bundled())) };
    let read = folder.read().map_err(StartError::Subscribers)?;
    report(&read);
    Ok(Arc::new(Subscribers::new(folder.subscribers())))
}

/// Puts the folder's changes in force, from the next event on.
async fn watch_subscribers(
    mut folder: SubscriberFolder,
    (_watcher, mut changes): folder::FolderWatch,
    store: Arc<dyn Store>,
    subscribers_watch: watch::Sender<Arc<Subscribers>>,
    mut stopping: watch::Receiver<bool>,
) {
    loop {
        tokio::select! {
            change = changes.recv() => if change.is_none() { return },
            _ = stopping.changed() => return,
        }
        SubscriberFolder::settled(&mut changes).await;
        match folder.read() {
            Ok(read) => report(&read),
            Err(error) => {
                tracing::error!(%error, "the folder of subscribers cannot be read; what was loaded stays in force");
                continue;
            }
        }
        let next = Arc::new(subscribers_watch.borrow().reloaded(folder.subscribers()));
        if let Err(error) = store.set_subscribers(next.clone()).await {
            tracing::error!(%error, "the new subscribers could not be put in force");
            continue;
        }
        tracing::info!(subscribers = next.len(), "subscribers reloaded");
        subscribers_watch.send_replace(next);
    }
}

fn report(read: &folder::Read) {
    for error in &read.errors {
        let kept = read.kept.contains(&error.path);
        let state = if kept { "its last good version stays in force" } else { "it is left out" };
        tracing::error!(%error, "a subscriber file is wrong; {state}");
    }
}

/// Ends when the hub has been stopping for as long as it waits for anybody.
async fn grace(mut stopping: watch::Receiver<bool>) {
    // A sender that is gone has stopped too.
    let _ = stopping.wait_for(|stopping| *stopping).await;
    tokio::time::sleep(STOP_GRACE).await;
}

/// Forgets known tokens whenever an erasure ends, also one that this start went on with.
async fn forget_erased_tokens(hub: Hub, mut stopping: watch::Receiver<bool>) {
    let mut erased = hub.store.erased();
    loop {
        tokio::select! {
            changed = erased.changed() => match changed {
                Ok(()) => hub.tokens.forget(),
                Err(_) => return,
            },
            _ = stopping.changed() => return,
        }
    }
}

/// Deletes what is old in small steps, so that nobody waits for it.
async fn run_retention(store: Arc<dyn Store>, kept: RetentionConfig, mut stopping: watch::Receiver<bool>) {
    let mut every = tokio::time::interval(RETENTION_EVERY);
    loop {
        tokio::select! {
            _ = every.tick() => {}
            _ = stopping.changed() => return,
        }
        let before = |days: u64| {
            bellwire_core::Time::from_millis(store.now().as_millis().saturating_sub_unsigned(days * DAY_MS))
        };
        let old = RetentionCutoffs {
            events: before(kept.events_days),
            answers: before(kept.answers_days),
            inbox: before(kept.read_inbox_days),
            unread_inbox: before(kept.unread_inbox_days),
            conversations: before(kept.conversations_days),
        };
        loop {
            match store.prune(old, RETENTION_STEP).await {
                // As long as there is more, go on, but let everybody else have their turn between.
                Ok(gone) if gone > 0 => tokio::time::sleep(RETENTION_PAUSE).await,
                Ok(_) => break,
                // The store closes while the hub stops: the next start goes on.
                Err(_) if *stopping.borrow() => return,
                Err(error) => {
                    tracing::warn!(%error, "old rows could not be deleted; they will be tried again");
                    break;
                }
            }
            if *stopping.borrow() {
                return;
            }
        }
    }
}

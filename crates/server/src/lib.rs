//! The hub: any agent in any language publishes events, asks for its block, and is woken, over HTTP.
//!
//! [`App::start`] wires a store, the router and a listener; it answers until `shutdown` resolves, then finishes what it
//! accepted. Everything that decides is in `bellwire-core`, everything that lasts in `bellwire-store`.

pub mod auth;
pub mod channels;
pub mod clock;
pub mod config;
pub mod deliver;
pub mod descriptors;
pub mod folder;
pub mod http;
mod http_client;
pub mod ingest;
mod json_tree;
mod listen;
pub mod mcp;
mod metrics;
mod notify;
mod rate;
mod refusals;
mod session_use;
mod statistics;
mod supervise;
mod template_log;
pub mod tools;
mod usage;
mod wrong_codes;

pub use config::Config;

use std::future::Future;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use bellwire_core::Randomness;
use bellwire_core::subscriber::Subscribers;
use bellwire_store::{
    Clock, Ended, MemoryStore, NoRefusalCache, Observer, PeopleRules, RefusalCache, RetentionCutoffs, SqliteStore,
    Store, StoreError, StoreOptions, Token,
};
use futures_util::future::{BoxFuture, LocalBoxFuture};
use tokio::net::TcpListener;
use tokio::sync::{broadcast, watch};

use crate::auth::Authenticator;
use crate::channels::{Channel, ChannelError, ChannelHub, Channels, UnsubscribeLinks};
use crate::config::RetentionConfig;
use crate::deliver::Outbox;
use crate::folder::SubscriberFolder;
use crate::http::{ConcurrencyLimits, Hub, Parts, TraceIds};
use crate::metrics::Metrics;
use crate::statistics::Statistics;
use crate::supervise::Supervisor;
use crate::template_log::TemplateLog;
use crate::usage::TokenLimits;

/// How often retention runs, how many rows one step deletes, and the pause between two steps.
const RETENTION_EVERY: std::time::Duration = std::time::Duration::from_secs(60);
const RETENTION_STEP: usize = 1_000;
const RETENTION_PAUSE: std::time::Duration = std::time::Duration::from_millis(50);
/// How long a stopping hub waits for incomplete requests. Most service managers kill a process after ten seconds.
const STOP_GRACE: std::time::Duration = std::time::Duration::from_secs(5);
const DAY_MS: u64 = 24 * 60 * 60 * 1000;

/// A running hub.
pub struct App {
    /// The address it listens on.
    pub address: SocketAddr,
    /// The store. An embedding program may use it too.
    pub store: Arc<dyn Store>,
    serving: tokio::task::JoinHandle<std::io::Result<()>>,
    /// The outbox task, if a channel is configured.
    outbox: Option<tokio::task::JoinHandle<()>>,
    supervisor: Supervisor,
}

/// The result of the `prepare` argument of [`App::start_prepared`].
pub type Prepared = Result<(), Box<dyn std::error::Error + Send + Sync>>;
type Prepare<'a> = Box<dyn FnOnce(Arc<dyn Store>) -> LocalBoxFuture<'a, Prepared> + 'a>;
type NewEndpoint = Box<dyn FnOnce(Hub, &config::Limits) -> mcp::Endpoint>;

/// What the program that starts a hub adds to it.
struct Additions<'a> {
    endpoint: NewEndpoint,
    prepare: Prepare<'a>,
    channels: Vec<Arc<dyn Channel>>,
    clock: Clock,
}

impl Default for Additions<'_> {
    fn default() -> Self {
        let endpoint: NewEndpoint = Box::new(|hub, limits| mcp::Endpoint::new(hub, limits, |server| server));
        let prepare: Prepare<'_> = Box::new(|_| Box::pin(async { Ok(()) }));
        Self { endpoint, prepare, channels: Vec::new(), clock: clock::system() }
    }
}

impl App {
    /// Opens the store and serves requests until `shutdown` resolves. When this returns, the hub is ready.
    pub async fn start(
        config: Config,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
    ) -> Result<Self, StartError> {
        Self::assemble(config, listener, Box::pin(shutdown), Additions::default()).await
    }

    /// Like [`App::start`], but runs `prepare` with the store before the hub serves requests.
    pub async fn start_prepared<'a, F>(
        config: Config,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
        prepare: impl FnOnce(Arc<dyn Store>) -> F + 'a,
    ) -> Result<Self, StartError>
    where
        F: Future<Output = Prepared> + 'a,
    {
        let prepare = Box::new(|store| -> LocalBoxFuture<'a, Prepared> { Box::pin(prepare(store)) });
        Self::assemble(config, listener, Box::pin(shutdown), Additions { prepare, ..Additions::default() }).await
    }

    /// Like [`App::start`], but MCP clients are served by the handler that `offer` creates from the hub's own.
    pub async fn start_offering<H: rmcp::ServerHandler + Send + 'static>(
        config: Config,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
        offer: impl Fn(mcp::McpServer) -> H + Send + Sync + 'static,
    ) -> Result<Self, StartError> {
        let endpoint: NewEndpoint = Box::new(|hub, limits| mcp::Endpoint::new(hub, limits, offer));
        Self::assemble(config, listener, Box::pin(shutdown), Additions { endpoint, ..Additions::default() }).await
    }

    /// Like [`App::start`], with channels of the embedding program after the hub's own.
    pub async fn start_with_channels(
        config: Config,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
        channels: Vec<Arc<dyn Channel>>,
    ) -> Result<Self, StartError> {
        Self::assemble(config, listener, Box::pin(shutdown), Additions { channels, ..Additions::default() }).await
    }

    /// Like [`App::start`], with this time for everything that is stored.
    pub async fn start_with_clock(
        config: Config,
        listener: TcpListener,
        shutdown: impl Future<Output = ()> + Send + 'static,
        clock: Clock,
    ) -> Result<Self, StartError> {
        Self::assemble(config, listener, Box::pin(shutdown), Additions { clock, ..Additions::default() }).await
    }

    /// Boxed and not generic, so that the hub is compiled in this crate, once, and not in each program that starts one.
    fn assemble<'a>(
        config: Config,
        listener: TcpListener,
        shutdown: BoxFuture<'static, ()>,
        additions: Additions<'a>,
    ) -> LocalBoxFuture<'a, Result<Self, StartError>> {
        Box::pin(Self::assemble_parts(config, listener, shutdown, additions))
    }

    async fn assemble_parts(
        config: Config,
        listener: TcpListener,
        shutdown: BoxFuture<'static, ()>,
        additions: Additions<'_>,
    ) -> Result<Self, StartError> {
        let address = listener.local_addr().map_err(StartError::Listen)?;
        let mut folder = config.subscribers_dir.as_deref().map(SubscriberFolder::new);
        // Watched before it is read, so that no change in between is missed.
        let watched = folder.as_ref().map(SubscriberFolder::watch);
        let subscribers = first_subscribers(folder.as_mut())?;
        let metrics = Arc::new(Metrics::new());
        let (counted, statistics) = (metrics.clone(), Arc::new(Statistics::new()));
        let mut channels = Channels::of_config(&config).map_err(StartError::Channel)?;
        channels.extend(additions.channels);
        let channels = Channels::new(channels).map_err(StartError::Channel)?;
        let people = rules(&config, &channels);
        let (stop, stopping) = watch::channel(false);
        let supervisor = Supervisor::new(stopping.clone());
        let refusals: Arc<dyn RefusalCache> = match config.data_dir {
            Some(_) => refusals::open(&config.redis, stopping.clone()).map_err(StartError::Redis)?,
            None => Arc::new(NoRefusalCache),
        };
        let dir = config.data_dir.as_deref();
        let observer = observer(metrics.clone(), statistics.clone());
        let sizes = config.sizes;
        let randomness = Randomness::new(clock::random);
        let options = StoreOptions {
            subscribers: subscribers.clone(),
            randomness,
            clock: additions.clock,
            timers: true,
            observer: Some(observer),
            people,
            sizes,
        };
        let store = open_store(dir, options, refusals.clone()).await?;
        tokio::spawn(watch_writer(store.ended(), supervisor.clone(), stop.subscribe()));
        (additions.prepare)(store.clone()).await.map_err(StartError::Prepare)?;
        let subscribers_watch = watch::channel(subscribers);
        if let Some((folder, watched)) = folder.zip(watched) {
            let following = watch_subscribers(folder, watched, store.clone(), subscribers_watch.0, stop.subscribe());
            supervisor.spawn("the watcher of the subscriber folder", following);
        }
        let unsubscribe = UnsubscribeLinks::new(link_key(&*store).await?);
        let connection_limits = descriptors::connection_limits(&config.limits);
        let hub = Hub::new(Parts {
            store: store.clone(),
            tokens: Arc::new(Authenticator::new(store.clone(), TokenLimits::new(&config.limits))),
            subscribers_watch: subscribers_watch.1,
            batch_max: config.limits.batch_events,
            metrics,
            statistics,
            overload: Arc::new(ConcurrencyLimits::new(config.limits.concurrent_requests, connection_limits.streams)),
            trace_ids: TraceIds::under(clock::random()),
            revoked: broadcast::channel(256).0,
            unsubscribe: unsubscribe.clone(),
            own_tests: http::OwnTests::default(),
            wrong_codes: wrong_codes::WrongCodes::default(),
            public_url: config.public_url.clone(),
            ingest: ingest::Sources::of_config(&config).map_err(StartError::Ingest)?,
            channels: channels.clone(),
            notify: notify::NotifyPath::new(&config).map_err(StartError::Notify)?,
            channel_test_wait: config.limits.request_timeout() * 4 / 5,
            refusals,
            notification_throttle: tools::NotificationThrottle::default(),
            // Well before the timeout of the request.
            erase_wait: config.limits.request_timeout() / 2,
            metrics_page: tokio::sync::Mutex::default(),
            stopping,
            supervisor: supervisor.clone(),
        });
        tokio::spawn(forget_erased_tokens(hub.clone(), stop.subscribe()));
        tokio::spawn(hub.clone().watch_queues(stop.subscribe()));
        let endpoint = (additions.endpoint)(hub.clone(), &config.limits);
        let api = http::router::api(hub, &config, endpoint);
        let channel_hub = ChannelHub {
            store: store.clone(),
            // Without a public URL, unsubscribe links work only on this machine; a warning at start says so.
            public_url: config.public_url.clone().unwrap_or_else(|| format!("http://{address}")),
            unsubscribe,
            stopping: stop.subscribe(),
        };
        for task in channels.configured().flat_map(|channel| channel.start(channel_hub.clone())) {
            supervisor.spawn(task.name, task.run);
        }
        let outbox = channels.configured().next().is_some().then(|| {
            let outbox = Outbox::new(store.clone(), channels.clone());
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
            // Streams end on this signal; all other requests are answered before the listener closes.
            let _ = stop.send(true);
        };
        let serving = tokio::spawn(async move {
            tokio::select! {
                () = listen::serve(listener, api, connection_limits.connections, counted, ended) => Ok(()),
                () = grace => Ok(()),
            }
        });
        Ok(Self { address, store, serving, outbox, supervisor })
    }

    /// Waits until an essential task of the hub has died. The hub then stops.
    pub fn failed(&self) -> impl Future<Output = ()> + Send + 'static {
        let supervisor = self.supervisor.clone();
        async move { supervisor.failed().await }
    }

    /// Waits until the hub has stopped: every accepted request is answered, and the database is closed. If the hub
    /// stopped because an essential task died, the error is the reason.
    pub fn stopped(self) -> BoxFuture<'static, std::io::Result<()>> {
        Box::pin(self.wait_for_stop())
    }

    async fn wait_for_stop(self) -> std::io::Result<()> {
        let served = self.serving.await.unwrap_or_else(|error| Err(std::io::Error::other(error)));
        if let Some(mut outbox) = self.outbox {
            // A server may take long to reply to a whole message. An attempt that is aborted here is recorded as *unknown*
            // at the next start.
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

/// Creates a token directly in the store, such as the first admin token. Returns its secret.
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
    /// The listener has no local address.
    Listen(std::io::Error),
    /// The data folder cannot be created.
    DataFolder(std::io::Error),
    /// The subscriber folder cannot be read.
    Subscribers(std::io::Error),
    /// The store cannot be opened.
    Store(StoreError),
    /// The settings of a channel cannot be used.
    Channel(ChannelError),
    /// The Redis settings cannot be used.
    Redis(String),
    /// The settings of the Switchboard or the Messenger cannot be used.
    Notify(String),
    /// The secret of a source of webhooks cannot be used.
    Ingest(String),
    /// `prepare` of [`App::start_prepared`] failed.
    Prepare(Box<dyn std::error::Error + Send + Sync>),
}

impl std::fmt::Display for StartError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Listen(error) => write!(f, "cannot listen: {error}"),
            Self::DataFolder(error) => write!(f, "cannot make the data folder: {error}"),
            Self::Subscribers(error) => write!(f, "cannot read the folder of subscribers (subscribers.dir): {error}"),
            Self::Store(error) => write!(f, "cannot open the store: {error}"),
            Self::Channel(error) => write!(f, "{error}"),
            Self::Redis(error) => write!(f, "cannot use Redis: {error}"),
            Self::Notify(error) | Self::Ingest(error) => write!(f, "{error}"),
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
    opening: StoreOptions,
    refusals: Arc<dyn RefusalCache>,
) -> Result<Arc<dyn Store>, StartError> {
    match dir {
        None => Ok(Arc::new(MemoryStore::open(opening))),
        Some(dir) => {
            std::fs::create_dir_all(dir).map_err(StartError::DataFolder)?;
            let store = SqliteStore::open_with_refusal_cache(&dir.join("bellwire.db"), opening, refusals).await;
            Ok(Arc::new(store.map_err(StartError::Store)?))
        }
    }
}

/// Updates the metrics after every commit, and logs new notifications to people and failed templates.
fn observer(metrics: Arc<Metrics>, statistics: Arc<Statistics>) -> Observer {
    let templates = TemplateLog::default();
    Arc::new(move |report| {
        metrics.committed(report);
        statistics.committed(report);
        for new in report.new_notifications.iter().filter(|_| report.failed.is_none()) {
            // The text is not logged, because a log has other readers than the person.
            let (conversation_id, correlation_id) = (new.conversation_id.as_deref(), new.correlation_id.as_deref());
            let (user_id, origin) = (new.user_id.as_str(), new.origin.as_str());
            tracing::info!(notification_id = %new.id, user_id, origin, conversation_id, correlation_id, "notification created");
        }
        for failed in report.template_failures.iter().filter(|_| report.failed.is_none()) {
            templates.report(failed, clock::now());
        }
    })
}

/// Stops the hub when the writer of its store has ended.
async fn watch_writer(ended: impl Future<Output = Ended>, supervisor: Supervisor, stopping: watch::Receiver<bool>) {
    match ended.await {
        Ended::Closed if *stopping.borrow() => {}
        Ended::Closed => supervisor.fail("the writer of the store has ended".to_owned()),
        Ended::Panicked(message) => supervisor.fail(format!("the writer of the store has panicked: {message}")),
    }
}

/// The key that signs unsubscribe links. It is created once and stored.
async fn link_key(store: &dyn Store) -> Result<Vec<u8>, StartError> {
    let fresh: [u8; 32] = clock::random();
    store.secret("unsubscribe".to_owned(), fresh.to_vec()).await.map_err(StartError::Store)
}

/// The limits and channels of notifications to people.
fn rules(config: &Config, channels: &Channels) -> PeopleRules {
    let own = |per_hour: u64| Some(per_hour).filter(|per_hour| *per_hour > 0);
    PeopleRules {
        channels: channels.rules(),
        notifications_per_hour: config.limits.notifications_per_hour,
        reminders_per_hour: own(config.limits.reminders_per_hour),
        infos_per_hour: own(config.limits.infos_per_hour),
        warnings_per_hour: own(config.limits.warnings_per_hour),
        toasts_per_hour: config.limits.toasts_per_hour,
        allowed_targets: config.notify.allowed_targets(),
        ..PeopleRules::default()
    }
}

/// The subscribers at start. An invalid file is reported, and the hub starts without it.
fn first_subscribers(folder: Option<&mut SubscriberFolder>) -> Result<Arc<Subscribers>, StartError> {
    let Some(folder) = folder else { return Ok(Arc::new(Subscribers::bundled())) };
    let read = folder.read().map_err(StartError::Subscribers)?;
    report(&read);
    Ok(Arc::new(Subscribers::new(folder.subscribers()).with_outdated(folder.outdated().clone())))
}

/// Applies changes of the subscriber folder, from the next event on.
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
        let next = subscribers_watch.borrow().reloaded(folder.subscribers());
        let next = Arc::new(next.with_outdated(folder.outdated().clone()));
        if let Err(error) = store.set_subscribers(next.clone()).await {
            tracing::error!(%error, "the new subscribers could not be put in force");
            continue;
        }
        tracing::info!(subscribers = next.len(), "subscribers reloaded");
        subscribers_watch.send_replace(next);
    }
}

fn report(read: &folder::FolderReport) {
    for folder::FileProblem { error, kept } in &read.problems {
        let state = if *kept { "its last valid version stays in use" } else { "its subscriber is not loaded" };
        tracing::error!(%error, "a subscriber file is invalid; {state}");
    }
}

/// Completes [`STOP_GRACE`] after the hub started to stop.
async fn grace(mut stopping: watch::Receiver<bool>) {
    // A dropped sender means that the hub stops.
    let _ = stopping.wait_for(|stopping| *stopping).await;
    tokio::time::sleep(STOP_GRACE).await;
}

/// Clears the token cache whenever an erasure ends, including one that an earlier process started.
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

/// Runs retention in small steps, so that other commands do not wait for it.
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
                // Continue while there is more, with pauses for other commands.
                Ok(gone) if gone > 0 => tokio::time::sleep(RETENTION_PAUSE).await,
                Ok(_) => break,
                // The store is closed because the hub stops. The next start continues.
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

//! The stores under test, and a clock they all read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use bellwire_core::event::AgentName;
use bellwire_core::person::{ChannelChange, ChannelName};
use bellwire_core::{Event, Inject, InjectionPoint, Randomness, Severity, Subscribers, Time};
use bellwire_store::{
    Caller, ChannelRules, ClientEventId, Clock, IncomingEvent, InjectCommand, InjectResult, MemoryStore, Observer,
    PeopleRules, Publish, Receipt, SqliteStore, Store, StoreError, StoreOptions,
};
use serde_json::{Value, json};

/// A store, the clock it reads, and what is needed to open it again.
pub(crate) struct Backend {
    store: Option<Arc<dyn Store>>,
    clock: Arc<AtomicI64>,
    /// None for a store that forgets everything.
    folder: Option<tempfile::TempDir>,
    seed: u64,
    rules: PeopleRules,
    observer: Option<Observer>,
}

pub(crate) const START: i64 = 1_767_454_200_000;

impl Backend {
    pub(crate) async fn memory() -> Self {
        Self::memory_with(rules()).await
    }

    pub(crate) async fn memory_with(rules: PeopleRules) -> Self {
        let mut backend = Self::closed(None, rules);
        backend.store = Some(Arc::new(MemoryStore::open(backend.opening())));
        backend
    }

    pub(crate) async fn sqlite() -> Self {
        Self::sqlite_with(rules()).await
    }

    pub(crate) async fn sqlite_with(rules: PeopleRules) -> Self {
        let mut backend = Self::closed(Some(tempfile::tempdir().expect("a folder")), rules);
        backend.open().await;
        backend
    }

    /// Opens what is in a folder.
    pub(crate) async fn sqlite_in(folder: tempfile::TempDir) -> Self {
        let mut backend = Self::closed(Some(folder), rules());
        backend.open().await;
        backend
    }

    fn closed(folder: Option<tempfile::TempDir>, rules: PeopleRules) -> Self {
        Self { store: None, clock: Arc::new(AtomicI64::new(START)), folder, seed: 1, rules, observer: None }
    }

    /// Opens the store anew with an observer. What a store without a file had is gone.
    pub(crate) async fn observe(&mut self, observer: Observer) {
        self.observer = Some(observer);
        match self.is_durable() {
            true => self.restart().await,
            false => self.store = Some(Arc::new(MemoryStore::open(self.opening()))),
        }
    }

    /// Whether what was committed survives the process.
    pub(crate) fn is_durable(&self) -> bool {
        self.folder.is_some()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.folder.as_ref().expect("a durable store has a folder").path().join("bellwire.db")
    }

    /// Throws the process's memory away and opens the file again.
    pub(crate) async fn restart(&mut self) {
        self.close().await;
        self.open().await;
    }

    pub(crate) async fn close(&mut self) {
        self.store().close().await.expect("the store closes");
        self.store = None;
        self.seed += 1;
    }

    pub(crate) async fn open(&mut self) {
        self.try_open().await.expect("the store opens");
    }

    pub(crate) async fn try_open(&mut self) -> Result<(), StoreError> {
        let store = SqliteStore::open(&self.path(), self.opening()).await?;
        self.store = Some(Arc::new(store));
        Ok(())
    }

    pub(crate) fn opening(&self) -> StoreOptions {
        let clock = self.clock.clone();
        StoreOptions {
            subscribers: Arc::new(Subscribers::bundled()),
            randomness: Randomness::repeatable(self.seed),
            clock: Clock::set_by(move || Time::from_millis(clock.load(Ordering::SeqCst))),
            timers: false,
            observer: self.observer.clone(),
            people: self.rules.clone(),
            sizes: bellwire_store::Sizes::SMALL,
        }
    }

    pub(crate) fn store(&self) -> Arc<dyn Store> {
        self.store.clone().expect("the store is open")
    }

    pub(crate) fn pass(&self, millis: i64) {
        self.clock.fetch_add(millis, Ordering::SeqCst);
    }

    pub(crate) fn now(&self) -> Time {
        Time::from_millis(self.clock.load(Ordering::SeqCst))
    }

    pub(crate) async fn publish(&self, event: Event) -> Receipt {
        let butler = Caller { origin: Some("butler".into()), ..Caller::user("ada") };
        self.publish_as(butler, event, None).await.expect("the event is accepted")
    }

    pub(crate) async fn publish_as(
        &self,
        caller: Caller,
        event: Event,
        client_event_id: Option<ClientEventId>,
    ) -> Result<Receipt, StoreError> {
        let publish =
            Publish { caller, events: vec![IncomingEvent::new(event, client_event_id)], idempotency_key: None };
        self.store().publish(publish).await.map(|mut receipts| receipts.remove(0))
    }

    pub(crate) async fn inject(&self, point: InjectionPoint, call_id: &str) -> InjectResult {
        self.store().inject(inject_command(point, call_id)).await.expect("the injection is answered")
    }
}

/// The channel of most tests.
pub(crate) fn email() -> ChannelName {
    ChannelName::parse("email").unwrap()
}

/// Rules of a hub that can send mail.
pub(crate) fn with_email() -> PeopleRules {
    PeopleRules::default().with_channel(email(), ChannelRules::new("email"))
}

/// A change of the address.
pub(crate) fn email_address(address: impl Into<String>) -> BTreeMap<ChannelName, ChannelChange> {
    BTreeMap::from([(email(), ChannelChange { enabled: None, target: Some(Some(address.into())) })])
}

/// A change of the address that switches mail on.
pub(crate) fn email_to(address: impl Into<String>) -> BTreeMap<ChannelName, ChannelChange> {
    BTreeMap::from([(email(), ChannelChange { enabled: Some(true), target: Some(Some(address.into())) })])
}

/// Five messages an hour, and mail can be sent.
fn rules() -> PeopleRules {
    PeopleRules { notifications_per_hour: 5, ..with_email() }
}

pub(crate) fn inject_command(point: InjectionPoint, call_id: &str) -> InjectCommand {
    InjectCommand {
        caller: Caller::user("ada"),
        conversation_id: "chat".into(),
        agent: AgentName::main(),
        request: Inject::new(point, call_id).expect("the call id is legal"),
        observed: None,
        unseen: Vec::new(),
        tool_result_digest: None,
        correlation_id: None,
        unsure: false,
    }
}

/// A failure of this tool in the conversation `chat`.
pub(crate) fn failure(tool: &str) -> Event {
    event("tool.call.failure", Severity::Error, json!({"tool_name": tool, "error_type": "timeout"}))
}

pub(crate) fn event(kind: &str, severity: Severity, payload: Value) -> Event {
    Event::new(kind, "tool_executor", severity, payload)
        .expect("the event is well formed")
        .at(Time::from_millis(START))
        .in_conversation("chat")
}

/// Runs each test on each backend.
macro_rules! on_every_store {
    ($($(#[$doc:meta])* async fn $name:ident($backend:ident: $type:ty) $body:block)+) => {
        $(
            $(#[$doc])*
            mod $name {
                use super::*;

                #[allow(unused_mut)]
                async fn duty(mut $backend: $type) $body

                #[tokio::test]
                async fn memory() {
                    duty(Backend::memory().await).await;
                }

                #[tokio::test]
                async fn sqlite() {
                    duty(Backend::sqlite().await).await;
                }
            }
        )+
    };
}
pub(crate) use on_every_store;

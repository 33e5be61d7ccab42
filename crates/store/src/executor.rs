//! Carries out commands: loads the rows a command needs, calls the core, and collects the rows to write.
//!
//! It does not depend on a database. A backend loads rows for it and commits its [`Changes`]; answers and hints are
//! sent only after the commit. Mailboxes stay in memory ("hot") within a bound. A failed commit evicts every mailbox it
//! touched, so that memory never contains uncommitted state.

mod bound;
mod chats;
mod claim;
mod conversation;
mod direct;
mod event_cache;
mod hot_mailbox;
mod idempotency;
mod inbound;
mod inbox;
mod inject;
mod ledger;
mod notify;
mod notify_admission;
mod notify_rows;
mod outbox;
mod outcome;
mod people;
mod preferences;
mod publish;
mod remind;
mod repeats;
mod sessions;
mod staged;
mod timers;
mod unseen;

pub(crate) use chats::ChatRowSource;
pub(crate) use conversation::pick_unambiguous;
use hot_mailbox::HotMailbox;
pub(crate) use notify::NotifyRowSource;
pub(crate) use people::{PeopleRowSource, StoredItem};
pub(crate) use publish::Publishing;
use repeats::{ReadyMessage, Repeats};
pub(crate) use sessions::SessionRowSource;
use staged::Staged;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;

use bellwire_core::notification::{EndReason, NotificationKind};
use bellwire_core::person::render_message;
use bellwire_core::subscriber::{Preferences, SubscriberId, Subscribers};
use bellwire_core::{Effect, Event, EventId, Ids, Injection, Input, Mailbox, MailboxContext, Randomness, Time};

use crate::command::{Hint, IdempotencyKey, Token};
use crate::damage::{Damage, Found};
use crate::erasing::Erasing;
use crate::error::{ErrorKind, StoreError};
use crate::keys::KeyedMap;
use crate::packed_event::PackedEvent;
use crate::people::{Delivery, PeopleRules};
use crate::report::FailedTemplate;
use crate::rows::{
    ClientEventIdRow, ConversationKey, ConversationRow, EventRow, IdempotencyRow, InjectionRow, MailboxKey,
    NotificationRow, SupersededRow,
};
use crate::verdicts::{Decision, Verdicts};
use crate::writer::Pruned;

/// A conversation counts as open for this long after it was last seen.
const OPEN_MS: u64 = 24 * 60 * 60 * 1000;
/// The maximum number of events that one query loads.
const EVENTS_AT_ONCE: usize = 500;
/// How many rows a command must still be allowed to read in this step before it stages its first change.
const READS_TO_STAGE: usize = 700;
/// The maximum number of open conversations that one event for a person reaches.
pub(crate) const OPEN_MAX: usize = 100;

/// Conversations last seen at or after this time are open.
pub(crate) fn open_since(now: Time) -> Time {
    now.minus(OPEN_MS)
}

/// Loads rows for the executor. Implemented by the backends.
pub(crate) trait RowSource: PeopleRowSource + ChatRowSource + NotifyRowSource + SessionRowSource {
    /// Whether the current command has used up the rows it may read in one step.
    fn is_spent(&self) -> bool {
        false
    }
    /// How many more rows the current command may read in this step.
    fn reads_left(&self) -> usize {
        usize::MAX
    }
    /// How many rows were read in this step.
    fn rows_read(&self) -> usize {
        0
    }
    fn conversation(
        &mut self,
        key: &ConversationKey,
    ) -> impl Future<Output = Result<Option<ConversationRow>, StoreError>> + Send;
    /// Conversations with this id, of any owner, the registered one first; at most two.
    fn conversations_named(
        &mut self,
        id: &str,
    ) -> impl Future<Output = Result<Vec<ConversationRow>, StoreError>> + Send;
    /// The person's conversations seen at or after `since`, the latest first, at most `limit`.
    fn open_conversations(
        &mut self,
        user_id: &str,
        since: Time,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Arc<str>>, StoreError>> + Send;
    fn mailbox(&mut self, key: &MailboxKey) -> impl Future<Output = Result<Option<LoadedMailbox>, StoreError>> + Send;
    /// The summary of a mailbox, read from the mailbox row only.
    fn mailbox_summary(
        &mut self,
        key: &MailboxKey,
        now: Time,
    ) -> impl Future<Output = Result<Option<MailboxSummary>, StoreError>> + Send;
    /// The sub-agents of a conversation that have pending notifications; at most `limit`.
    fn sub_agents(
        &mut self,
        key: &ConversationKey,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Arc<str>>, StoreError>> + Send;
    fn disabled(&mut self, user_id: &str) -> impl Future<Output = Result<Vec<String>, StoreError>> + Send;
    fn client_event_id(
        &mut self,
        owner: &str,
        id: &str,
    ) -> impl Future<Output = Result<Option<(ClientEventIdRow, EventRow)>, StoreError>> + Send;
    /// The stored answer of this idempotency key, even if it has expired.
    fn idempotency_row(
        &mut self,
        key: &IdempotencyKey,
    ) -> impl Future<Output = Result<Option<IdempotencyRow>, StoreError>> + Send;
    fn injection(
        &mut self,
        key: &MailboxKey,
        call_id: &str,
    ) -> impl Future<Output = Result<Option<InjectionRow>, StoreError>> + Send;
    fn events(
        &mut self,
        ids: &[EventId],
    ) -> impl Future<Output = Result<Vec<(EventId, PackedEvent)>, StoreError>> + Send;
    /// The verdicts on an event; none = it was deleted.
    fn verdicts(&mut self, event: EventId) -> impl Future<Output = Result<Option<Arc<Verdicts>>, StoreError>> + Send;
    /// The mailboxes whose timers are due, oldest first, at most `limit`. Damaged mailboxes and those of people who are
    /// being erased are skipped.
    fn due(
        &mut self,
        now: Time,
        limit: usize,
        damage: &Damage,
        erasing: &BTreeSet<String>,
    ) -> impl Future<Output = Result<DueMailboxes, StoreError>> + Send;
    /// A lower bound for when the next mailbox or reminder is due after this time; `NEVER` if none is.
    fn next_due(&mut self, after: Time) -> impl Future<Output = Result<Time, StoreError>> + Send;
    /// When the next waiting delivery is due or the next lease ends, after this time; `NEVER` without any.
    fn next_delivery(&mut self, after: Time) -> impl Future<Output = Result<Time, StoreError>> + Send;
}

/// Mailboxes whose timers are due.
pub(crate) struct DueMailboxes {
    pub(crate) found: Found<MailboxKey>,
    /// The number of rows read to find them.
    pub(crate) read: usize,
    /// Whether there may be more.
    pub(crate) more: bool,
}

/// A mailbox and its pending notifications, without their events.
pub(crate) struct LoadedMailbox {
    pub(crate) mailbox: Mailbox,
    /// Whether it was saved by a version that derived the secret from ids.
    pub(crate) has_guessable_secret: bool,
    /// The size of the saved mailbox, in bytes.
    pub(crate) saved: usize,
}

impl LoadedMailbox {
    /// The number of rows it was loaded from.
    pub(crate) fn rows(&self) -> usize {
        1 + self.mailbox.pending().len()
    }
}

/// The state of a mailbox without its notifications.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MailboxSummary {
    /// Whether its agent is working.
    pub(crate) working: bool,
    /// The number of pending notifications.
    pub(crate) pending: usize,
}

/// The state in memory, and the context in which mailboxes handle inputs.
pub(crate) struct Executor {
    context: MailboxContext,
    /// The source of secrets.
    randomness: Randomness,
    conversations: HashMap<ConversationKey, conversation::HotConversation>,
    /// The main agent's mailbox for a conversation id without owner, as unbound callers send it.
    names: HashMap<Arc<str>, MailboxKey>,
    hot_mailboxes: KeyedMap<MailboxKey, HotMailbox>,
    preferences: HashMap<Arc<str>, Arc<Preferences>>,
    people: HashMap<Arc<str>, people::Person>,
    rules: Arc<PeopleRules>,
    /// How many decisions the ledger has of each origin today: day and count. Dropped with staged changes.
    ledger_today: HashMap<String, (i64, u64)>,
    /// Events of the current command that the owner's person mailboxes must decide on too: owner, event, packed event.
    detected_events: Vec<(Arc<str>, Arc<Event>, PackedEvent)>,
    /// The damaged rows that timers and deliveries have skipped.
    pub(crate) damage: Damage,
    uses: u64,
    /// Bytes added or loaded since the memory of the mailboxes was last summed up.
    unweighed: usize,
    /// The approximate maximum memory of the mailboxes, in bytes.
    cache_bytes: usize,
    /// The changes of the current group of commands.
    pub(crate) changes: Staged,
    /// Whether the current command stopped because its read budget of this step was used up.
    unfinished: bool,
    /// The mailboxes that the current command has loaded.
    loaded: Vec<MailboxKey>,
    /// The mailboxes that unfinished commands need in their next step, with the number of those commands. They are not
    /// evicted.
    pinned: KeyedMap<MailboxKey, usize>,
    /// Incremented when staged changes or rows were dropped. Results computed before that may be outdated.
    dropped: u64,
    /// The idempotency keys of publishes that are committed in parts. A repeat waits until its first call is complete.
    in_parts: HashSet<[String; 3]>,
    /// The people whose erasure is in progress. Commands and timers skip them.
    pub(crate) erasing: Arc<Erasing>,
}

impl Executor {
    pub(crate) fn new(subscribers: Arc<Subscribers>, mut randomness: Randomness, rules: Arc<PeopleRules>) -> Self {
        let ids = Ids::seeded(u128::from_le_bytes(randomness.draw()));
        Self {
            context: MailboxContext::new(subscribers, ids),
            randomness,
            conversations: HashMap::new(),
            names: HashMap::new(),
            hot_mailboxes: KeyedMap::default(),
            preferences: HashMap::new(),
            people: HashMap::new(),
            rules,
            ledger_today: HashMap::new(),
            detected_events: Vec::new(),
            damage: Damage::default(),
            uses: 0,
            unweighed: 0,
            cache_bytes: crate::Sizes::default().mailbox_cache_bytes,
            changes: Staged::default(),
            unfinished: false,
            loaded: Vec::new(),
            pinned: KeyedMap::default(),
            dropped: 0,
            in_parts: HashSet::new(),
            erasing: Arc::default(),
        }
    }

    pub(crate) fn set_subscribers(&mut self, subscribers: Arc<Subscribers>) {
        self.context.subscribers = subscribers;
        self.preferences.clear();
    }

    /// Begins the next command of a group.
    pub(crate) fn begin_command(&mut self) {
        self.changes.begin();
        self.loaded.clear();
    }

    /// Sets the time of this commit. It must not decrease.
    pub(crate) fn set_now(&mut self, now: Time) {
        self.context.now = now;
    }

    /// Builds the rows of the changed mailboxes, once per commit.
    pub(crate) fn build_rows(&mut self) {
        self.changes.at = self.context.now;
        for key in std::mem::take(&mut self.changes.mailboxes) {
            let Some(hot_mailbox) = self.hot_mailboxes.get_mut(&key) else { continue };
            self.changes.waiting += hot_mailbox.waiting_change();
            let waiting = hot_mailbox.waiting_rows().map(|row| (row.notification.id, row));
            self.changes.notifications.extend(waiting);
            self.changes.mailbox_rows.push((key, hot_mailbox.build_rows()));
        }
        self.changes.pending_rows = 0;
    }

    /// Called after a successful commit. Clears the changes and returns the hints to send.
    pub(crate) fn committed(&mut self) -> Vec<Hint> {
        let changes = self.changes.take();
        let mut hints = Vec::new();
        for (key, _) in &changes.mailbox_rows {
            if let Some(hot_mailbox) = self.hot_mailboxes.get_mut(key) {
                hot_mailbox.committed(&mut hints);
            }
        }
        self.unweighed += changes.events.iter().map(|row| row.packed.bytes()).sum::<usize>();
        self.evict_over_bound();
        hints
    }

    /// Drops the staged changes and evicts everything they touched; it is loaded again when needed.
    pub(crate) fn roll_back(&mut self) {
        self.dropped += 1;
        let changes = self.changes.take();
        for (key, _) in &changes.mailbox_rows {
            self.hot_mailboxes.remove(key);
        }
        for key in &changes.mailboxes {
            self.hot_mailboxes.remove(key);
        }
        for injection in &changes.injections {
            self.hot_mailboxes.remove(&injection.key);
        }
        for (key, _) in &changes.unseen {
            self.hot_mailboxes.remove(key);
        }
        for key in changes.conversations.keys() {
            self.conversations.remove(key);
            self.names.remove(&key.id);
        }
        for user in changes.settings.keys() {
            self.preferences.remove(user.as_str());
            self.people.remove(user.as_str());
        }
        for person in changes.people.positions.keys() {
            self.people.remove(person);
        }
        self.ledger_today.clear();
        self.detected_events.clear();
        // A failed command may have left effects in the context's queue.
        while self.context.poll().is_some() {}
    }

    /// When the next timer of the mailboxes and reminders of this commit is due, or a damaged row is read again.
    pub(crate) fn next_due(&self) -> Time {
        let mailboxes = self.changes.mailbox_rows.iter().map(|(_, row)| row.due_at).min();
        let leases = self.changes.notify.requests.values().filter_map(|row| row.lease_until).min();
        let timers = mailboxes.into_iter().chain(leases).min().unwrap_or(Time::NEVER);
        timers.min(self.next_reminder()).min(self.damage.next_retry())
    }

    /// When the next delivery of this commit is due or its lease ends.
    pub(crate) fn next_delivery(&self) -> Time {
        let due = self.changes.people.deliveries.values().filter_map(Delivery::due_at).min();
        due.unwrap_or(Time::NEVER)
    }

    /// Stores a token. A repeated call is refused, because its secret was shown once and is not stored.
    pub(crate) async fn put_token(
        &mut self,
        token: Token,
        idempotency_key: Option<&IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        if let Some(id) = self.remembered_answer::<String>(idempotency_key, source).await? {
            let message = format!("this call made token {id} before; its secret cannot be shown again");
            return Err(StoreError::new(ErrorKind::Conflict, message));
        }
        self.remember(idempotency_key, &token.id, token.user_id.as_deref());
        self.changes.tokens.insert(token.id.clone(), token);
        Ok(())
    }

    /// Loads a mailbox into memory, and its owner's preferences into the context. Returns the cached key of the
    /// mailbox, which later look-ups compare by pointer.
    async fn load_mailbox(&mut self, key: &MailboxKey, source: &mut impl RowSource) -> Result<MailboxKey, StoreError> {
        self.erasing.check(key.owner())?;
        self.context.preferences = self.preferences_of(key.owner(), source).await?;
        self.uses += 1;
        if let Some(hot_mailbox) = self.hot_mailboxes.get_mut(key) {
            hot_mailbox.used = self.uses;
            let key = hot_mailbox.key.clone();
            self.loaded.push(key.clone());
            self.load_persons_events(&key, source).await?;
            return Ok(key);
        }
        self.check_budget(source)?;
        let mut hot_mailbox = match source.mailbox(key).await? {
            Some(mut loaded) => {
                if loaded.has_guessable_secret {
                    loaded.mailbox.set_secret(self.randomness.draw());
                }
                HotMailbox::load(key, loaded)
            }
            None => HotMailbox::empty(key, self.randomness.draw()),
        };
        hot_mailbox.used = self.uses;
        hot_mailbox.set_back(self.context.now, &mut self.changes);
        self.unweighed += hot_mailbox.bytes();
        self.hot_mailboxes.insert(key.clone(), hot_mailbox);
        self.loaded.push(key.clone());
        self.load_persons_events(key, source).await?;
        Ok(key.clone())
    }

    /// Loads the events of a person's mailbox, because its batches are rendered as soon as they close. There are few.
    async fn load_persons_events(&mut self, key: &MailboxKey, source: &mut impl RowSource) -> Result<(), StoreError> {
        match key.origin().is_some() {
            true => self.load_events(key, source).await,
            false => Ok(()),
        }
    }

    /// Loads the events that the mailbox may show and that are not in memory.
    async fn load_events(&mut self, key: &MailboxKey, source: &mut impl RowSource) -> Result<(), StoreError> {
        let hot_mailbox = self.hot_mailboxes.get(key).expect("a mailbox is loaded before its events are loaded");
        let wanted = hot_mailbox.unloaded_events();
        self.load(key, &wanted, source).await
    }

    /// Loads these events of a mailbox, in chunks that fit into a step.
    async fn load(
        &mut self,
        key: &MailboxKey,
        wanted: &[EventId],
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        for ids in wanted.chunks(EVENTS_AT_ONCE) {
            self.check_budget(source)?;
            let found = source.events(ids).await?;
            self.unweighed += found.iter().map(|(_, packed)| packed.bytes()).sum::<usize>();
            let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("it was loaded before");
            hot_mailbox.loaded(ids, found);
        }
        Ok(())
    }

    /// Stops the current command if its read budget of this step is used up. The loaded rows stay in memory. The
    /// command is decided again in a later step, which reads the rest.
    fn check_budget(&mut self, source: &impl RowSource) -> Result<(), StoreError> {
        match source.is_spent() {
            true => self.stop_for_this_step(),
            false => Ok(()),
        }
    }

    /// Stops the current command before its first change if it has read so much that its last reads may exceed the
    /// budget. A command that stops after a change is rolled back with the rows it loaded, and reads them all again.
    fn check_room(&mut self, source: &impl RowSource) -> Result<(), StoreError> {
        match source.reads_left() < READS_TO_STAGE {
            true => self.stop_for_this_step(),
            false => Ok(()),
        }
    }

    fn stop_for_this_step(&mut self) -> Result<(), StoreError> {
        self.unfinished = true;
        Err(StoreError::new(ErrorKind::Retry, "the command needs another step"))
    }

    /// Whether the last command needs another step. Resets the flag.
    pub(crate) fn take_unfinished(&mut self) -> bool {
        std::mem::take(&mut self.unfinished)
    }

    async fn preferences_of(
        &mut self,
        owner: &Arc<str>,
        source: &mut impl RowSource,
    ) -> Result<Arc<Preferences>, StoreError> {
        if let Some(known) = self.preferences.get(owner) {
            return Ok(known.clone());
        }
        let fresh = self.changes.settings.get(&**owner).map(|(settings, _)| settings.disabled_subscribers.clone());
        let disabled = match fresh {
            Some(disabled) => disabled,
            None => source.disabled(owner).await?,
        };
        // A subscriber that was removed or became core since then is not switched off.
        let known = disabled
            .iter()
            .filter(|id| self.context.subscribers.find(id).is_some_and(|subscriber| !subscriber.output.core));
        let preferences = Preferences::disabling(known.map(String::as_str), &self.context.subscribers)
            .map_err(|refused| StoreError::new(ErrorKind::Broken, refused.to_string()))?;
        let preferences = Arc::new(preferences);
        self.preferences.insert(owner.clone(), preferences.clone());
        Ok(preferences)
    }

    fn handle(&mut self, key: &MailboxKey, input: Input<'_>) -> Result<(), StoreError> {
        let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("a mailbox is loaded before it is handled");
        hot_mailbox.change(&mut self.changes);
        self.changes.handled += 1;
        let handled = hot_mailbox.mailbox.handle(input, &mut self.context);
        handled.map_err(|refused| StoreError::new(ErrorKind::Full, refused.to_string()))
    }

    /// Turns the queued effects into rows and hints.
    fn drain(&mut self, key: &MailboxKey) -> DrainedEffects {
        let now = self.context.now;
        let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("a mailbox is loaded before it is drained");
        let (mut drained, mut moved, mut wake) = (DrainedEffects::default(), false, Vec::new());
        let mut detected: Vec<EventRow> = Vec::new();
        while let Some(effect) = self.context.poll() {
            match effect {
                Effect::Verdict { event, subscriber, verdict, hint } => {
                    let decision = Decision { hint, ..Decision::new(&subscriber, key, &verdict) };
                    match detected.iter_mut().find(|row| row.event.id() == event) {
                        Some(row) => Arc::make_mut(&mut row.verdicts).extend([decision]),
                        None => {
                            drained.to_show |= decision.has_notification();
                            drained.verdicts.push(decision);
                        }
                    }
                }
                Effect::Decided { event, unmatched } => match detected.iter_mut().find(|row| row.event.id() == event) {
                    Some(row) => row.filtered = unmatched,
                    None => drained.filtered = unmatched,
                },
                Effect::Detected(event) => {
                    let row = detected_row(key, event, now);
                    self.detected_events.push((row.owner.clone(), row.event.clone(), row.packed.clone()));
                    detected.push(row);
                }
                Effect::Remeasured(event) => detected.push(detected_row(key, event, now)),
                Effect::Superseded { event, subscriber, by } => {
                    let subscriber = subscriber.to_string();
                    self.changes.superseded.push(SupersededRow { event_id: event, subscriber, by, at: now });
                }
                Effect::Ready(notification) => {
                    let message = render_message(&notification, &self.context.subscribers, &hot_mailbox.event_cache);
                    let repeats = Repeats::of(&notification);
                    let (id, subscriber) = (notification.id, notification.subscriber.clone());
                    drained.ready.push(ReadyMessage { id, subscriber, message, repeats });
                    // While it was counting it had a notification row. That row ends now: the inbox has the
                    // notification.
                    if matches!(notification.kind, NotificationKind::LeftOut(_)) {
                        self.changes.end(NotificationRow::ended(key, *notification, EndReason::Injected, now));
                    }
                }
                Effect::Waiting(id) => {
                    self.changes.pending_rows += usize::from(hot_mailbox.wait(id));
                    moved = true;
                }
                Effect::Ended(notification, end_reason) => {
                    self.changes.end(NotificationRow::ended(key, *notification, end_reason, now));
                    moved = true;
                }
                Effect::Wake(ids) => wake = ids,
                Effect::Injection(answer) => drained.answer = Some(*answer),
            }
        }
        for row in &detected {
            hot_mailbox.keep(row.event.id(), &row.packed, row.verdicts.iter().any(Decision::has_notification));
        }
        self.changes.events.extend(detected);
        // Streams get a hint only if a notification became pending or ended; most events do neither.
        if moved {
            hot_mailbox.hint(wake);
        }
        drained
    }

    /// Adds a failed template to the report of this commit.
    fn report_failed_template(&mut self, subscriber: &SubscriberId, error: &str) {
        let is_loaded = self.context.subscribers.find(subscriber.as_str()).is_some();
        let failed = FailedTemplate { subscriber: subscriber.shared(), is_loaded, error: error.to_owned() };
        self.changes.template_failures.push(failed);
    }

    /// Evicts the conversations and mailboxes that retention has deleted.
    pub(crate) fn evict_pruned(&mut self, gone: &Pruned) {
        if gone.conversations.is_empty() && gone.mailboxes.is_empty() {
            return;
        }
        self.dropped += 1;
        let conversations: HashSet<&ConversationKey> = gone.conversations.iter().collect();
        let is_gone = |key: &MailboxKey| key.conversation().is_some_and(|key| conversations.contains(key));
        self.hot_mailboxes.retain(|key, _| !is_gone(key));
        gone.mailboxes.iter().for_each(|key| drop(self.hot_mailboxes.remove(key)));
        self.conversations.retain(|key, _| !conversations.contains(key));
        self.names.retain(|_, key| !is_gone(key));
    }

    /// Evicts everything about a person.
    pub(crate) fn evict_user(&mut self, user_id: &str) {
        self.dropped += 1;
        self.hot_mailboxes.retain(|key, _| &**key.owner() != user_id);
        self.people.remove(user_id);
        self.conversations.retain(|key, _| &*key.owner != user_id);
        self.names.retain(|_, key| &**key.owner() != user_id);
        self.preferences.remove(user_id);
        self.damage.forget(user_id);
    }
}

/// The row of an event that a detector made; its verdicts are added as they come.
fn detected_row(key: &MailboxKey, event: Arc<Event>, now: Time) -> EventRow {
    let packed = PackedEvent::of(&event);
    EventRow { event, packed, owner: key.owner().clone(), accepted_at: now, filtered: 0, verdicts: Arc::default() }
}

/// The result of draining one mailbox's effects.
#[derive(Default)]
struct DrainedEffects {
    verdicts: Vec<Decision>,
    filtered: u32,
    /// Whether the mailbox may still show the event, so that the event must stay in memory.
    to_show: bool,
    answer: Option<Injection>,
    /// The completed notifications of a person's mailbox.
    ready: Vec<ReadyMessage>,
}

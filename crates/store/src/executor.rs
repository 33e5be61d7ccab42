//! Where mailboxes are handled: loads what a command needs, lets the core decide, and gathers what must be written.
//!
//! It knows nothing of databases. A backend gives it rows and takes its [`Changes`]; whether those are then committed
//! decides what anybody is told. Mailboxes stay hot here within a bound; a failed commit evicts all it touched, because
//! memory must never know more than the disk.

mod bound;
mod conversation;
mod event_cache;
mod hot_mailbox;
mod idempotency;
mod inbox;
mod outbox;
mod outcome;
mod people;
mod preferences;
mod publish;
mod remind;
mod staged;
mod take;

pub(crate) use conversation::pick_unambiguous;
use hot_mailbox::HotMailbox;
pub(crate) use people::PeopleRowSource;
pub(crate) use publish::Publishing;
use staged::Staged;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::future::Future;
use std::sync::Arc;

use bellwire_core::notification::{EndReason, NotificationKind};
use bellwire_core::person::{PersonMessage, words};
use bellwire_core::subscriber::{Preferences, Subscribers};
use bellwire_core::{
    Effect, Event, EventId, Ids, Injection, Input, Mailbox, MailboxContext, NotificationId, Randomness, Time,
};

use crate::command::{Hint, IdempotencyKey, Token};
use crate::damage::{Damage, Found};
use crate::erasing::Erasing;
use crate::error::{ErrorKind, StoreError};
use crate::keys::KeyedMap;
use crate::packed_event::PackedEvent;
use crate::people::{Delivery, PeopleRules};
use crate::rows::{
    ClientEventIdRow, ConversationKey, ConversationRow, EventRow, IdempotencyRow, InjectionRow, MailboxKey,
    NotificationRow, SupersededRow,
};
use crate::verdicts::Decision;
use crate::writer::Pruned;

/// A conversation is open for a day after it was last seen.
const OPEN_MS: u64 = 24 * 60 * 60 * 1000;
/// How many events are read by one query.
const EVENTS_AT_ONCE: usize = 500;
/// How many open conversations one event for a person reaches.
pub(crate) const OPEN_MAX: usize = 100;

/// A conversation that was seen since then is open.
pub(crate) fn open_since(now: Time) -> Time {
    now.minus(OPEN_MS)
}

/// Where rows come from.
pub(crate) trait RowSource: PeopleRowSource {
    /// Whether as many rows were read as the command being decided may read in one step.
    fn is_spent(&self) -> bool {
        false
    }
    fn conversation(
        &mut self,
        key: &ConversationKey,
    ) -> impl Future<Output = Result<Option<ConversationRow>, StoreError>> + Send;
    /// Conversations of this id, whoever's they are, the registered one first; at most two.
    fn conversations_named(
        &mut self,
        id: &str,
    ) -> impl Future<Output = Result<Vec<ConversationRow>, StoreError>> + Send;
    /// The person's conversations that were seen since then, the latest first, at most `limit`.
    fn open_conversations(
        &mut self,
        user_id: &str,
        since: Time,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Arc<str>>, StoreError>> + Send;
    fn mailbox(&mut self, key: &MailboxKey) -> impl Future<Output = Result<Option<LoadedMailbox>, StoreError>> + Send;
    /// What a view shows of a mailbox, from its own row alone.
    fn mailbox_summary(
        &mut self,
        key: &MailboxKey,
        now: Time,
    ) -> impl Future<Output = Result<Option<MailboxSummary>, StoreError>> + Send;
    /// Agents of a conversation, besides its own, in whose mailbox something waits; at most `limit`.
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
    /// What a call was answered under this name, however long ago.
    fn once(
        &mut self,
        once: &IdempotencyKey,
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
    /// The mailboxes that are due by now, oldest first, without those that are known to be damaged.
    fn due(
        &mut self,
        now: Time,
        limit: usize,
        damaged: &HashSet<MailboxKey>,
    ) -> impl Future<Output = Result<Found<MailboxKey>, StoreError>> + Send;
    /// When the next mailbox or reminder is due after this time, or earlier than that; `NEVER` if none is.
    fn next_due(&mut self, after: Time) -> impl Future<Output = Result<Time, StoreError>> + Send;
    /// When the next waiting delivery is due, or the next lease ends, after this time; `NEVER` if none does.
    fn next_delivery(&mut self, after: Time) -> impl Future<Output = Result<Time, StoreError>> + Send;
}

/// A mailbox and what waits in it, without the events those refer to.
pub(crate) struct LoadedMailbox {
    pub(crate) mailbox: Mailbox,
    /// It was saved by a version whose secrets can be guessed from ids.
    pub(crate) has_guessable_secret: bool,
    /// How many bytes it had.
    pub(crate) saved: usize,
}

impl LoadedMailbox {
    /// How many rows it was loaded from.
    pub(crate) fn rows(&self) -> usize {
        1 + self.mailbox.pending().len()
    }
}

/// A mailbox without the notifications that wait in it.
#[derive(Copy, Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct MailboxSummary {
    /// Whether its agent is working.
    pub(crate) working: bool,
    /// How many notifications wait in it.
    pub(crate) pending: usize,
}

/// The hot state, and the context with which mailboxes handle inputs.
pub(crate) struct Executor {
    context: MailboxContext,
    /// Where secrets come from.
    randomness: Randomness,
    conversations: HashMap<ConversationKey, conversation::HotConversation>,
    /// What an id alone means to callers who may speak for everyone: the mailbox of that conversation's own agent.
    names: HashMap<Arc<str>, MailboxKey>,
    hot_mailboxes: KeyedMap<MailboxKey, HotMailbox>,
    preferences: HashMap<Arc<str>, Arc<Preferences>>,
    people: HashMap<Arc<str>, people::Person>,
    rules: PeopleRules,
    /// What detectors found, for the person's own mailbox to decide on.
    detected_events: Vec<(Arc<str>, Arc<Event>, PackedEvent)>,
    /// What timers and deliveries came across that cannot be read.
    pub(crate) damage: Damage,
    /// Mailboxes and people among it: their timers do not fire, and nothing is sent to them, until the store is opened
    /// again.
    damaged_mailboxes: HashSet<MailboxKey>,
    damaged_people: BTreeSet<String>,
    uses: u64,
    /// Bytes that came in or were loaded since the mailboxes were weighed.
    unweighed: usize,
    /// The most bytes that mailboxes take in memory, about.
    cache_bytes: usize,
    /// What the commands of the group have changed so far.
    pub(crate) changes: Staged,
    /// Whether the command being decided stopped because it has read enough for one step.
    unfinished: bool,
    /// Whether some command waits for its next step: what it loaded must stay in memory.
    pub(crate) keeps_all: bool,
    /// How often staged changes or a person's rows were dropped: what was found out before may not hold any more.
    dropped: u64,
    /// The calls that are committed in part. A repeat of one waits for it.
    in_parts: HashSet<[String; 3]>,
    /// The people who are being erased: nothing is done for them.
    pub(crate) erasing: Arc<Erasing>,
}

impl Executor {
    pub(crate) fn new(subscribers: Arc<Subscribers>, mut randomness: Randomness, rules: PeopleRules) -> Self {
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
            detected_events: Vec::new(),
            damage: Damage::default(),
            damaged_mailboxes: HashSet::new(),
            damaged_people: BTreeSet::new(),
            uses: 0,
            unweighed: 0,
            cache_bytes: crate::Sizes::default().mailbox_cache_bytes,
            changes: Staged::default(),
            unfinished: false,
            keeps_all: false,
            dropped: 0,
            in_parts: HashSet::new(),
            erasing: Arc::default(),
        }
    }

    pub(crate) fn set_subscribers(&mut self, subscribers: Arc<Subscribers>) {
        self.context.subscribers = subscribers;
        self.preferences.clear();
    }

    /// Everything must be committed at this time, which never runs backwards for a mailbox.
    pub(crate) fn set_now(&mut self, now: Time) {
        self.context.now = now;
    }

    /// The rows of what was touched, made once per commit.
    pub(crate) fn build_rows(&mut self) {
        self.changes.at = self.context.now;
        for key in std::mem::take(&mut self.changes.mailboxes) {
            let Some(hot_mailbox) = self.hot_mailboxes.get_mut(&key) else { continue };
            self.changes.waiting += hot_mailbox.waiting_change();
            let waiting = hot_mailbox.waiting_rows().map(|row| (row.notification.id, row));
            self.changes.notifications.extend(waiting);
            self.changes.mailbox_rows.push((key, hot_mailbox.build_rows()));
        }
    }

    /// The commit succeeded: the changes are history, the hints may go out.
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

    /// Drops what was staged: whatever it touched is evicted and will be loaded again.
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
        self.detected_events.clear();
        // A command that failed may have left effects behind that nobody asked for.
        while self.context.poll().is_some() {}
    }

    /// When the next hot mailbox has something to do by itself.
    pub(crate) fn next_due(&self) -> Time {
        let mailboxes = self.changes.mailbox_rows.iter().map(|(_, row)| row.due_at).min();
        mailboxes.unwrap_or(Time::NEVER).min(self.next_reminder())
    }

    /// When the next delivery of this commit is due, or its lease ends.
    pub(crate) fn next_delivery(&self) -> Time {
        let due = self.changes.people.deliveries.values().filter_map(Delivery::due_at).min();
        due.unwrap_or(Time::NEVER)
    }

    /// Lets time pass for at most `limit` mailboxes that are due, the oldest first, until so much work is done; true if
    /// there may be more. One that is damaged is left out, and the timers of all others fire.
    pub(crate) async fn tick(
        &mut self,
        limit: usize,
        work: usize,
        source: &mut impl RowSource,
    ) -> Result<bool, StoreError> {
        let due = source.due(self.context.now, limit, &self.damaged_mailboxes).await?;
        let due = self.damage.readable(due);
        let mut more = due.len() == limit;
        for key in due {
            if self.erasing.has(key.owner()) {
                continue;
            }
            if self.changes.work() >= work {
                more = true;
                break;
            }
            self.changes.begin();
            match self.let_time_pass(&key, source).await {
                Err(error) if error.kind == ErrorKind::Damaged => {
                    let (owner, conversation, agent) = key.columns();
                    let row = format!("mailboxes ({owner}, {conversation}, {agent})");
                    self.damage.note(owner, row, &error);
                    self.damaged_mailboxes.insert(key);
                    // What it changed before it failed must go. The next tick leaves it out from the beginning.
                    if self.changes.is_touched() {
                        return Err(error);
                    }
                }
                Err(_) if self.take_unfinished() => {
                    more = true;
                    break;
                }
                passed => passed?,
            }
        }
        // Telling a person may load all they were told within the hour.
        more |= self.send_due_reminders((limit / 8).max(1), source).await?;
        Ok(more)
    }

    async fn let_time_pass(&mut self, key: &MailboxKey, source: &mut impl RowSource) -> Result<(), StoreError> {
        self.load_mailbox(key, source).await?;
        if key.origin().is_some() {
            self.person(key.owner(), source).await?;
        }
        self.handle(key, Input::Time)?;
        let drained = self.drain(key);
        self.deliver_to_inbox(key, drained.ready, source).await
    }

    /// Whether a person can be read. Nothing is told or sent to one that cannot, and the others are not held up.
    async fn is_readable(&mut self, user_id: &str, source: &mut impl RowSource) -> Result<bool, StoreError> {
        match self.person(user_id, source).await {
            Err(error) if error.kind == ErrorKind::Damaged => {
                self.damage.note(user_id, format!("what is stored of the person {user_id}"), &error);
                self.damaged_people.insert(user_id.to_owned());
                Ok(false)
            }
            loaded => loaded.map(|_| true),
        }
    }

    /// A secret is shown once: the same call again is refused, because nobody can show it again.
    pub(crate) async fn put_token(
        &mut self,
        token: Token,
        once: Option<&IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        if let Some(id) = self.remembered_answer::<String>(once, source).await? {
            let message = format!("this call made token {id} before; its secret cannot be shown again");
            return Err(StoreError::new(ErrorKind::Conflict, message));
        }
        self.remember(once, &token.id, token.user_id.as_deref());
        self.changes.tokens.insert(token.id.clone(), token);
        Ok(())
    }

    /// Makes sure a mailbox is hot, and that the context has its person's preferences. Returns the hot mailbox's own key, which is
    /// found again by its address alone.
    async fn load_mailbox(&mut self, key: &MailboxKey, source: &mut impl RowSource) -> Result<MailboxKey, StoreError> {
        self.erasing.check(key.owner())?;
        self.context.preferences = self.preferences_of(key.owner(), source).await?;
        self.uses += 1;
        if let Some(hot_mailbox) = self.hot_mailboxes.get_mut(key) {
            hot_mailbox.used = self.uses;
            let key = hot_mailbox.key.clone();
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
        self.load_persons_events(key, source).await?;
        Ok(key.clone())
    }

    /// Whatever a person's mailbox closes is put into words at once, so its events are needed; it holds few.
    async fn load_persons_events(&mut self, key: &MailboxKey, source: &mut impl RowSource) -> Result<(), StoreError> {
        match key.origin().is_some() {
            true => self.load_events(key, source).await,
            false => Ok(()),
        }
    }

    /// Loads the events that a mailbox may have to show and that are not in memory.
    async fn load_events(&mut self, key: &MailboxKey, source: &mut impl RowSource) -> Result<(), StoreError> {
        let hot_mailbox = self.hot_mailboxes.get(key).expect("a mailbox is entered before its events are loaded");
        let wanted = hot_mailbox.unloaded_events();
        self.load(key, &wanted, source).await
    }

    /// Loads these events of a mailbox, in portions that fit into a step.
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
            let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("it was entered before");
            hot_mailbox.loaded(ids, found);
        }
        Ok(())
    }

    /// Stops a command that has read as much as one step may. What it loaded stays in memory; it is decided again in a
    /// later step, which then reads the rest.
    fn check_budget(&mut self, source: &impl RowSource) -> Result<(), StoreError> {
        if !source.is_spent() {
            return Ok(());
        }
        self.unfinished = true;
        Err(StoreError::new(ErrorKind::Retry, "the command needs another step"))
    }

    /// Whether the command that was decided last needs another step.
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
        // A subscriber that is gone or became core meanwhile is simply not switched off.
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
        let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("a mailbox is entered before it is handled");
        hot_mailbox.change(&mut self.changes);
        self.changes.handled += 1;
        let handled = hot_mailbox.mailbox.handle(input, &mut self.context);
        handled.map_err(|refused| StoreError::new(ErrorKind::Full, refused.to_string()))
    }

    /// Turns effects into rows and hints.
    fn drain(&mut self, key: &MailboxKey) -> DrainedEffects {
        let now = self.context.now;
        let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("a mailbox is entered before it is drained");
        let (mut drained, mut moved, mut wake) = (DrainedEffects::default(), false, Vec::new());
        let mut detected: Vec<EventRow> = Vec::new();
        while let Some(effect) = self.context.poll() {
            match effect {
                Effect::Verdict { event, subscriber, verdict } => {
                    let decision = Decision::new(&subscriber, key, &verdict);
                    match detected.iter_mut().find(|row| row.event.id() == event) {
                        Some(row) => Arc::make_mut(&mut row.verdicts).extend([decision]),
                        None => {
                            drained.to_show |= decision.is_told();
                            drained.verdicts.push(decision);
                        }
                    }
                }
                Effect::Decided { event, unmatched } => match detected.iter_mut().find(|row| row.event.id() == event) {
                    Some(row) => row.filtered = unmatched,
                    None => drained.filtered = unmatched,
                },
                Effect::Detected(event) => {
                    let packed = PackedEvent::of(&event);
                    let owner = key.owner().clone();
                    self.detected_events.push((owner.clone(), event.clone(), packed.clone()));
                    detected.push(EventRow {
                        event,
                        packed,
                        owner,
                        accepted_at: now,
                        filtered: 0,
                        verdicts: Arc::default(),
                    });
                }
                Effect::Superseded { event, subscriber, by } => {
                    let subscriber = subscriber.to_string();
                    self.changes.superseded.push(SupersededRow { event_id: event, subscriber, by, at: now });
                }
                Effect::Ready(notification) => {
                    let words = words(&notification, &self.context.subscribers, &hot_mailbox.event_cache);
                    drained.ready.push((notification.id, words));
                    // It waited as a row of its own while it was counted; now the inbox has it.
                    if matches!(notification.kind, NotificationKind::LeftOut(_)) {
                        self.changes.end(NotificationRow::ended(key, *notification, EndReason::Injected, now));
                    }
                }
                Effect::Waiting(id) => {
                    hot_mailbox.wait(id);
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
            hot_mailbox.keep(row.event.id(), &row.packed, row.verdicts.iter().any(Decision::is_told));
        }
        self.changes.events.extend(detected);
        // Only what begins or ends to wait changes what a stream is told; most events do neither.
        if moved {
            hot_mailbox.hint(wake);
        }
        drained
    }

    /// Drops conversations and mailboxes that were deleted from memory.
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

    /// Drops everything about a person from memory.
    pub(crate) fn evict_user(&mut self, user_id: &str) {
        self.dropped += 1;
        self.hot_mailboxes.retain(|key, _| &**key.owner() != user_id);
        self.people.remove(user_id);
        self.conversations.retain(|key, _| &*key.owner != user_id);
        self.names.retain(|_, key| &**key.owner() != user_id);
        self.preferences.remove(user_id);
        self.damaged_mailboxes.retain(|key| &**key.owner() != user_id);
        self.damaged_people.remove(user_id);
        self.damage.forget(user_id);
    }
}

/// What one mailbox's effects came to.
#[derive(Default)]
struct DrainedEffects {
    verdicts: Vec<Decision>,
    filtered: u32,
    /// Whether the mailbox may still have to show the event.
    to_show: bool,
    answer: Option<Injection>,
    /// What a person's mailbox is done with.
    ready: Vec<(NotificationId, PersonMessage)>,
}

//! The notifications of one agent or one person: a state machine that the driver loads, feeds, drains and saves.
//!
//! [`Mailbox::handle`] takes an input; [`MailboxContext::poll`] returns the resulting [`Effect`]s;
//! [`Mailbox::wakes_at`] returns the time of the next timer. A mailbox has no I/O, no clock and no randomness:
//! everything besides its own state comes from its [`MailboxContext`].
//!
//! A mailbox holds ids, counters and hashes, never texts. Events and pending notifications are rows of their own;
//! [`Mailbox::save`] returns the rest as one blob of at most [`BLOB_MAX`] bytes.

mod batch;
mod dedupe;
mod inject;
mod presence;
mod queue;
mod remeasure;
mod requeue;
mod saved;
mod set_back;
mod storm;

pub use inject::{EventLookup, InjectInput};
pub use queue::PENDING_MAX;
pub use saved::{BLOB_MAX, LoadError};

use std::collections::VecDeque;
use std::fmt;
use std::hash::Hasher as _;
use std::sync::Arc;

use siphasher::sip128::Hasher128 as _;
use siphasher::sip128::SipHasher13;

use crate::detect::{Detection, Detectors};
use crate::event::{Event, EventCause, HashKey};
use crate::inject::Injection;
use crate::notification::{EndReason, EventRef, Notification};
use crate::subscriber::{Preferences, Subscriber, SubscriberId, SubscriberState, Subscribers, write_text};
use crate::verdict::{Filter, Verdict};
use crate::{EventId, Ids, NotificationId, Priority, Time};

use batch::{Batch, Batches};
use dedupe::{Dedupe, Window};
use presence::Presence;
use storm::{Pressure, Storm};

/// The notifications of one agent in one conversation, or of one person.
///
/// # The drain rule
///
/// Handle one input, poll the context until it is empty, then write the effects and the mailbox in one transaction.
/// Send no response before the transaction has committed. If it fails, discard the mailbox and load it again. Then wait
/// until [`Mailbox::wakes_at`] or the next input.
///
/// ```
/// use bellwire_core::{MailboxContext, Effect, Event, Ids, Input, MailboxKind, Mailbox, Severity, Subscribers, Time};
/// use serde_json::json;
///
/// let mut context = MailboxContext::new(Subscribers::bundled().into(), Ids::seeded(1));
/// let mut mailbox = Mailbox::new(MailboxKind::MainAgent, [0; 16]);
///
/// context.now = Time::from_millis(1_000_000);
/// let event = Event::new("tool.call.failure", "tool_executor", Severity::Error, json!({"tool_name": "grep"}))?;
/// mailbox.handle(Input::Event(&event), &mut context)?;
/// while let Some(effect) = context.poll() {
///     if let Effect::Verdict { verdict, .. } = effect {
///         assert_eq!(verdict.name(), "held");
///     }
/// }
/// assert_eq!(mailbox.wakes_at(), Time::from_millis(1_002_000));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug, PartialEq)]
pub struct Mailbox {
    kind: MailboxKind,
    secret: HashKey,
    /// The latest time at which the mailbox was handled. It never decreases, except by [`Mailbox::set_back`].
    now: Time,
    /// A lower bound for the next timer. A value that is too early costs a check; one that is too late misses a
    /// deadline.
    next_timer: Time,
    sequence: u64,
    batches: Batches,
    dedupe: Dedupe,
    storm: Storm,
    detectors: Option<Box<Detectors>>,
    presence: Presence,
    pending: Vec<Notification>,
}

/// Whose notifications a mailbox holds.
#[derive(Copy, Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum MailboxKind {
    /// The conversation's main agent. Its notifications can wake the conversation.
    MainAgent,
    /// A sub-agent, run by another agent: it takes notifications at its own injection points and is never woken.
    SubAgent,
    /// A person. Batches close only when their window ends, and a closed batch is delivered at once.
    Person,
}

/// An input of a mailbox.
#[derive(Debug)]
pub enum Input<'a> {
    /// Time has passed; the mailbox handles the timers that are due.
    Time,
    /// An event arrived.
    Event(&'a Event),
    /// Notifications of earlier injections that the model never saw: they become pending again and keep their age. The
    /// injection that reports them follows, in the same transaction or in a later one. If they come in several inputs,
    /// those of the newest injection come first.
    Return(Vec<Notification>),
    /// An agent reached an injection point and takes its notifications.
    Inject(InjectInput<'a>),
}

/// An effect of an input. The driver may act on none of them before all are committed.
#[derive(Debug)]
pub enum Effect {
    /// The decision for one event and one subscriber.
    Verdict {
        /// The event.
        event: EventId,
        /// The subscriber that listens for its type.
        subscriber: SubscriberId,
        /// The decision.
        verdict: Verdict,
        /// What its sender should know, such as that no field of the payload is shown.
        hint: Option<Arc<str>>,
    },
    /// Every verdict of this event has been emitted; `unmatched` subscribers do not listen for its type.
    Decided {
        /// The event.
        event: EventId,
        /// How many subscribers do not listen for its type.
        unmatched: u32,
    },
    /// A detector created an event. Its verdicts follow.
    Detected(Arc<Event>),
    /// A detector measured a budget again, and this event replaces the older measurement that waits. Its verdicts
    /// follow. People are not notified of it.
    Remeasured(Arc<Event>),
    /// A newer event replaced this one.
    Superseded {
        /// The replaced event.
        event: EventId,
        /// The subscriber that no longer shows it; other subscribers still may.
        subscriber: SubscriberId,
        /// The newer event, shown instead.
        by: EventId,
    },
    /// A notification became pending, or a pending one changed: write its row.
    Waiting(NotificationId),
    /// A notification is no longer pending; this is its final state.
    Ended(Box<Notification>, EndReason),
    /// A person's notification is complete: put it into the inbox and deliver it.
    Ready(Box<Notification>),
    /// The conversation is idle, and these notifications should wake it.
    Wake(Vec<NotificationId>),
    /// The response to an injection request.
    Injection(Box<Injection>),
}

/// What a mailbox needs to handle an input: time, subscribers, preferences and ids; and the queue of effects.
#[derive(Debug)]
pub struct MailboxContext {
    /// The database's time, read after the mailbox was locked.
    pub now: Time,
    /// The subscribers that are loaded.
    pub subscribers: Arc<Subscribers>,
    /// Which subscribers the mailbox's person has switched off.
    pub preferences: Arc<Preferences>,
    /// Generates the ids of new events and notifications.
    pub ids: Ids,
    out: VecDeque<Effect>,
}

impl MailboxContext {
    /// A context at time zero, with no subscriber switched off.
    pub fn new(subscribers: Arc<Subscribers>, ids: Ids) -> Self {
        Self { now: Time::ZERO, subscribers, preferences: Arc::default(), ids, out: VecDeque::new() }
    }

    /// Removes and returns the next effect, in the order of emission.
    pub fn poll(&mut self) -> Option<Effect> {
        self.out.pop_front()
    }

    pub(crate) fn emit(&mut self, effect: Effect) {
        self.out.push_back(effect);
    }
}

/// Why a mailbox refused an input. The mailbox is unchanged then.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum MailboxError {
    /// The queue is full of the person's own messages, which are never dropped; the sender must try again later.
    FullOfMessages,
}

impl fmt::Display for MailboxError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PENDING_MAX} messages of the person wait already; send again when the agent has read some")
    }
}

impl std::error::Error for MailboxError {}

impl Mailbox {
    /// An empty mailbox. The secret keys its hashes, so that a sender cannot construct two events whose keys collide.
    pub fn new(kind: MailboxKind, secret: HashKey) -> Self {
        Self {
            kind,
            secret,
            now: Time::ZERO,
            next_timer: Time::NEVER,
            sequence: 0,
            batches: Batches::default(),
            dedupe: Dedupe::default(),
            storm: Storm::default(),
            detectors: None,
            presence: Presence::default(),
            pending: Vec::new(),
        }
    }

    /// Fires the timers that are due, then handles the input. See the drain rule above.
    pub fn handle(&mut self, input: Input<'_>, context: &mut MailboxContext) -> Result<(), MailboxError> {
        if let Input::Event(event) = &input
            && event.cause() == EventCause::Person
            && self.is_full_of_messages(event, context)
        {
            return Err(MailboxError::FullOfMessages);
        }
        self.now = self.now.max(context.now);
        if self.next_timer <= self.now {
            self.fire_timers(context);
        }
        match input {
            Input::Time => {}
            Input::Event(event) => self.publish(event, context),
            // The injection that follows takes these notifications, so none of them wakes the conversation.
            Input::Return(returned) => {
                self.requeue_unseen(returned, context);
                return Ok(());
            }
            Input::Inject(inject) => self.inject(inject, context),
        }
        self.enforce_bounds(context);
        self.emit_wakes(context);
        Ok(())
    }

    /// When the next timer is due; [`Time::NEVER`] without one.
    pub fn wakes_at(&self) -> Time {
        let timers = [self.batches.next_due(), self.next_expiry(), self.dedupe.next_close(), self.next_wake_at()];
        timers.into_iter().min().unwrap_or(Time::NEVER)
    }

    /// The number of batches, repeat windows and notifications whose timer is due. Every input handles them first, so a
    /// driver that feeds many mailboxes in one transaction can tell how much it will write.
    pub fn timers_due(&self, now: Time) -> usize {
        let now = self.now.max(now);
        if self.next_timer > now {
            return 0;
        }
        let batches = self.batches.0.iter().filter(|batch| batch.due <= now).count();
        let windows = self.dedupe.unreported().filter(|window| window.closes <= now).count();
        batches + windows + self.pending.iter().filter(|notification| notification.expires <= now).count()
    }

    /// The pending notifications, ordered by `sequence` (the order in which they were opened).
    pub fn pending(&self) -> &[Notification] {
        &self.pending
    }

    /// The pending notification with this id.
    pub fn find(&self, id: NotificationId) -> Option<&Notification> {
        self.pending.iter().find(|notification| notification.id == id)
    }

    /// Whether the agent is working, judged by its injection points and turn events.
    pub fn is_working(&self, now: Time) -> bool {
        self.presence.is_working(now.max(self.now))
    }

    /// When the agent becomes idle if it sends nothing more; `None` if it is idle at `now`.
    pub fn works_until(&self, now: Time) -> Option<Time> {
        self.is_working(now).then(|| self.presence.idle_at())
    }

    /// The pending notifications that should wake the conversation. A stream sends them when a client connects.
    pub fn waiting_wakes(&self, now: Time) -> Vec<NotificationId> {
        if self.kind != MailboxKind::MainAgent || self.is_working(now) {
            return Vec::new();
        }
        let announced = self.pending.iter().filter(|notification| notification.wakes && notification.announced);
        announced.map(|notification| notification.id).collect()
    }

    /// Every event that the mailbox may still show. The store must not delete these rows.
    pub fn references(&self) -> impl Iterator<Item = EventId> {
        let held = self.batches.0.iter().map(|batch| &batch.notification);
        let waiting = held.chain(&self.pending).flat_map(|notification| notification.events.iter());
        let counted = self.dedupe.open_windows(self.now).map(|window| window.of);
        waiting.map(|entry| entry.event).chain(counted)
    }

    /// The events that the next input may render: those of held and pending notifications, and those with repeats not
    /// reported yet. A subset of [`Mailbox::references`].
    pub fn events_to_show(&self) -> impl Iterator<Item = EventId> {
        let held = self.batches.0.iter().map(|batch| &batch.notification);
        let waiting = held.chain(&self.pending).flat_map(|notification| notification.events.iter());
        waiting.map(|entry| entry.event).chain(self.dedupe.unreported().map(|window| window.of))
    }

    /// Whether no notification is held or pending and no window is open.
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty() && self.references().next().is_none()
    }

    /// Frees the memory of windows that have ended. Behaviour and saved bytes stay the same.
    pub fn compact(&mut self) {
        self.dedupe.compact(self.now);
        self.storm.compact(self.now);
        self.presence.compact(self.now);
        self.detectors.take_if(|detectors| detectors.compact(self.now));
        self.batches.0.shrink_to_fit();
        self.pending.shrink_to_fit();
    }

    /// Lets every listening subscriber decide, in id order; then the detectors observe the event.
    fn publish(&mut self, event: &Event, context: &mut MailboxContext) {
        self.decide_all(event, context);
        self.note_presence(event);
        for detection in self.detect(event) {
            match detection {
                Detection::News(detected) => {
                    let detected = self.named(detected, event, context);
                    context.emit(Effect::Detected(detected.clone()));
                    self.decide_all(&detected, context);
                }
                Detection::Measurement(measured) => self.remeasure(measured, event, context),
            }
        }
    }

    fn named(&self, detected: Event, observed: &Event, context: &mut MailboxContext) -> Arc<Event> {
        Arc::new(detected.with_id(context.ids.event(self.now)).at(self.now).addressed_like(observed))
    }

    fn decide_all(&mut self, event: &Event, context: &mut MailboxContext) {
        let subscribers = context.subscribers.clone();
        let person = self.kind == MailboxKind::Person;
        let (mut listening, mut pressure, mut suppressed) = (0, None, false);
        for subscriber in subscribers.listening(event.kind()) {
            listening += 1;
            if !subscriber.output.audience.includes(person) {
                continue;
            }
            let verdict = self.decide(subscriber, event, &mut pressure, context);
            suppressed |= verdict == Verdict::Suppressed;
            let is_accepted = verdict.notification().is_some();
            let hint = is_accepted.then(|| subscriber.field_hints.of(event.payload(), person)).flatten();
            context.emit(Effect::Verdict { event: event.id(), subscriber: subscriber.id.clone(), verdict, hint });
        }
        if suppressed {
            self.count_storm(event, context);
        }
        let unmatched = (subscribers.len() - listening) as u32;
        context.emit(Effect::Decided { event: event.id(), unmatched });
    }

    /// The stages, in order: filter, storm, dedupe, replace, batch, queue. Each returns a verdict or passes the event
    /// on.
    fn decide(
        &mut self,
        subscriber: &Subscriber,
        event: &Event,
        pressure: &mut Option<Pressure>,
        context: &mut MailboxContext,
    ) -> Verdict {
        if let Some(filter) = filter_reason(subscriber, event, &context.preferences) {
            return Verdict::Filtered(filter);
        }
        let pressure = *pressure.get_or_insert_with(|| self.pressure(event, context));
        if pressure.refuses(subscriber.output.priority == Priority::Critical) {
            return Verdict::Suppressed;
        }
        let key = self.dedupe_key(subscriber, event);
        if let Some(window) = key.and_then(|key| self.dedupe.count(key, self.now)) {
            let (of, repeats, closes) = (window.of, window.repeats, window.closes);
            self.next_timer = self.next_timer.min(closes);
            return Verdict::Duplicate { of, repeats };
        }
        self.place(key, subscriber, event, context)
    }

    /// Accepts the event: opens its dedupe window, then replaces an older event or joins a batch.
    fn place(
        &mut self,
        key: Option<u128>,
        subscriber: &Subscriber,
        event: &Event,
        context: &mut MailboxContext,
    ) -> Verdict {
        if let Some(key) = key {
            self.open_window(key, subscriber, event, context);
        }
        let entry = EventRef { event: event.id(), replace: self.replace_key(subscriber, event), merged: 0 };
        if let Some(notification) = self.replace_in_queue(entry, subscriber, event, context) {
            return Verdict::Queued { notification };
        }
        self.batch(entry, subscriber, event, context)
    }

    /// Adds the event to the subscriber's open batch or opens one. A batch that is full or need not wait goes to the
    /// queue.
    fn batch(
        &mut self,
        entry: EventRef,
        subscriber: &Subscriber,
        event: &Event,
        context: &mut MailboxContext,
    ) -> Verdict {
        let point = subscriber.point_for(event);
        let at = self.batches.find(subscriber, point).unwrap_or_else(|| {
            self.sequence += 1;
            self.batches.0.push(Batch::open(subscriber, event, self.sequence, context, self.now));
            self.batches.0.len() - 1
        });
        let batch = &mut self.batches.0[at];
        let (notification, until) = (batch.notification.id, batch.due);
        if let Some(older) = batch.take(entry, subscriber, event) {
            self.supersede(older, subscriber, event, context);
        }
        let waits = subscriber.batching.window_ms > 0 && subscriber.output.priority != Priority::Critical;
        if waits && !self.batches.0[at].is_full() {
            self.next_timer = self.next_timer.min(until);
            return Verdict::Held { notification, until };
        }
        let closed = self.batches.0.remove(at).close(self.now);
        self.queue(closed, context);
        Verdict::Queued { notification }
    }

    fn supersede(&mut self, older: EventRef, subscriber: &Subscriber, event: &Event, context: &mut MailboxContext) {
        self.dedupe.forget(older.event, subscriber.key);
        let subscriber = subscriber.id.clone();
        context.emit(Effect::Superseded { event: older.event, subscriber, by: event.id() });
    }

    fn open_window(&mut self, key: u128, subscriber: &Subscriber, event: &Event, context: &mut MailboxContext) {
        let closes = self.now.plus(subscriber.batching.dedupe_window_ms);
        let window = Window { key, of: event.id(), subscriber: subscriber.key, closes, repeats: 0, reported: 0 };
        for closed in self.dedupe.open(window, self.now) {
            self.report_repeats(closed, context);
        }
    }

    /// The key under which the subscriber counts the event as a repeat; `None` without deduplication.
    fn dedupe_key(&self, subscriber: &Subscriber, event: &Event) -> Option<u128> {
        if subscriber.batching.dedupe_window_ms == 0 {
            return None;
        }
        let mut hasher = self.hasher(subscriber);
        if subscriber.output.replace_key.is_some() {
            hasher.write(&event.payload().fingerprint(&self.secret).to_le_bytes());
        }
        match (event.dedupe_key(), &subscriber.batching.dedupe_key) {
            (Some(own), _) => {
                write_text(&mut hasher, own);
                Some(hasher.finish128().as_u128())
            }
            (None, Some(pattern)) => pattern.hash(hasher, event, &self.secret),
            (None, None) => {
                write_text(&mut hasher, event.kind().as_str());
                write_text(&mut hasher, event.source().as_str());
                hasher.write(&event.payload().fingerprint(&self.secret).to_le_bytes());
                Some(hasher.finish128().as_u128())
            }
        }
    }

    /// The key by which a newer event replaces this one; 0 if it is never replaced.
    fn replace_key(&self, subscriber: &Subscriber, event: &Event) -> u128 {
        let pattern = subscriber.output.replace_key.as_ref();
        pattern.and_then(|pattern| pattern.hash(self.hasher(subscriber), event, &self.secret)).unwrap_or(0)
    }

    fn hasher(&self, subscriber: &Subscriber) -> SipHasher13 {
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        hasher.write(&subscriber.key.0.to_le_bytes());
        hasher
    }

    /// Counts the event against its source's rate. The person's own messages are never suppressed. An event that is
    /// critical for any subscriber draws on a second allowance.
    fn pressure(&mut self, event: &Event, context: &MailboxContext) -> Pressure {
        if event.cause() == EventCause::Person {
            return Pressure::Calm;
        }
        let person = self.kind == MailboxKind::Person;
        let critical = context.subscribers.listening(event.kind()).any(|subscriber| {
            subscriber.output.priority == Priority::Critical
                && subscriber.output.audience.includes(person)
                && filter_reason(subscriber, event, &context.preferences).is_none()
        });
        let mut hasher = SipHasher13::new_with_key(&self.secret);
        hasher.write(event.source().as_str().as_bytes());
        self.storm.count(hasher.finish(), self.now, critical)
    }

    fn note_presence(&mut self, event: &Event) {
        match event.kind().as_str() {
            "agent.turn.start" => self.presence.mark_working(self.now),
            "agent.turn.end" => self.presence.mark_idle(),
            _ => return,
        }
        self.next_timer = self.next_timer.min(self.next_wake_at());
    }

    fn detect(&mut self, event: &Event) -> Vec<Detection> {
        if self.kind == MailboxKind::Person || !Detectors::is_relevant(event) {
            return Vec::new();
        }
        let measure = self.holds_replaceable();
        self.detectors.get_or_insert_default().observe(event, measure, self.now, &self.secret)
    }

    /// Handles every timer that is due. Their order does not matter: [`Mailbox::eligible`] sorts the queue when it is
    /// read.
    fn fire_timers(&mut self, context: &mut MailboxContext) {
        let now = self.now;
        for closed in self.batches.close(now, |batch| batch.due <= now) {
            self.queue(closed, context);
        }
        for window in self.dedupe.take_closed_unreported(now) {
            self.report_repeats(window, context);
        }
        self.expire(context);
        self.next_timer = self.wakes_at();
    }

    /// Closes batches early and folds notifications until the mailbox is within its bounds.
    fn enforce_bounds(&mut self, context: &mut MailboxContext) {
        while let Some(id) = self.batches.beyond_bounds() {
            for closed in self.batches.close(self.now, |batch| batch.notification.id == id) {
                self.queue(closed, context);
            }
        }
        self.fold_beyond_bound(context);
    }

    /// Announces waking notifications to an idle conversation: each once, and at most six wakes an hour.
    fn emit_wakes(&mut self, context: &mut MailboxContext) {
        if !self.pending.iter().any(is_unannounced) || self.kind != MailboxKind::MainAgent || self.is_working(self.now)
        {
            return;
        }
        // The person's own messages always wake and do not count against the limit.
        let by_person =
            self.pending.iter().any(|notification| is_unannounced(notification) && notification.from_person);
        if !by_person && let Err(free) = self.presence.spend_wake(self.now) {
            self.next_timer = self.next_timer.min(free);
            return;
        }
        let mut announced = Vec::new();
        for notification in self.pending.iter_mut().filter(|notification| is_unannounced(notification)) {
            notification.announced = true;
            context.emit(Effect::Waiting(notification.id));
            announced.push(notification.id);
        }
        context.emit(Effect::Wake(announced));
    }

    /// When the next unannounced waking notification may be announced.
    fn next_wake_at(&self) -> Time {
        match self.pending.iter().any(is_unannounced) && self.kind == MailboxKind::MainAgent {
            true if self.is_working(self.now) => self.presence.idle_at(),
            true => self.presence.next_wake(self.now),
            false => Time::NEVER,
        }
    }
}

fn is_unannounced(notification: &Notification) -> bool {
    notification.wakes && !notification.announced
}

/// Why a subscriber that listens for the event's type ignores this event; `None` if it accepts it.
fn filter_reason(subscriber: &Subscriber, event: &Event, preferences: &Preferences) -> Option<Filter> {
    if event.severity() < subscriber.severity_filter {
        return Some(Filter::Severity { wanted: subscriber.severity_filter, given: event.severity() });
    }
    if subscriber.sources.as_ref().is_some_and(|sources| !sources.contains(event.source())) {
        return Some(Filter::Source);
    }
    if subscriber.repeats_tool_results() && event.is_seen_by_agent() {
        return Some(Filter::AgentSawIt);
    }
    (preferences.state_of(subscriber) == SubscriberState::Disabled).then_some(Filter::Disabled)
}

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bellwire_core::Input;
use bellwire_core::event::{AgentName, Event};
use serde::{Deserialize, Serialize};

use super::{Executor, OPEN_MAX, RowSource, open_since};
use crate::command::{Caller, ClientEventId, IdempotencyKey, IncomingEvent, Publish, Receipt};
use crate::error::{ErrorKind, StoreError};
use crate::keys::KeyedMap;
use crate::rows::{ClientEventIdRow, ConversationKey, EventRow, MailboxKey};
use crate::verdicts::{Decision, Verdicts};

/// The maximum number of mailboxes that the events of one call reach together.
const REACHED_MAX: usize = 5_000;
/// After this much work, a part of a call is committed and other commands get their turn.
const PART_WORK: usize = 2_000;
/// If more timers are due in the mailboxes that a call reaches, they are handled before its events.
const OVERDUE_MAX: usize = 500;

/// A publish call and its progress.
pub(crate) struct Publishing {
    pub(crate) publish: Publish,
    /// The committed part.
    committed: PublishPart,
    /// The committed part plus the events of the current step.
    part: PublishPart,
    /// The plans of the uncommitted events that were prepared so far.
    plans: Vec<EventPlan>,
    /// The value of [`Executor::dropped`] when the plans were made.
    planned_at: u64,
    /// Whether its idempotency key is in [`Executor::in_parts`], so that repeats wait for it.
    holds_key: bool,
}

/// The receipts of the first events of a call, and the owners of these events.
#[derive(Clone, Default, Serialize, Deserialize)]
struct PublishPart {
    receipts: Vec<Receipt>,
    people: BTreeSet<String>,
}

/// The stored value of a call's idempotency key: its answer, or its committed part.
#[derive(Deserialize)]
#[serde(untagged)]
enum Remembered {
    Answer(Vec<Receipt>),
    PublishPart(PublishPart),
}

impl Publishing {
    pub(crate) fn new(publish: Publish) -> Self {
        let (committed, part, plans) = (PublishPart::default(), PublishPart::default(), Vec::new());
        Self { publish, committed, part, plans, planned_at: 0, holds_key: false }
    }

    /// Continues after the part that was committed before the hub stopped or the call failed.
    fn resume(&mut self, committed: PublishPart) {
        self.part = committed.clone();
        self.committed = committed;
        self.plans.clear();
    }

    /// Adds to the error of a call how many of its events are stored, if a part of it is committed.
    pub(crate) fn explain(&self, error: StoreError) -> StoreError {
        let (stored, all) = (self.committed.receipts.len(), self.publish.events.len());
        if stored == 0 {
            return error;
        }
        let rest = match self.publish.idempotency_key {
            Some(_) => "send the call again under the same Idempotency-Key for the rest",
            None => "send only the others again",
        };
        let message = format!("{}; the first {stored} of {all} events are stored: {rest}", error.message);
        StoreError { message, ..error }
    }

    /// Whether it may do so much work that it should not share a commit with other commands.
    pub(crate) fn is_large(&self) -> bool {
        self.publish.events.len() > 100 || self.publish.events.iter().any(|one| one.event.conversation_id().is_none())
    }
}

fn key_columns(key: &IdempotencyKey) -> [String; 3] {
    [key.token_id.clone(), key.route.clone(), key.key.clone()]
}

/// The mailboxes that an event reaches, and their owner.
#[derive(Clone)]
pub(super) struct EventTargets {
    /// For an event to all open conversations of a person: the agent in each of them.
    all_of: Option<AgentName>,
    owner: Arc<str>,
    mailboxes: Vec<MailboxKey>,
    /// Set if the conversation does not exist yet.
    create: Option<NewConversation>,
    /// Whether a part of the event's call is committed. Then a full mailbox is recorded as a verdict and does not fail the
    /// call.
    is_begun: bool,
    /// Whether the person has more open conversations than one event reaches.
    too_many: bool,
}

/// A conversation to create with its first event.
#[derive(Copy, Clone)]
struct NewConversation {
    /// See [`ConversationRow::registered`](crate::rows::ConversationRow).
    registered: bool,
}

impl EventTargets {
    /// Whether these are the targets of events for this agent in all open conversations of this person.
    fn is_for(&self, user: &str, agent: &AgentName) -> bool {
        &*self.owner == user && self.all_of.as_ref() == Some(agent)
    }

    /// The verdicts on an event for a person that reaches none or not all of their open conversations.
    fn filtered_verdicts(&self) -> Vec<Decision> {
        let mut verdicts = Vec::new();
        if self.mailboxes.is_empty() {
            verdicts.push(Decision::filtered("no_open_conversation".to_owned()));
        }
        if self.too_many {
            let reason = format!("too_many_open_conversations: only the {OPEN_MAX} seen last are told");
            verdicts.push(Decision::filtered(reason));
        }
        verdicts
    }
}

/// How one event of a call is processed.
#[derive(Clone)]
enum EventPlan {
    /// It was published before with the same client event id: its receipt and its owner.
    Known(Receipt, Arc<str>),
    /// It is new and has these targets.
    New(EventTargets),
    /// It cannot be stored, for this reason, but a part of its call is committed.
    Dropped(String),
}

impl EventPlan {
    /// The plan for an event that is refused. The whole call is refused with it, unless a part of the call is committed; then
    /// the receipt of the event contains the reason.
    fn dropped(is_begun: bool, error: StoreError) -> Result<Self, StoreError> {
        match error.kind {
            ErrorKind::NotFound if is_begun => {
                Ok(Self::Dropped("erased: those it was for were erased meanwhile".to_owned()))
            }
            ErrorKind::Conflict if is_begun => Ok(Self::Dropped(format!("not stored: {}", error.message))),
            _ => Err(error),
        }
    }

    fn owner(&self) -> Option<&Arc<str>> {
        match self {
            Self::Known(_, owner) => Some(owner),
            Self::New(address) => Some(&address.owner),
            Self::Dropped(_) => None,
        }
    }

    fn mailboxes(&self) -> usize {
        match self {
            Self::Known(..) | Self::Dropped(_) => 0,
            Self::New(address) => address.mailboxes.len().max(1),
        }
    }
}

impl Executor {
    /// Publishes events. Everything that could refuse one of them is checked before anything is decided. A call that
    /// reaches many mailboxes is committed in parts; `None` = this was a part, and there is more. Each part is stored
    /// under the call's idempotency key, so that a repeat continues after it, even after a restart.
    pub(crate) async fn publish(
        &mut self,
        publishing: &mut Publishing,
        source: &mut impl RowSource,
    ) -> Result<Option<Vec<Receipt>>, StoreError> {
        publishing.part = publishing.committed.clone();
        if publishing.part.receipts.is_empty() {
            self.wait_for_parts(publishing)?;
            match self.remembered_answer(publishing.publish.idempotency_key.as_ref(), source).await? {
                Some(Remembered::Answer(receipts)) => return Ok(Some(receipts)),
                Some(Remembered::PublishPart(part)) => publishing.resume(part),
                None => {}
            }
        }
        let planned_before = self.prepare_all(publishing, source).await?;
        if self.fire_overdue(publishing, source).await? {
            return Ok(None);
        }
        let Publishing {
            publish: Publish { caller, events, idempotency_key }, committed, part, plans, holds_key, ..
        } = publishing;
        let is_begun = !committed.receipts.is_empty();
        for (at, incoming) in events.iter_mut().skip(committed.receipts.len()).enumerate() {
            if at > 0 && self.changes.work() >= PART_WORK {
                if let Some(idempotency_key) = idempotency_key {
                    self.remember(Some(idempotency_key), part, part.people.iter().map(String::as_str));
                    self.in_parts.insert(key_columns(idempotency_key));
                    *holds_key = true;
                }
                return Ok(None);
            }
            let plan = match &plans[at] {
                // Another call may have published the same client event id since.
                EventPlan::New(_) if at < planned_before => match self.known(caller, incoming, source).await {
                    Ok(Some((receipt, owner))) => EventPlan::Known(receipt, owner),
                    Ok(None) => plans[at].clone(),
                    Err(error) => EventPlan::dropped(is_begun, error)?,
                },
                plan => plan.clone(),
            };
            if let (Some(_), Some(owner)) = (&idempotency_key, plan.owner())
                && !part.people.contains(&**owner)
            {
                part.people.insert(owner.to_string());
            }
            part.receipts.push(match plan {
                EventPlan::Known(receipt, _) => receipt,
                // With the same client event id twice in one call, the second event gets the receipt of the first.
                EventPlan::New(address) => match self.client_event_id_in_commit(caller, incoming)? {
                    Some((receipt, _)) => receipt,
                    None => {
                        let address = EventTargets { is_begun, ..address };
                        self.accept_event(caller, incoming, address, source).await?
                    }
                },
                EventPlan::Dropped(reason) => self.dropped_receipt(reason),
            });
        }
        self.remember(idempotency_key.as_ref(), &part.receipts, part.people.iter().map(String::as_str));
        Ok(Some(std::mem::take(&mut part.receipts)))
    }

    /// The receipt of an event that is not stored although a part of its call is.
    fn dropped_receipt(&mut self, reason: String) -> Receipt {
        let verdicts = vec![Decision::filtered(reason)];
        let event_id = self.context.ids.event(self.context.now);
        Receipt { event_id, filtered: 0, verdicts: Arc::new(verdicts.into()) }
    }

    /// Makes the repeat of a partly committed call wait for that call's answer.
    fn wait_for_parts(&mut self, publishing: &Publishing) -> Result<(), StoreError> {
        let idempotency_key = publishing.publish.idempotency_key.as_ref().filter(|_| !publishing.holds_key);
        if !idempotency_key.is_some_and(|idempotency_key| self.in_parts.contains(&key_columns(idempotency_key))) {
            return Ok(());
        }
        self.unfinished = true;
        Err(StoreError::new(ErrorKind::Retry, "the same call is being carried out"))
    }

    /// Called after a step of the call: either a part was committed, or the call was answered.
    pub(crate) fn published(&mut self, publishing: &mut Publishing, is_part: bool) {
        if is_part {
            let before = publishing.committed.receipts.len();
            publishing.committed = std::mem::take(&mut publishing.part);
            publishing.plans.drain(..publishing.committed.receipts.len() - before);
        } else if let Some(idempotency_key) =
            publishing.publish.idempotency_key.as_ref().filter(|_| publishing.holds_key)
        {
            self.in_parts.remove(&key_columns(idempotency_key));
        }
    }

    /// Plans every event before any is decided, checks how many mailboxes they reach, and loads these. Continues where
    /// an earlier step stopped. Returns how many events had been planned before.
    async fn prepare_all(
        &mut self,
        publishing: &mut Publishing,
        source: &mut impl RowSource,
    ) -> Result<usize, StoreError> {
        let Publishing { publish: Publish { caller, events, .. }, committed, plans, planned_at, .. } = publishing;
        let (events, is_begun) = (&events[committed.receipts.len()..], !committed.receipts.is_empty());
        // Plans made from rows that were dropped or erased since are made again.
        if *planned_at != self.dropped {
            (*planned_at, *plans) = (self.dropped, Vec::new());
        }
        let planned_before = plans.len();
        if planned_before == 0 && !is_begun {
            check_names(events)?;
        }
        for incoming in &events[planned_before..] {
            self.check_budget(source)?;
            let plan = match self.prepare(caller, incoming, plans.last(), source).await {
                Err(error) => EventPlan::dropped(is_begun, error)?,
                Ok(plan) => plan,
            };
            plans.push(plan);
        }
        let reached = plans.iter().map(EventPlan::mailboxes).sum::<usize>();
        if reached > REACHED_MAX && !is_begun {
            let message = format!(
                "the call reaches {reached} conversations, and each counts as one event; at most {REACHED_MAX} are \
                 allowed: send fewer events at once"
            );
            return Err(StoreError::invalid("events", message));
        }
        // A mailbox that cannot be loaded fails the call here, before anything is decided.
        for (plan, incoming) in plans.iter_mut().zip(events) {
            let EventPlan::New(address) = plan else { continue };
            for key in &mut address.mailboxes {
                *key = self.load_mailbox(key, source).await?;
            }
            if let Some(key) = self.persons_mailbox(caller, incoming, address) {
                self.load_mailbox(&key, source).await?;
                self.person(key.owner(), source).await?;
            }
        }
        Ok(planned_before)
    }

    /// The person's mailbox that decides on an event too, if a subscriber notifies people of its type.
    fn persons_mailbox(&self, caller: &Caller, incoming: &IncomingEvent, address: &EventTargets) -> Option<MailboxKey> {
        let tells = self.context.subscribers.reaches_person(incoming.event.kind());
        let origin = caller.origin.as_deref().filter(|_| tells)?;
        Some(MailboxKey::of_person(&address.owner, origin))
    }

    /// Fires the timers of the loaded mailboxes that the rest of the call reaches, if many are due. A mailbox that was
    /// not used for a day may end 200 notifications, and one event reaches a hundred mailboxes. True = this was a part. No
    /// event is decided in it, so that a small call is not divided because of the timers.
    async fn fire_overdue(&mut self, publishing: &Publishing, source: &mut impl RowSource) -> Result<bool, StoreError> {
        let overdue = self.overdue_mailboxes(publishing);
        let due: usize = overdue.iter().map(|(_, due)| due).sum();
        if due <= OVERDUE_MAX {
            return Ok(false);
        }
        self.check_room(source)?;
        for (key, _) in overdue {
            self.let_time_pass(&key, source).await?;
            if self.changes.work() + source.rows_read() >= PART_WORK {
                break;
            }
        }
        Ok(true)
    }

    /// The mailboxes that the rest of the call reaches and that have due timers, with the number of these.
    fn overdue_mailboxes(&self, publishing: &Publishing) -> Vec<(MailboxKey, usize)> {
        let Publishing { publish: Publish { caller, events, .. }, committed, plans, .. } = publishing;
        let (mut overdue, mut seen) = (Vec::new(), KeyedMap::default());
        for (plan, incoming) in plans.iter().zip(&events[committed.receipts.len()..]) {
            let EventPlan::New(address) = plan else { continue };
            for key in address.mailboxes.iter().cloned().chain(self.persons_mailbox(caller, incoming, address)) {
                let due = self.hot_mailboxes.get(&key).map_or(0, |one| one.mailbox.timers_due(self.context.now));
                if due > 0 && seen.insert(key.clone(), ()).is_none() {
                    overdue.push((key, due));
                }
            }
        }
        overdue
    }

    async fn prepare(
        &mut self,
        caller: &Caller,
        incoming: &IncomingEvent,
        before: Option<&EventPlan>,
        source: &mut impl RowSource,
    ) -> Result<EventPlan, StoreError> {
        if let Some((receipt, owner)) = self.known(caller, incoming, source).await? {
            return Ok(EventPlan::Known(receipt, owner));
        }
        // Consecutive events for the same person reach the same conversations.
        let event = &incoming.event;
        if let (None, Some(user), Some(EventPlan::New(before))) = (event.conversation_id(), event.user_id(), before)
            && before.is_for(user, event.agent())
        {
            return Ok(EventPlan::New(before.clone()));
        }
        Ok(EventPlan::New(self.address(caller, event, source).await?))
    }

    /// The receipt and owner of an event that was published before with the same client event id.
    async fn known(
        &mut self,
        caller: &Caller,
        incoming: &IncomingEvent,
        source: &mut impl RowSource,
    ) -> Result<Option<(Receipt, Arc<str>)>, StoreError> {
        let Some(client_event_id) = &incoming.client_event_id else { return Ok(None) };
        if let Some(known) = self.client_event_id_in_commit(caller, incoming)? {
            return Ok(Some(known));
        }
        match source.client_event_id(&caller.token_owner, &client_event_id.id).await? {
            Some((row, event)) => same_content(client_event_id, &row.content).map(|()| Some(known(&event))),
            None => Ok(None),
        }
    }

    /// The same for client event ids of the current commit.
    fn client_event_id_in_commit(
        &self,
        caller: &Caller,
        incoming: &IncomingEvent,
    ) -> Result<Option<(Receipt, Arc<str>)>, StoreError> {
        let Some(client_event_id) = &incoming.client_event_id else { return Ok(None) };
        let name = (caller.token_owner.clone(), client_event_id.id.clone());
        let Some((row, event)) = self.changes.client_event_ids_in_commit.get(&name) else { return Ok(None) };
        same_content(client_event_id, &self.changes.client_event_ids[*row].content)?;
        Ok(self.changes.events.get(*event).map(known))
    }

    /// The targets of an event, with their mailboxes loaded. A mailbox that cannot be loaded fails here, before
    /// anything is decided.
    pub(super) async fn open_address(
        &mut self,
        caller: &Caller,
        event: &Event,
        source: &mut impl RowSource,
    ) -> Result<EventTargets, StoreError> {
        let mut address = self.address(caller, event, source).await?;
        for key in &mut address.mailboxes {
            *key = self.load_mailbox(key, source).await?;
        }
        Ok(address)
    }

    pub(super) async fn address(
        &mut self,
        caller: &Caller,
        event: &Event,
        source: &mut impl RowSource,
    ) -> Result<EventTargets, StoreError> {
        let agent = event.agent();
        match (event.conversation_id(), event.user_id()) {
            (Some(id), user) => self.one_conversation(caller, id, user, agent, source).await,
            (None, Some(user)) => self.open_conversations_of(caller, user, agent, source).await,
            (None, None) => Err(StoreError::not_found("conversation")),
        }
    }

    async fn one_conversation(
        &mut self,
        caller: &Caller,
        id: &str,
        user: Option<&str>,
        agent: &AgentName,
        source: &mut impl RowSource,
    ) -> Result<EventTargets, StoreError> {
        let known = self.resolve_conversation(caller, id, user, source).await?;
        let (mailbox, create) = match (known, &caller.user_id) {
            (Some(main), _) => (main.of_agent(agent), None),
            // The first event of a caller bound to a person creates that person's conversation.
            (None, Some(bound)) if caller.may_see(id, user.unwrap_or(bound)) => {
                let new = NewConversation { registered: false };
                (MailboxKey::new(&ConversationKey::new(bound, id), agent.shared()), Some(new))
            }
            // An unbound caller must name the owner.
            (None, None) if user.is_some_and(|user| caller.may_see(id, user)) => {
                let key = ConversationKey::new(user.unwrap_or_default(), id);
                let new = NewConversation { registered: !self.is_registered(id, source).await? };
                (MailboxKey::new(&key, agent.shared()), Some(new))
            }
            (None, _) => return Err(StoreError::not_found("conversation")),
        };
        Ok(EventTargets {
            all_of: None,
            owner: mailbox.owner().clone(),
            mailboxes: vec![mailbox],
            create,
            is_begun: false,
            too_many: false,
        })
    }

    async fn open_conversations_of(
        &mut self,
        caller: &Caller,
        user: &str,
        agent: &AgentName,
        source: &mut impl RowSource,
    ) -> Result<EventTargets, StoreError> {
        if caller.user_id.as_deref().is_some_and(|bound| bound != user) {
            return Err(StoreError::not_found("user"));
        }
        self.erasing.check(user)?;
        let mut conversations = match &caller.conversation_id {
            Some(bound) => self.open_conversation(&ConversationKey::new(user, bound), source).await?,
            None => self.latest_open_conversations(user, source).await?,
        };
        let too_many = conversations.len() > OPEN_MAX;
        conversations.truncate(OPEN_MAX);
        conversations.sort();
        let mailboxes = conversations.iter().map(|key| MailboxKey::new(key, agent.shared())).collect();
        let (all_of, owner) = (Some(agent.clone()), user.into());
        Ok(EventTargets { all_of, owner, mailboxes, create: None, is_begun: false, too_many })
    }

    /// The main agent's mailbox of the conversation, if the conversation is open.
    async fn open_conversation(
        &mut self,
        key: &ConversationKey,
        source: &mut impl RowSource,
    ) -> Result<Vec<ConversationKey>, StoreError> {
        let since = open_since(self.context.now);
        let row = self.conversation(key, source).await?.filter(|row| row.seen_at >= since);
        Ok(row.map(|row| row.key.clone()).into_iter().collect())
    }

    /// The person's open conversations, latest first. If there are more than one event reaches, at least one more than
    /// that.
    pub(super) async fn latest_open_conversations(
        &mut self,
        user: &str,
        source: &mut impl RowSource,
    ) -> Result<Vec<ConversationKey>, StoreError> {
        let since = open_since(self.context.now);
        // Conversations opened by the current commit were seen last.
        let fresh = self.changes.conversations.values().filter(|row| &*row.key.owner == user && row.seen_at >= since);
        let mut conversations: Vec<ConversationKey> = fresh.map(|row| row.key.clone()).collect();
        for id in source.open_conversations(user, since, OPEN_MAX + 1).await? {
            let key = ConversationKey { owner: user.into(), id };
            if !conversations.contains(&key) {
                conversations.push(key);
            }
        }
        Ok(conversations)
    }

    pub(super) async fn accept_event(
        &mut self,
        caller: &Caller,
        incoming: &mut IncomingEvent,
        address: EventTargets,
        source: &mut impl RowSource,
    ) -> Result<Receipt, StoreError> {
        let now = self.context.now;
        let event = incoming.assign_id(self.context.ids.event(now));
        let IncomingEvent { client_event_id, packed, hint, .. } = &*incoming;
        let (mut filtered, mut verdicts) = (0, address.filtered_verdicts());
        for key in &address.mailboxes {
            // Another command may have created it since.
            if let Some((new, conversation)) = address.create.zip(key.conversation())
                && self.conversation(conversation, source).await?.is_none()
            {
                self.create_unopened(conversation, new.registered);
            }
            self.load_mailbox(key, source).await?;
            if let Err(refused) = self.handle(key, Input::Event(&event)) {
                // The refusal does not undo timers that fired before it, so their effects must be drained.
                self.drain(key);
                if !address.is_begun {
                    return Err(refused);
                }
                verdicts.push(Decision::filtered(format!("mailbox_full: {}", refused.message)));
                continue;
            }
            let drained = self.drain(key);
            let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("it was loaded above");
            hot_mailbox.keep(event.id(), packed, drained.to_show);
            hot_mailbox.drop_unreferenced();
            self.note_worker(key, source).await?;
            filtered = drained.filtered;
            match verdicts.is_empty() {
                true => verdicts = drained.verdicts,
                false => verdicts.extend(drained.verdicts),
            }
        }
        verdicts
            .extend(self.publish_to_person(&address.owner, (&event, packed), caller.origin.as_deref(), source).await?);
        self.publish_detected(caller.origin.as_deref(), source).await?;
        if self.context.subscribers.is_unheard(event.kind()) {
            verdicts.push(Decision::no_listener(hint.clone()));
        }
        if let Some(client_event_id) = client_event_id {
            let name = (caller.token_owner.clone(), client_event_id.id.clone());
            // The row of the event itself is pushed next, after those of detected events.
            let rows = (self.changes.client_event_ids.len(), self.changes.events.len());
            self.changes.client_event_ids_in_commit.insert(name, rows);
            self.changes.client_event_ids.push(ClientEventIdRow {
                token_owner: caller.token_owner.clone(),
                id: client_event_id.id.clone(),
                event_id: event.id(),
                content: client_event_id.content,
                at: now,
            });
        }
        self.note_inbound(&event, &address.mailboxes);
        let verdicts = Arc::new(Verdicts::from(verdicts));
        let packed = packed.clone();
        let row = EventRow { event, packed, owner: address.owner, accepted_at: now, filtered, verdicts };
        let receipt = receipt_of(&row);
        self.changes.events.push(row);
        Ok(receipt)
    }
}

/// Refuses a call that uses one client event id for two different events.
fn check_names(events: &[IncomingEvent]) -> Result<(), StoreError> {
    let mut contents = HashMap::new();
    for client_event_id in events.iter().filter_map(|one| one.client_event_id.as_ref()) {
        same_content(client_event_id, contents.entry(client_event_id.id.as_str()).or_insert(&client_event_id.content))?;
    }
    Ok(())
}

/// The receipt and owner of a stored event.
fn known(row: &EventRow) -> (Receipt, Arc<str>) {
    (receipt_of(row), row.owner.clone())
}

fn receipt_of(row: &EventRow) -> Receipt {
    Receipt { event_id: row.event.id(), filtered: row.filtered, verdicts: row.verdicts.clone() }
}

fn same_content(client_event_id: &ClientEventId, content: &[u8; 16]) -> Result<(), StoreError> {
    match client_event_id.content == *content {
        true => Ok(()),
        false => {
            let message = format!("the id '{}' was used for another event; use a new one", client_event_id.id);
            Err(StoreError::new(ErrorKind::Conflict, message))
        }
    }
}

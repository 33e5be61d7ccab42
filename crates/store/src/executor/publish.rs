use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use bellwire_core::Input;
use bellwire_core::event::{AgentName, Event};
use serde::{Deserialize, Serialize};

use super::{Executor, OPEN_MAX, RowSource, open_since};
use crate::command::{Caller, ClientEventId, IdempotencyKey, Incoming, Publish, Receipt};
use crate::error::{ErrorKind, StoreError};
use crate::rows::{ClientEventIdRow, ConversationKey, EventRow, MailboxKey};
use crate::verdicts::{Decision, Verdicts};

/// How many mailboxes the events of one call reach together, at most.
const REACHED_MAX: usize = 5_000;
/// After so much work a part of a call is committed, and others have their turn.
const PART_WORK: usize = 2_000;

/// A call to publish, and how far it is.
pub(crate) struct Publishing {
    pub(crate) publish: Publish,
    /// What is committed of it.
    committed: Part,
    /// What will be, when the step that is being decided is committed.
    part: Part,
    /// What is to be done with each event that is not committed, as far as it was looked at.
    plans: Vec<EventPlan>,
    /// How often staged or stored rows had been dropped then.
    planned_at: u64,
    /// Whether repeats under its Idempotency-Key wait for it: a part of it is staged or committed.
    holds_key: bool,
}

/// The first events of a call: what they came to, and whose they are.
#[derive(Clone, Default, Serialize, Deserialize)]
struct Part {
    receipts: Vec<Receipt>,
    people: BTreeSet<String>,
}

/// What is stored under the Idempotency-Key of a call: its answer, or how much of it is committed.
#[derive(Deserialize)]
#[serde(untagged)]
enum Remembered {
    Injection(Vec<Receipt>),
    Part(Part),
}

impl Publishing {
    pub(crate) fn new(publish: Publish) -> Self {
        let (committed, part, plans) = (Part::default(), Part::default(), Vec::new());
        Self { publish, committed, part, plans, planned_at: 0, holds_key: false }
    }

    /// Goes on behind what was committed before the hub stopped, or before the call failed.
    fn resume(&mut self, committed: Part) {
        self.part = committed.clone();
        self.committed = committed;
        self.plans.clear();
    }

    /// Whether it may do so much that it should not wait for others to be decided, nor they for it.
    pub(crate) fn is_large(&self) -> bool {
        self.publish.events.len() > 100 || self.publish.events.iter().any(|one| one.event.conversation_id().is_none())
    }
}

fn in_parts(once: &IdempotencyKey) -> [String; 3] {
    [once.token_id.clone(), once.route.clone(), once.key.clone()]
}

/// Where an event goes: the mailboxes it reaches, and whose it is.
#[derive(Clone)]
pub(super) struct EventTargets {
    /// Of an event for all open conversations of a person: the agent in each of them.
    all_of: Option<AgentName>,
    owner: Arc<str>,
    mailboxes: Vec<MailboxKey>,
    /// It names a conversation that does not exist yet.
    create: Option<NewConversation>,
    /// The person has more conversations open than one event reaches.
    too_many: bool,
}

/// A conversation that its first event creates.
#[derive(Copy, Clone)]
struct NewConversation {
    /// Whether it is the one that its id alone means.
    registered: bool,
}

impl EventTargets {
    /// Whether it is that of an event for this agent in all open conversations of this person.
    fn is_for(&self, user: &str, agent: &AgentName) -> bool {
        &*self.owner == user && self.all_of.as_ref() == Some(agent)
    }

    /// What is said of an event for a person that no conversation of theirs hears, or not every one.
    fn shortcomings(&self) -> Vec<Decision> {
        let mut verdicts = Vec::new();
        if self.mailboxes.is_empty() {
            verdicts.push(Decision::nobody("no_open_conversation".to_owned()));
        }
        if self.too_many {
            let reason = format!("too_many_open_conversations: only the {OPEN_MAX} seen last are told");
            verdicts.push(Decision::nobody(reason));
        }
        verdicts
    }
}

/// What is to be done with one event of a call.
#[derive(Clone)]
enum EventPlan {
    /// It was sent before under the same name; this is what it came to, and whose it is.
    Known(Receipt, Arc<str>),
    /// It is new, and goes there.
    New(EventTargets),
    /// Those it is for were erased after a part of the call was committed; it is not stored.
    Gone,
}

impl EventPlan {
    fn owner(&self) -> Option<&Arc<str>> {
        match self {
            Self::Known(_, owner) => Some(owner),
            Self::New(address) => Some(&address.owner),
            Self::Gone => None,
        }
    }

    fn mailboxes(&self) -> usize {
        match self {
            Self::Known(..) | Self::Gone => 0,
            Self::New(address) => address.mailboxes.len().max(1),
        }
    }
}

impl Executor {
    /// Takes in events: what could refuse one of them is looked at before anything is decided. A call that reaches many
    /// mailboxes is committed in parts; none = this was a part, and there is more. Each part is remembered under the
    /// call's Idempotency-Key, so that a repeat goes on behind it, whatever happened meanwhile.
    pub(crate) async fn publish(
        &mut self,
        publishing: &mut Publishing,
        source: &mut impl RowSource,
    ) -> Result<Option<Vec<Receipt>>, StoreError> {
        publishing.part = publishing.committed.clone();
        if publishing.part.receipts.is_empty() {
            self.wait_for_parts(publishing)?;
            match self.remembered_answer(publishing.publish.once.as_ref(), source).await? {
                Some(Remembered::Injection(receipts)) => return Ok(Some(receipts)),
                Some(Remembered::Part(part)) => publishing.resume(part),
                None => {}
            }
        }
        let planned_before = self.prepare_all(publishing, source).await?;
        let Publishing { publish: Publish { caller, events, once }, committed, part, plans, holds_key, .. } =
            publishing;
        for (at, incoming) in events.iter_mut().skip(committed.receipts.len()).enumerate() {
            if at > 0 && self.changes.work() >= PART_WORK {
                if let Some(once) = once {
                    self.remember(Some(once), part, part.people.iter().map(String::as_str));
                    self.in_parts.insert(in_parts(once));
                    *holds_key = true;
                }
                return Ok(None);
            }
            let plan = match &plans[at] {
                // Another call may have brought the same name since.
                EventPlan::New(_) if at < planned_before => match self.known(caller, incoming, source).await? {
                    Some((receipt, owner)) => EventPlan::Known(receipt, owner),
                    None => plans[at].clone(),
                },
                plan => plan.clone(),
            };
            if let (Some(_), Some(owner)) = (&once, plan.owner())
                && !part.people.contains(&**owner)
            {
                part.people.insert(owner.to_string());
            }
            part.receipts.push(match plan {
                EventPlan::Known(receipt, _) => receipt,
                // The same name twice in one call: the second finds what the first became.
                EventPlan::New(address) => match self.client_event_id_in_commit(caller, incoming)? {
                    Some((receipt, _)) => receipt,
                    None => self.accept_event(caller, incoming, address, source).await?,
                },
                EventPlan::Gone => self.gone(),
            });
        }
        self.remember(once.as_ref(), &part.receipts, part.people.iter().map(String::as_str));
        Ok(Some(std::mem::take(&mut part.receipts)))
    }

    /// What is said of an event whose addressee was erased meanwhile.
    fn gone(&mut self) -> Receipt {
        let verdicts = vec![Decision::nobody("erased: those it was for were erased meanwhile".to_owned())];
        let event_id = self.context.ids.event(self.context.now);
        Receipt { event_id, filtered: 0, verdicts: Arc::new(verdicts.into()) }
    }

    /// A repeat of a call that is committed in part gets that call's answer, when there is one.
    fn wait_for_parts(&mut self, publishing: &Publishing) -> Result<(), StoreError> {
        let once = publishing.publish.once.as_ref().filter(|_| !publishing.holds_key);
        if !once.is_some_and(|once| self.in_parts.contains(&in_parts(once))) {
            return Ok(());
        }
        self.unfinished = true;
        Err(StoreError::new(ErrorKind::Retry, "the same call is being carried out"))
    }

    /// A step of the call is over: a part of it is committed, or it is answered.
    pub(crate) fn published(&mut self, publishing: &mut Publishing, is_part: bool) {
        if is_part {
            let before = publishing.committed.receipts.len();
            publishing.committed = std::mem::take(&mut publishing.part);
            publishing.plans.drain(..publishing.committed.receipts.len() - before);
        } else if let Some(once) = publishing.publish.once.as_ref().filter(|_| publishing.holds_key) {
            self.in_parts.remove(&in_parts(once));
        }
    }

    /// Looks at every event before any is decided, and at how many mailboxes all of them reach. It goes on where an
    /// earlier step stopped; how many events that had planned.
    async fn prepare_all(
        &mut self,
        publishing: &mut Publishing,
        source: &mut impl RowSource,
    ) -> Result<usize, StoreError> {
        let Publishing { publish: Publish { caller, events, .. }, committed, plans, planned_at, .. } = publishing;
        let (events, is_begun) = (&events[committed.receipts.len()..], !committed.receipts.is_empty());
        // What was planned by rows that were then dropped or erased is planned anew.
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
                // The rest of the call must not fail for it: a part is committed.
                Err(error) if is_begun && error.kind == ErrorKind::NotFound => EventPlan::Gone,
                plan => plan?,
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
        // What cannot be loaded refuses the call here, before anything is decided.
        for (plan, incoming) in plans.iter_mut().zip(events) {
            let EventPlan::New(address) = plan else { continue };
            for key in &mut address.mailboxes {
                *key = self.load_mailbox(key, source).await?;
            }
            let tells = self.context.subscribers.reaches_person(incoming.event.kind());
            if let Some(origin) = caller.origin.as_deref().filter(|_| tells) {
                self.load_mailbox(&MailboxKey::of_person(&address.owner, origin), source).await?;
                self.person(&address.owner, source).await?;
            }
        }
        Ok(planned_before)
    }

    async fn prepare(
        &mut self,
        caller: &Caller,
        incoming: &Incoming,
        before: Option<&EventPlan>,
        source: &mut impl RowSource,
    ) -> Result<EventPlan, StoreError> {
        if let Some((receipt, owner)) = self.known(caller, incoming, source).await? {
            return Ok(EventPlan::Known(receipt, owner));
        }
        // Many events of a call are for one person: they reach the same conversations.
        let event = &incoming.event;
        if let (None, Some(user), Some(EventPlan::New(before))) = (event.conversation_id(), event.user_id(), before)
            && before.is_for(user, event.agent())
        {
            return Ok(EventPlan::New(before.clone()));
        }
        Ok(EventPlan::New(self.address(caller, event, source).await?))
    }

    /// What an event came to when it was sent before under the same name, and whose it is.
    async fn known(
        &mut self,
        caller: &Caller,
        incoming: &Incoming,
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

    /// The same, for names brought earlier in this very commit.
    fn client_event_id_in_commit(
        &self,
        caller: &Caller,
        incoming: &Incoming,
    ) -> Result<Option<(Receipt, Arc<str>)>, StoreError> {
        let Some(client_event_id) = &incoming.client_event_id else { return Ok(None) };
        let name = (caller.token_owner.clone(), client_event_id.id.clone());
        let Some((row, event)) = self.changes.client_event_ids_in_commit.get(&name) else { return Ok(None) };
        same_content(client_event_id, &self.changes.client_event_id[*row].content)?;
        Ok(self.changes.events.get(*event).map(known))
    }

    /// Where an event goes, with its mailboxes loaded: one that cannot be is an error here, before anything is decided.
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
            // A caller who may speak for everyone has to say whose it is.
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
        Ok(EventTargets { all_of: Some(agent.clone()), owner: user.into(), mailboxes, create: None, too_many })
    }

    /// The conversation, if it is open.
    async fn open_conversation(
        &mut self,
        key: &ConversationKey,
        source: &mut impl RowSource,
    ) -> Result<Vec<ConversationKey>, StoreError> {
        let since = open_since(self.context.now);
        let row = self.conversation(key, source).await?.filter(|row| row.seen_at >= since);
        Ok(row.map(|row| row.key.clone()).into_iter().collect())
    }

    /// The person's open conversations, at least one more than one event reaches if there are so many.
    async fn latest_open_conversations(
        &mut self,
        user: &str,
        source: &mut impl RowSource,
    ) -> Result<Vec<ConversationKey>, StoreError> {
        let since = open_since(self.context.now);
        // What this very commit opened is open too, and was seen last.
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
        incoming: &mut Incoming,
        address: EventTargets,
        source: &mut impl RowSource,
    ) -> Result<Receipt, StoreError> {
        let now = self.context.now;
        let event = incoming.named(self.context.ids.event(now));
        let Incoming { client_event_id, packed, .. } = &*incoming;
        let (mut filtered, mut verdicts) = (0, address.shortcomings());
        for key in &address.mailboxes {
            // Another command may have created it since.
            if let Some((new, conversation)) = address.create.zip(key.conversation())
                && self.conversation(conversation, source).await?.is_none()
            {
                self.create_unopened(conversation, new.registered);
            }
            self.load_mailbox(key, source).await?;
            if let Err(refused) = self.handle(key, Input::Event(&event)) {
                // What was due before it has happened all the same.
                self.drain(key);
                return Err(refused);
            }
            let drained = self.drain(key);
            let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("it was entered above");
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
        if let Some(client_event_id) = client_event_id {
            let name = (caller.token_owner.clone(), client_event_id.id.clone());
            // The event's own row comes next, behind what detectors made of it.
            let rows = (self.changes.client_event_id.len(), self.changes.events.len());
            self.changes.client_event_ids_in_commit.insert(name, rows);
            self.changes.client_event_id.push(ClientEventIdRow {
                token_owner: caller.token_owner.clone(),
                id: client_event_id.id.clone(),
                event_id: event.id(),
                content: client_event_id.content,
                at: now,
            });
        }
        let verdicts = Arc::new(Verdicts::from(verdicts));
        let packed = packed.clone();
        let row = EventRow { event, packed, owner: address.owner, accepted_at: now, filtered, verdicts };
        let receipt = receipt_of(&row);
        self.changes.events.push(row);
        Ok(receipt)
    }
}

/// Refuses a call that brings one name for two different events.
fn check_names(events: &[Incoming]) -> Result<(), StoreError> {
    let mut contents = HashMap::new();
    for client_event_id in events.iter().filter_map(|one| one.client_event_id.as_ref()) {
        same_content(client_event_id, contents.entry(client_event_id.id.as_str()).or_insert(&client_event_id.content))?;
    }
    Ok(())
}

/// What an event came to, and whose it is.
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

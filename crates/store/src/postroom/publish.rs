use std::sync::Arc;

use bellwire_core::Input;
use bellwire_core::event::{AgentName, Cause, Event};

use super::{OPEN_MAX, OPEN_MS, PostRoom, Source};
use crate::command::{Brought, Caller, Incoming, Publish, Receipt};
use crate::error::{ErrorKind, StoreError};
use crate::rows::{BroughtRow, ConversationKey, EventRow, MailboxKey};
use crate::verdicts::{Decision, Verdicts};

/// Where an event goes: the mailboxes it reaches, and whose it is.
pub(super) struct Address {
    owner: Arc<str>,
    mailboxes: Vec<MailboxKey>,
    /// It names a conversation that does not exist yet.
    create: bool,
    /// The person has more conversations open than one event reaches.
    too_many: bool,
}

impl Address {
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
enum Plan {
    /// It was sent before under the same name; this is what it came to, and whose it is.
    Known(Receipt, Arc<str>),
    /// It is new, and goes there.
    New(Address),
}

impl PostRoom {
    /// Takes in events, all or none: what could refuse one of them is looked at before anything is decided.
    pub(crate) async fn publish(
        &mut self,
        publish: &mut Publish,
        source: &mut impl Source,
    ) -> Result<Vec<Receipt>, StoreError> {
        let Publish { caller, events, once } = publish;
        if let Some(receipts) = self.answered(once.as_ref(), source).await? {
            return Ok(receipts);
        }
        let mut planned = Vec::with_capacity(events.len());
        for incoming in events.iter() {
            planned.push(self.prepare(caller, incoming, source).await?);
        }
        let whose = |plan: &Plan| match plan {
            Plan::Known(_, owner) => owner.clone(),
            Plan::New(address) => address.owner.clone(),
        };
        let people: Vec<Arc<str>> = once.iter().flat_map(|_| planned.iter().map(whose)).collect();
        let mut receipts: Vec<Receipt> = Vec::with_capacity(planned.len());
        for (plan, incoming) in planned.into_iter().zip(events) {
            receipts.push(match plan {
                Plan::Known(receipt, _) => receipt,
                // The same name twice in one call: the second finds what the first became.
                Plan::New(address) => match self.just_brought(caller, incoming)? {
                    Some((receipt, _)) => receipt,
                    None => self.take_in(caller, incoming, address, source).await?,
                },
            });
        }
        self.remember(once.as_ref(), &receipts, people.iter().map(|person| &**person));
        Ok(receipts)
    }

    async fn prepare(
        &mut self,
        caller: &Caller,
        incoming: &Incoming,
        source: &mut impl Source,
    ) -> Result<Plan, StoreError> {
        if let Some((receipt, owner)) = self.known(caller, incoming, source).await? {
            return Ok(Plan::Known(receipt, owner));
        }
        let address = self.open_address(caller, &incoming.event, source).await?;
        if self.desk.subscribers.tell_a_person_of(incoming.event.kind()) {
            self.enter(&MailboxKey::of_person(&address.owner), source).await?;
        }
        Ok(Plan::New(address))
    }

    /// What an event came to when it was sent before under the same name, and whose it is.
    async fn known(
        &mut self,
        caller: &Caller,
        incoming: &Incoming,
        source: &mut impl Source,
    ) -> Result<Option<(Receipt, Arc<str>)>, StoreError> {
        let Some(brought) = &incoming.brought else { return Ok(None) };
        if let Some(known) = self.just_brought(caller, incoming)? {
            return Ok(Some(known));
        }
        match source.brought(&caller.token_owner, &brought.id).await? {
            Some((row, event)) => same_content(brought, &row.content).map(|()| Some(known(&event))),
            None => Ok(None),
        }
    }

    /// The same, for names brought earlier in this very commit.
    fn just_brought(&self, caller: &Caller, incoming: &Incoming) -> Result<Option<(Receipt, Arc<str>)>, StoreError> {
        let Some(brought) = &incoming.brought else { return Ok(None) };
        let name = (caller.token_owner.clone(), brought.id.clone());
        let Some((row, event)) = self.changes.brought_here.get(&name) else { return Ok(None) };
        same_content(brought, &self.changes.brought[*row].content)?;
        Ok(self.changes.events.get(*event).map(known))
    }

    /// Where an event goes, with its mailboxes loaded: one that cannot be is an error here, before anything is decided.
    pub(super) async fn open_address(
        &mut self,
        caller: &Caller,
        event: &Event,
        source: &mut impl Source,
    ) -> Result<Address, StoreError> {
        let mut address = self.address(caller, event, source).await?;
        for key in &mut address.mailboxes {
            *key = self.enter(key, source).await?;
        }
        Ok(address)
    }

    pub(super) async fn address(
        &mut self,
        caller: &Caller,
        event: &Event,
        source: &mut impl Source,
    ) -> Result<Address, StoreError> {
        let agent = event.agent();
        match (event.conversation_id(), event.user_id()) {
            (Some(id), user) => self.one_conversation(caller, id, user, agent, source).await,
            (None, Some(user)) => self.all_open(caller, user, agent, source).await,
            (None, None) => Err(StoreError::not_found("conversation")),
        }
    }

    async fn one_conversation(
        &mut self,
        caller: &Caller,
        id: &str,
        user: Option<&str>,
        agent: &AgentName,
        source: &mut impl Source,
    ) -> Result<Address, StoreError> {
        let known = self.meant(caller, id, user, source).await?;
        let (mailbox, create) = match (known, &caller.user_id) {
            (Some(main), _) => (main.of_agent(agent), false),
            // The first event of a caller bound to a person creates that person's conversation.
            (None, Some(bound)) if caller.may_see(id, user.unwrap_or(bound)) => {
                (MailboxKey::new(&ConversationKey::new(bound, id), agent.shared()), true)
            }
            (None, _) => return Err(StoreError::not_found("conversation")),
        };
        Ok(Address { owner: mailbox.owner().clone(), mailboxes: vec![mailbox], create, too_many: false })
    }

    async fn all_open(
        &mut self,
        caller: &Caller,
        user: &str,
        agent: &AgentName,
        source: &mut impl Source,
    ) -> Result<Address, StoreError> {
        if caller.user_id.as_deref().is_some_and(|bound| bound != user) {
            return Err(StoreError::not_found("user"));
        }
        let since = bellwire_core::Time::from_millis(self.desk.now.as_millis().saturating_sub_unsigned(OPEN_MS));
        // What this very commit opened is open too, and was seen last.
        let fresh = self.changes.conversations.values().filter(|row| &*row.key.owner == user && row.seen_at >= since);
        let mut conversations: Vec<ConversationKey> = fresh.map(|row| row.key.clone()).collect();
        for id in source.open_conversations(user, since, OPEN_MAX + 1).await? {
            let key = ConversationKey { owner: user.into(), id };
            if !conversations.contains(&key) {
                conversations.push(key);
            }
        }
        conversations.retain(|key| caller.conversation_id.as_deref().is_none_or(|bound| bound == &*key.id));
        let too_many = conversations.len() > OPEN_MAX;
        conversations.truncate(OPEN_MAX);
        conversations.sort();
        let mailboxes = conversations.iter().map(|key| MailboxKey::new(key, agent.shared())).collect();
        Ok(Address { owner: user.into(), mailboxes, create: false, too_many })
    }

    pub(super) async fn take_in(
        &mut self,
        caller: &Caller,
        incoming: &mut Incoming,
        address: Address,
        source: &mut impl Source,
    ) -> Result<Receipt, StoreError> {
        let now = self.desk.now;
        let event = incoming.named(self.desk.ids.event(now));
        let Incoming { brought, packed, .. } = &*incoming;
        let (mut filtered, mut verdicts) = (0, address.shortcomings());
        for key in &address.mailboxes {
            if address.create {
                self.create(&key.conversation, None, false);
            }
            self.enter(key, source).await?;
            if event.cause() == Cause::Person {
                self.saw(&key.conversation);
            }
            if let Err(refused) = self.handle(key, Input::Event(&event)) {
                // What was due before it has happened all the same.
                self.drain(key);
                return Err(refused);
            }
            let drained = self.drain(key);
            let room = self.rooms.get_mut(key).expect("it was entered above");
            room.keep(event.id(), packed, drained.to_show);
            room.tidy();
            filtered = drained.filtered;
            match verdicts.is_empty() {
                true => verdicts = drained.verdicts,
                false => verdicts.extend(drained.verdicts),
            }
        }
        verdicts.extend(self.tell_person(&address.owner, (&event, packed), caller.origin.as_deref(), source).await?);
        self.tell_what_came_up(source).await?;
        if let Some(brought) = brought {
            let name = (caller.token_owner.clone(), brought.id.clone());
            // The event's own row comes next, behind what detectors made of it.
            let rows = (self.changes.brought.len(), self.changes.events.len());
            self.changes.brought_here.insert(name, rows);
            self.changes.brought.push(BroughtRow {
                token_owner: caller.token_owner.clone(),
                id: brought.id.clone(),
                event_id: event.id(),
                content: brought.content,
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

/// What an event came to, and whose it is.
fn known(row: &EventRow) -> (Receipt, Arc<str>) {
    (receipt_of(row), row.owner.clone())
}

fn receipt_of(row: &EventRow) -> Receipt {
    Receipt { event_id: row.event.id(), filtered: row.filtered, verdicts: row.verdicts.clone() }
}

fn same_content(brought: &Brought, content: &[u8; 16]) -> Result<(), StoreError> {
    match brought.content == *content {
        true => Ok(()),
        false => {
            let message = format!("the id '{}' was used for another event; use a new one", brought.id);
            Err(StoreError::new(ErrorKind::Conflict, message))
        }
    }
}

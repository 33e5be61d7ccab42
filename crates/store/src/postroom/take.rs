use std::sync::Arc;

use bellwire_core::mailbox::InjectInput;
use bellwire_core::notification::Notification;
use bellwire_core::{Answer, Event, Input};

use super::{Drained, PostRoom, Source};
use crate::command::{Given, Message, Take};
use crate::error::{ErrorKind, StoreError};
use crate::packed::Packed;
use crate::rows::{ConversationKey, EventRow, InjectionRow, MailboxKey};

impl PostRoom {
    /// Gives an agent its mail, or the answer it got before under the same call id.
    pub(crate) async fn take(&mut self, take: &Take, source: &mut impl Source) -> Result<Given, StoreError> {
        let (conversation, key) = self.mailbox_of(take, source).await?;
        let key = self.enter(&key, source).await?;
        if let Some(row) = self.injection(&key, &take.request.call_id, source).await? {
            return again(&row, take);
        }
        if take.unsure && self.sub_agent_works(&conversation) {
            return Ok(Given::withheld(self.rooms[&key].mailbox.pending().len()));
        }
        self.load_events(&key, source).await?;
        let observed = self.observed(take)?;
        let mut warnings = self.take_unseen(&key, &take.unseen, source).await?;
        self.saw(&conversation);
        warnings.extend(self.boundary_warning(&conversation));
        let boundary = self.conversations[&conversation].row.boundary.clone();
        let room = self.rooms.get_mut(&key).expect("it was entered above");
        room.change(&mut self.changes);
        self.changes.handled += 1;
        let input = InjectInput {
            request: &take.request,
            observed: observed.as_ref().map(|(event, _)| event.clone()),
            events: &room.drawer,
            boundary: &boundary,
        };
        let handled = room.mailbox.handle(Input::Inject(input), &mut self.desk);
        handled.map_err(|refused| StoreError::new(ErrorKind::Full, refused.to_string()))?;
        let drained = self.drain(&key);
        self.changes.rendered += drained.answer.as_ref().map_or(0, |answer| answer.rendered);
        self.note_worker(&key, source).await?;
        if let Some((event, packed)) = &observed {
            self.came_up.push((key.owner().clone(), event.clone(), packed.clone()));
        }
        let given = self.keep(&key, take, observed, drained, warnings)?;
        self.tell_what_came_up(take.caller.origin.as_deref(), source).await?;
        Ok(given)
    }

    /// The conversation that is meant and the mailbox of its agent that asks. A caller bound to a person creates the
    /// conversation with its first injection.
    async fn mailbox_of(
        &mut self,
        take: &Take,
        source: &mut impl Source,
    ) -> Result<(ConversationKey, MailboxKey), StoreError> {
        let (id, caller) = (&take.conversation_id, &take.caller);
        let main = self.meant(caller, id, None, source).await?;
        let known = main.as_ref().and_then(MailboxKey::conversation).cloned();
        let conversation = match (known, &caller.user_id) {
            (Some(known), _) => known,
            (None, Some(bound)) if caller.may_see(id, bound) => {
                let key = ConversationKey::new(bound, id);
                self.create(&key, None, false);
                key
            }
            (None, _) => return Err(StoreError::not_found("conversation")),
        };
        let own = main.unwrap_or_else(|| MailboxKey::new(&conversation, "main"));
        Ok((conversation, own.of_agent(&take.agent)))
    }

    async fn injection(
        &mut self,
        key: &MailboxKey,
        call_id: &str,
        source: &mut impl Source,
    ) -> Result<Option<InjectionRow>, StoreError> {
        let room = self.rooms.get(key).expect("it was entered before");
        match room.answer(call_id) {
            Some(row) => Ok(Some(row.clone())),
            None if room.never_answered(call_id) => Ok(None),
            None => source.injection(key, call_id).await,
        }
    }

    fn observed(&mut self, take: &Take) -> Result<Option<(Arc<Event>, Packed)>, StoreError> {
        let Some(observed) = take.observed.clone() else { return Ok(None) };
        let event = observed.into_event().map_err(|error| StoreError::new(ErrorKind::Conflict, error.to_string()))?;
        let now = self.desk.now;
        let event = event.with_id(self.desk.ids.event(now)).at(now);
        let event = event.for_agent(take.agent.clone()).in_conversation(&take.conversation_id);
        let event = match &take.correlation_id {
            Some(id) => event.correlated(id),
            None => event,
        };
        let packed = Packed::of(&event);
        Ok(Some((Arc::new(event), packed)))
    }

    /// Lets what earlier answers took and the model never saw wait again, within the mailbox's bound; those call ids
    /// are used up. Gives a warning for each call id that is not known.
    async fn take_unseen(
        &mut self,
        key: &MailboxKey,
        call_ids: &[String],
        source: &mut impl Source,
    ) -> Result<Vec<String>, StoreError> {
        let (mut rows, mut returned, mut warnings) = (Vec::new(), Vec::new(), Vec::new());
        for (at, call_id) in call_ids.iter().enumerate() {
            match self.injection(key, call_id, source).await? {
                None => warnings.push(format!("unseen[{at}]: no answer is known under this call_id")),
                Some(row) if row.unseen || rows.iter().any(|known: &InjectionRow| known.call_id == *call_id) => {}
                Some(mut row) => {
                    returned.append(&mut row.taken);
                    rows.push(InjectionRow { unseen: true, ..row });
                }
            }
        }
        if !returned.is_empty() {
            self.take_back(key, returned, source).await?;
        }
        for row in rows {
            self.changes.unseen.push((key.clone(), row.call_id.clone()));
            self.rooms.get_mut(key).expect("it was entered before").remember(row);
        }
        Ok(warnings)
    }

    /// Decides on a copy of the mailbox what waits again, and loads the events of that: a mailbox does not keep those of
    /// what it has told. Loading may take several steps; until it is done, nothing has changed.
    async fn take_back(
        &mut self,
        key: &MailboxKey,
        returned: Vec<Notification>,
        source: &mut impl Source,
    ) -> Result<(), StoreError> {
        let room = self.rooms.get_mut(key).expect("it was entered before");
        let mut mailbox = room.mailbox.clone();
        let handled = mailbox.handle(Input::Return(returned), &mut self.desk);
        handled.map_err(|refused| StoreError::new(ErrorKind::Full, refused.to_string()))?;
        let mut wanted = room.lacking(mailbox.events_to_show());
        // What this very commit took in is not stored yet.
        for row in &self.changes.events {
            if let Ok(at) = wanted.binary_search(&row.event.id()) {
                room.drawer.keep(wanted.remove(at), row.packed.clone());
            }
        }
        if let Err(stopped) = self.load(key, &wanted, source).await {
            // The next command must not find the effects of this one.
            while self.desk.poll().is_some() {}
            return Err(stopped);
        }
        let room = self.rooms.get_mut(key).expect("it was entered before");
        room.change(&mut self.changes);
        room.mailbox = mailbox;
        self.changes.handled += 1;
        Ok(())
    }

    /// Keeps the answer under its call id, with the messages that stay in the conversation.
    fn keep(
        &mut self,
        key: &MailboxKey,
        take: &Take,
        observed: Option<(Arc<Event>, Packed)>,
        drained: Drained,
        warnings: Vec<String>,
    ) -> Result<Given, StoreError> {
        let now = self.desk.now;
        let answer = drained.answer.expect("a mailbox answers every injection");
        if let Some((event, packed)) = observed {
            let room = self.rooms.get_mut(key).expect("it was entered before");
            room.keep(event.id(), &packed, drained.to_show);
            let (filtered, verdicts) = (drained.filtered, Arc::new(drained.verdicts.into()));
            let owner = key.owner().clone();
            self.changes.events.push(EventRow { event, packed, owner, accepted_at: now, filtered, verdicts });
        }
        self.word(&answer);
        let row = InjectionRow {
            key: key.clone(),
            call_id: take.request.call_id.clone(),
            point: take.request.point,
            at: now,
            unseen: false,
            answer: Given { warnings, ..Given::of(&answer) },
            messages: self.messages(&answer),
            taken: answer.taken,
        };
        let room = self.rooms.get_mut(key).expect("it was entered before");
        room.remember(row.clone());
        room.tidy();
        let given = row.answer.clone();
        self.changes.injections.push(row);
        Ok(given)
    }

    /// Writes down, with each notification, the call that took it and the words it was shown in. What ended for another
    /// reason in the same step was not shown.
    fn word(&mut self, answer: &Answer) {
        for id in &answer.notifications {
            if let Some(row) = self.changes.notifications.get_mut(id) {
                row.call_id = Some(answer.call_id.clone());
            }
        }
        for told in &answer.told {
            for id in &told.notifications {
                if let Some(row) = self.changes.notifications.get_mut(id) {
                    row.content = Some(told.content.clone());
                }
            }
        }
    }

    fn messages(&mut self, answer: &Answer) -> Vec<Message> {
        let messages = answer.system_messages(self.desk.now, &mut self.desk.ids);
        let message = |message: bellwire_core::inject::SystemMessage| Message {
            id: message.id,
            role: bellwire_core::inject::SystemMessage::ROLE.to_owned(),
            content: message.content,
            timestamp: message.timestamp.as_millis(),
            source: message.source,
            notification_id: message.notification_id.map(|id| id.0),
            call_id: message.call_id,
        };
        messages.into_iter().map(message).collect()
    }
}

/// The answer that was given before, unless the caller now asks for something else under the same name.
fn again(row: &InjectionRow, take: &Take) -> Result<Given, StoreError> {
    let conflict = |message: String| Err(StoreError::new(ErrorKind::Conflict, message));
    if row.unseen {
        return conflict("this call_id was reported as unseen; use a new one".into());
    }
    match row.point == take.request.point {
        true => Ok(row.answer.clone()),
        false => conflict(format!("this call_id was used at {}; use a new one", row.point)),
    }
}

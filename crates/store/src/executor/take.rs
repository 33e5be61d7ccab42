use std::sync::Arc;

use bellwire_core::mailbox::InjectInput;
use bellwire_core::notification::Notification;
use bellwire_core::{Event, Injection, Input};

use super::{DrainedEffects, Executor, RowSource};
use crate::command::{InjectCommand, InjectResult, Message};
use crate::error::{ErrorKind, StoreError};
use crate::packed_event::PackedEvent;
use crate::rows::{ConversationKey, EventRow, InjectionRow, MailboxKey};

impl Executor {
    /// Gives an agent its mail, or the answer it got before under the same call id.
    pub(crate) async fn take(
        &mut self,
        take: &InjectCommand,
        source: &mut impl RowSource,
    ) -> Result<InjectResult, StoreError> {
        let (conversation, key) = self.mailbox_of(take, source).await?;
        let key = self.load_mailbox(&key, source).await?;
        if let Some(row) = self.injection(&key, &take.request.call_id, source).await? {
            return again(&row, take);
        }
        if take.unsure && self.sub_agent_works(&conversation) {
            return Ok(InjectResult::withheld(self.hot_mailboxes[&key].mailbox.pending().len()));
        }
        self.load_events(&key, source).await?;
        let observed = self.observed(take)?;
        let mut warnings = self.take_unseen(&key, &take.unseen, source).await?;
        self.touch_last_seen(&conversation);
        warnings.extend(self.boundary_warning(&conversation));
        let boundary = self.conversations[&conversation].row.boundary.clone();
        let hot_mailbox = self.hot_mailboxes.get_mut(&key).expect("it was entered above");
        hot_mailbox.change(&mut self.changes);
        self.changes.handled += 1;
        let input = InjectInput {
            request: &take.request,
            observed: observed.as_ref().map(|(event, _)| event.clone()),
            events: &hot_mailbox.event_cache,
            boundary: &boundary,
        };
        let handled = hot_mailbox.mailbox.handle(Input::Inject(input), &mut self.context);
        handled.map_err(|refused| StoreError::new(ErrorKind::Full, refused.to_string()))?;
        let drained = self.drain(&key);
        self.changes.rendered += drained.answer.as_ref().map_or(0, |answer| answer.rendered);
        self.note_worker(&key, source).await?;
        if let Some((event, packed)) = &observed {
            self.detected_events.push((key.owner().clone(), event.clone(), packed.clone()));
        }
        let given = self.keep(&key, take, observed, drained, warnings)?;
        self.publish_detected(take.caller.origin.as_deref(), source).await?;
        Ok(given)
    }

    /// The conversation that is meant and the mailbox of its agent that asks. A caller bound to a person creates the
    /// conversation with its first injection.
    async fn mailbox_of(
        &mut self,
        take: &InjectCommand,
        source: &mut impl RowSource,
    ) -> Result<(ConversationKey, MailboxKey), StoreError> {
        let (id, caller) = (&take.conversation_id, &take.caller);
        let main = self.resolve_conversation(caller, id, None, source).await?;
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
        source: &mut impl RowSource,
    ) -> Result<Option<InjectionRow>, StoreError> {
        let hot_mailbox = self.hot_mailboxes.get(key).expect("it was entered before");
        match hot_mailbox.answer(call_id) {
            Some(row) => Ok(Some(row.clone())),
            None if hot_mailbox.never_answered(call_id) => Ok(None),
            None => source.injection(key, call_id).await,
        }
    }

    fn observed(&mut self, take: &InjectCommand) -> Result<Option<(Arc<Event>, PackedEvent)>, StoreError> {
        let Some(observed) = take.observed.clone() else { return Ok(None) };
        let event = observed.into_event().map_err(|error| StoreError::new(ErrorKind::Conflict, error.to_string()))?;
        let now = self.context.now;
        let event = event.with_id(self.context.ids.event(now)).at(now);
        let event = event.for_agent(take.agent.clone()).in_conversation(&take.conversation_id);
        let event = match &take.correlation_id {
            Some(id) => event.correlated(id),
            None => event,
        };
        let packed = PackedEvent::of(&event);
        Ok(Some((Arc::new(event), packed)))
    }

    /// Lets what earlier answers took and the model never saw wait again, within the mailbox's bound; those call ids
    /// are used up. Gives a warning for each call id that is not known.
    async fn take_unseen(
        &mut self,
        key: &MailboxKey,
        call_ids: &[String],
        source: &mut impl RowSource,
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
            self.hot_mailboxes.get_mut(key).expect("it was entered before").remember(row);
        }
        Ok(warnings)
    }

    /// Decides on a copy of the mailbox what waits again, and loads the events of that: a mailbox does not keep those of
    /// what it has told. Loading may take several steps; until it is done, nothing has changed.
    async fn take_back(
        &mut self,
        key: &MailboxKey,
        returned: Vec<Notification>,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("it was entered before");
        let mut mailbox = hot_mailbox.mailbox.clone();
        let handled = mailbox.handle(Input::Return(returned), &mut self.context);
        handled.map_err(|refused| StoreError::new(ErrorKind::Full, refused.to_string()))?;
        let mut wanted = hot_mailbox.lacking(mailbox.events_to_show());
        // What this very commit took in is not stored yet.
        for row in &self.changes.events {
            if let Ok(at) = wanted.binary_search(&row.event.id()) {
                hot_mailbox.event_cache.keep(wanted.remove(at), row.packed.clone());
            }
        }
        if let Err(stopped) = self.load(key, &wanted, source).await {
            // The next command must not find the effects of this one.
            while self.context.poll().is_some() {}
            // What was loaded stays, whatever the mailbox is told until the next step.
            let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("it was entered before");
            hot_mailbox.event_cache.pin(mailbox.events_to_show());
            return Err(stopped);
        }
        let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("it was entered before");
        hot_mailbox.change(&mut self.changes);
        hot_mailbox.mailbox = mailbox;
        hot_mailbox.event_cache.pin(std::iter::empty());
        self.changes.handled += 1;
        Ok(())
    }

    /// Keeps the answer under its call id, with the messages that stay in the conversation.
    fn keep(
        &mut self,
        key: &MailboxKey,
        take: &InjectCommand,
        observed: Option<(Arc<Event>, PackedEvent)>,
        drained: DrainedEffects,
        warnings: Vec<String>,
    ) -> Result<InjectResult, StoreError> {
        let now = self.context.now;
        let answer = drained.answer.expect("a mailbox answers every injection");
        if let Some((event, packed)) = observed {
            let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("it was entered before");
            hot_mailbox.keep(event.id(), &packed, drained.to_show);
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
            answer: InjectResult { warnings, ..InjectResult::of(&answer) },
            messages: self.messages(&answer),
            taken: answer.taken,
        };
        let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("it was entered before");
        hot_mailbox.remember(row.clone());
        hot_mailbox.drop_unreferenced();
        let given = row.answer.clone();
        self.changes.injections.push(row);
        Ok(given)
    }

    /// Writes down, with each notification, the call that took it and the words it was shown in. What ended for another
    /// reason in the same step was not shown.
    fn word(&mut self, answer: &Injection) {
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

    fn messages(&mut self, answer: &Injection) -> Vec<Message> {
        let messages = answer.system_messages(self.context.now, &mut self.context.ids);
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
fn again(row: &InjectionRow, take: &InjectCommand) -> Result<InjectResult, StoreError> {
    let conflict = |message: String| Err(StoreError::new(ErrorKind::Conflict, message));
    if row.unseen {
        return conflict("this call_id was reported as unseen; use a new one".into());
    }
    match row.point == take.request.point {
        true => Ok(row.answer.clone()),
        false => conflict(format!("this call_id was used at {}; use a new one", row.point)),
    }
}

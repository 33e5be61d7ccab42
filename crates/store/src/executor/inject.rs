use std::sync::Arc;

use bellwire_core::mailbox::InjectInput;
use bellwire_core::{Event, Injection, Input};

use super::conversation::boundary_of;
use super::{DrainedEffects, Executor, RowSource};
use crate::command::{ConversationDetails, InjectCommand, InjectResult, Message};
use crate::error::{ErrorKind, StoreError};
use crate::packed_event::PackedEvent;
use crate::rows::{ConversationKey, EventRow, InjectionRow, MailboxKey};

impl Executor {
    /// Answers an injection, or replays the answer of the same call id. `None` = it has taken back a part of the answers
    /// that it reports as unseen, and there are more.
    pub(crate) async fn inject(
        &mut self,
        command: &InjectCommand,
        source: &mut impl RowSource,
    ) -> Result<Option<InjectResult>, StoreError> {
        let (conversation, key) = self.mailbox_of(command, source).await?;
        let key = self.load_mailbox(&key, source).await?;
        if let Some(row) = self.injection(&key, &command.request.call_id, source).await? {
            return replay(&row, command).map(Some);
        }
        if command.unsure && self.sub_agent_works(&conversation) {
            return Ok(Some(InjectResult::withheld(self.hot_mailboxes[&key].mailbox.pending().len())));
        }
        self.load_events(&key, source).await?;
        self.check_room(source)?;
        let observed = self.observed(command)?;
        let Some(mut warnings) = self.take_unseen(&key, &command.unseen, source).await? else { return Ok(None) };
        self.touch_last_seen(&conversation);
        warnings.extend(self.boundary_warning(&conversation));
        let boundary = boundary_of(&self.conversations[&conversation].row, &command.agent);
        let hot_mailbox = self.hot_mailboxes.get_mut(&key).expect("it was loaded above");
        hot_mailbox.change(&mut self.changes);
        self.changes.handled += 1;
        let input = InjectInput {
            request: &command.request,
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
        let result = self.store_answer(&key, command, observed, drained, warnings)?;
        self.publish_detected(command.caller.origin.as_deref(), source).await?;
        Ok(Some(result))
    }

    /// The conversation and the mailbox of the calling agent. A caller bound to a person creates the conversation with
    /// its first injection.
    async fn mailbox_of(
        &mut self,
        command: &InjectCommand,
        source: &mut impl RowSource,
    ) -> Result<(ConversationKey, MailboxKey), StoreError> {
        let (id, caller) = (&command.conversation_id, &command.caller);
        let main = self.resolve_conversation(caller, id, None, source).await?;
        let known = main.as_ref().and_then(MailboxKey::conversation).cloned();
        let conversation = match (known, &caller.user_id) {
            (Some(known), _) => known,
            (None, Some(bound)) if caller.may_see(id, bound) => {
                let key = ConversationKey::new(bound, id);
                self.create(&key, ConversationDetails::default(), false);
                key
            }
            (None, _) => return Err(StoreError::not_found("conversation")),
        };
        let own = main.unwrap_or_else(|| MailboxKey::new(&conversation, "main"));
        Ok((conversation, own.of_agent(&command.agent)))
    }

    async fn injection(
        &mut self,
        key: &MailboxKey,
        call_id: &str,
        source: &mut impl RowSource,
    ) -> Result<Option<InjectionRow>, StoreError> {
        let hot_mailbox = self.hot_mailboxes.get(key).expect("it was loaded before");
        match hot_mailbox.answer(call_id) {
            Some(row) => Ok(Some(row.clone())),
            None if hot_mailbox.never_answered(call_id) => Ok(None),
            None => source.injection(key, call_id).await,
        }
    }

    fn observed(&mut self, command: &InjectCommand) -> Result<Option<(Arc<Event>, PackedEvent)>, StoreError> {
        let Some(observed) = command.observed.clone() else { return Ok(None) };
        let event = observed.into_event().map_err(|error| StoreError::new(ErrorKind::Conflict, error.to_string()))?;
        let now = self.context.now;
        let event = event.with_id(self.context.ids.event(now)).at(now);
        let event = event.for_agent(command.agent.clone()).in_conversation(&command.conversation_id);
        let event = match &command.correlation_id {
            Some(id) => event.correlated(id),
            None => event,
        };
        let packed = PackedEvent::of(&event);
        Ok(Some((Arc::new(event), packed)))
    }

    /// Stores the answer under its call id, with its system messages.
    fn store_answer(
        &mut self,
        key: &MailboxKey,
        command: &InjectCommand,
        observed: Option<(Arc<Event>, PackedEvent)>,
        drained: DrainedEffects,
        warnings: Vec<String>,
    ) -> Result<InjectResult, StoreError> {
        let now = self.context.now;
        let answer = drained.answer.expect("a mailbox answers every injection");
        if let Some((event, packed)) = observed {
            let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("it was loaded before");
            hot_mailbox.keep(event.id(), &packed, drained.to_show);
            let (filtered, verdicts) = (drained.filtered, Arc::new(drained.verdicts.into()));
            let owner = key.owner().clone();
            self.changes.events.push(EventRow { event, packed, owner, accepted_at: now, filtered, verdicts });
        }
        self.record_shown_texts(&answer);
        self.note_reply_context(key, &answer.taken);
        let row = InjectionRow {
            key: key.clone(),
            call_id: command.request.call_id.clone(),
            point: command.request.point,
            at: now,
            unseen: false,
            tool_result_digest: command.tool_result_digest,
            answer: InjectResult { warnings, ..InjectResult::of(&answer) },
            messages: self.messages(&answer),
            taken: answer.taken,
        };
        let hot_mailbox = self.hot_mailboxes.get_mut(key).expect("it was loaded before");
        hot_mailbox.remember(row.clone());
        hot_mailbox.drop_unreferenced();
        let result = row.answer.clone();
        self.changes.injections.push(row);
        Ok(result)
    }

    /// Adds the call id, the shown text and the error of a failed template to the rows of the taken notifications.
    /// Notifications that ended for another reason in the same step were not shown.
    fn record_shown_texts(&mut self, answer: &Injection) {
        for id in &answer.notifications {
            if let Some(row) = self.changes.notifications.get_mut(id) {
                row.call_id = Some(answer.call_id.clone());
            }
        }
        for item in &answer.shown {
            for id in &item.notifications {
                if let Some(row) = self.changes.notifications.get_mut(id) {
                    row.content = Some(item.content.clone());
                }
            }
        }
        for failure in &answer.template_failures {
            self.report_failed_template(&failure.subscriber, &failure.error);
            for id in &failure.notifications {
                if let Some(row) = self.changes.notifications.get_mut(id) {
                    row.template_error = Some(failure.error.clone());
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

/// The stored answer of a call id. A different request with the same call id is a conflict.
fn replay(row: &InjectionRow, command: &InjectCommand) -> Result<InjectResult, StoreError> {
    let conflict = |message: String| Err(StoreError::new(ErrorKind::Conflict, message));
    if row.unseen {
        return conflict("this call_id was reported as unseen; use a new one".into());
    }
    if row.point != command.request.point {
        return conflict(format!("this call_id was used at {}; use a new one", row.point));
    }
    let mut answer = row.answer.clone();
    answer.warnings.extend(reused_warning(row, command));
    Ok(answer)
}

/// The warning for a call id that returns with another tool result. It is not a conflict: the result of a repeated call may
/// differ in details, such as a time in it. Rows of older versions have no digest.
fn reused_warning(row: &InjectionRow, command: &InjectCommand) -> Option<String> {
    let (before, now) = row.tool_result_digest.zip(command.tool_result_digest)?;
    (before != now).then(|| {
        format!(
            "call_id: it was used at {} with another tool_result, so this is the answer from then and nothing new; use a \
             new call_id for every tool call",
            row.at
        )
    })
}

//! Changes to a person's inbox. Each gets a new position, so that all of the person's streams report it.

use std::collections::BTreeMap;

use bellwire_core::person::button_press_text;
use bellwire_core::{Event, NotificationId};

use super::{Executor, RowSource};
use crate::command::{Caller, IdempotencyKey, IncomingEvent};
use crate::error::{ErrorKind, StoreError};
use crate::people::{ButtonPress, InboxItem, PressOutcome, PressResult, RestoreOutcome, ToastButton};

/// The maximum number of items that one step marks as read.
const READ_STEP: usize = 1_000;

impl Executor {
    /// Marks an item as read or unread. Does nothing if it already is.
    pub(crate) async fn mark(
        &mut self,
        user_id: String,
        id: NotificationId,
        read: bool,
        source: &mut impl RowSource,
    ) -> Result<InboxItem, StoreError> {
        let mut item = self.found(&user_id, id, source).await?;
        if item.read_at.is_some() == read {
            return Ok(item);
        }
        if item.dismissed_at.is_some() {
            return Err(StoreError::new(ErrorKind::Conflict, "a dismissed notification stays read"));
        }
        item.read_at = read.then_some(self.context.now);
        Ok(self.put_item(item))
    }

    /// Marks a bounded number of unread items as read. Returns the count including `before`, and whether there may be
    /// more. Only the last step stores the answer; a repeat before that marks the remaining items, which is harmless.
    pub(crate) async fn read_some(
        &mut self,
        user_id: String,
        before: usize,
        idempotency_key: Option<IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<(usize, bool), StoreError> {
        if let Some(known) = self.remembered_answer(idempotency_key.as_ref(), source).await? {
            return Ok((known, false));
        }
        self.person(&user_id, source).await?;
        let stored = source.unread(&user_id, READ_STEP).await?;
        let more = stored.len() == READ_STEP;
        let mut items: BTreeMap<NotificationId, InboxItem> = stored.into_iter().map(|item| (item.id, item)).collect();
        // Changes of the current commit override the stored rows.
        let fresh = self.changes.people.inbox.values().filter(|item| item.user_id == user_id);
        items.extend(fresh.map(|item| (item.id, item.clone())));
        items.retain(|_, item| item.read_at.is_none());
        let count = items.len();
        for (_, item) in items {
            self.put_item(InboxItem { read_at: Some(self.context.now), ..item });
        }
        let all = before + count;
        if !more {
            self.remember(idempotency_key.as_ref(), &all, [&*user_id]);
        }
        Ok((all, more))
    }

    /// Dismisses an item. It counts as read and is kept.
    pub(crate) async fn dismiss(
        &mut self,
        user_id: String,
        id: NotificationId,
        source: &mut impl RowSource,
    ) -> Result<InboxItem, StoreError> {
        let item = self.found(&user_id, id, source).await?;
        self.show_settlement(&item, source).await?;
        Ok(self.dismiss_item(item))
    }

    /// Takes a dismissal back. What a prompt button sent to the agent cannot be taken back.
    pub(crate) async fn restore(
        &mut self,
        user_id: String,
        id: NotificationId,
        source: &mut impl RowSource,
    ) -> Result<RestoreOutcome, StoreError> {
        let item = self.found(&user_id, id, source).await?;
        let settlement = item.settlement();
        if let Some(answered) = settlement.filter(|one| one.pressed.as_ref().is_some_and(|(_, it)| it.prompt.is_some()))
        {
            return Ok(RestoreOutcome::Answered(answered));
        }
        let Some(dismissed_at) = item.dismissed_at else { return Ok(RestoreOutcome::Restored(Box::new(item))) };
        // What was unread was marked as read by the dismissal, at the same moment.
        let read_at = item.read_at.filter(|at| *at != dismissed_at);
        let item = self.put_item(InboxItem { read_at, dismissed_at: None, acted: Vec::new(), ..item });
        Ok(RestoreOutcome::Restored(Box::new(item)))
    }

    /// Presses a button. A button with a prompt sends it to the agent once; any other dismisses the item. Either settles
    /// the item: the same button has the same result again, every other one changes nothing.
    pub(crate) async fn act(
        &mut self,
        user_id: String,
        id: NotificationId,
        index: usize,
        idempotency_key: Option<IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<PressOutcome, StoreError> {
        if let Some(known) = self.remembered_answer(idempotency_key.as_ref(), source).await? {
            return Ok(PressOutcome::Pressed(known));
        }
        let outcome = self.press(&user_id, id, index, source).await?;
        // Only successes are remembered.
        if let PressOutcome::Pressed(pressed) = &outcome {
            self.remember(idempotency_key.as_ref(), pressed, [&*user_id]);
        }
        Ok(outcome)
    }

    pub(super) async fn press(
        &mut self,
        user_id: &str,
        id: NotificationId,
        index: usize,
        source: &mut impl RowSource,
    ) -> Result<PressOutcome, StoreError> {
        let item = self.found(user_id, id, source).await?;
        let button = item.toast.as_ref().and_then(|toast| toast.buttons.get(index)).cloned();
        let button = button.ok_or_else(|| StoreError::not_found("action"))?;
        if let Some(acted) = item.acted.iter().find(|acted| acted.index == index) {
            return Ok(PressOutcome::Pressed(PressResult { button, acted: acted.clone() }));
        }
        if let Some(settlement) = item.settlement() {
            return Ok(PressOutcome::Settled(settlement));
        }
        let event_id = match &button.prompt {
            Some(prompt) => Some(self.send_prompt(&item, &button, prompt, source).await?),
            None => None,
        };
        self.show_settlement(&item, source).await?;
        let acted = ButtonPress { index, at: self.context.now, event_id };
        let mut item = item;
        item.acted.push(acted.clone());
        item.read_at = item.read_at.or(Some(self.context.now));
        if button.prompt.is_none() {
            item.dismissed_at = item.dismissed_at.or(Some(self.context.now));
        }
        self.put_item(item);
        Ok(PressOutcome::Pressed(PressResult { button, acted }))
    }

    /// Plans to edit the messages of chats that show the buttons of an item which is being settled.
    async fn show_settlement(&mut self, item: &InboxItem, source: &mut impl RowSource) -> Result<(), StoreError> {
        let has_buttons = item.toast.as_ref().is_some_and(|toast| !toast.buttons.is_empty());
        match has_buttons && item.settlement().is_none() {
            true => self.plan_edits(item.id, source).await,
            false => Ok(()),
        }
    }

    /// Sends a button's prompt to the agent as the person's message. The text names the agent that offered the button.
    async fn send_prompt(
        &mut self,
        item: &InboxItem,
        button: &ToastButton,
        prompt: &str,
        source: &mut impl RowSource,
    ) -> Result<bellwire_core::EventId, StoreError> {
        let conflict = |message: &str| StoreError::new(ErrorKind::Conflict, message);
        let conversation = item.conversation_id.as_deref();
        let conversation =
            conversation.ok_or_else(|| conflict("this notification is of no conversation to answer in"))?;
        let text = button_press_text(&button.label, &item.origin, prompt);
        let event = Event::user_message(&text).map_err(|invalid| conflict(&invalid.to_string()))?;
        let event = event.in_conversation(conversation).at(self.context.now);
        let event = match &item.correlation_id {
            Some(id) => event.correlated(id),
            None => event,
        };
        let caller = Caller::user(&item.user_id);
        let address = self.address(&caller, &event, source).await?;
        let receipt = self.accept_event(&caller, &mut IncomingEvent::new(event, None), address, source).await?;
        Ok(receipt.event_id)
    }

    async fn found(
        &mut self,
        user_id: &str,
        id: NotificationId,
        source: &mut impl RowSource,
    ) -> Result<InboxItem, StoreError> {
        let item = self.inbox_item(user_id, id, source).await?;
        item.ok_or_else(|| StoreError::not_found("notification"))
    }

    fn dismiss_item(&mut self, item: InboxItem) -> InboxItem {
        if item.dismissed_at.is_some() {
            return item;
        }
        let now = Some(self.context.now);
        self.put_item(InboxItem { read_at: item.read_at.or(now), dismissed_at: now, ..item })
    }
}

//! What a person does with their inbox. Whatever is done in one place is told everywhere.

use std::collections::BTreeMap;

use bellwire_core::person::pressed;
use bellwire_core::{Event, NotificationId};

use super::{Executor, RowSource};
use crate::command::{Caller, IdempotencyKey, Incoming};
use crate::error::{ErrorKind, StoreError};
use crate::people::{ButtonPress, InboxItem, PressResult, ToastButton};

/// How many items one step marks as read; a person may have left a year's unread.
const READ_STEP: usize = 1_000;

impl Executor {
    /// Marks an item as read or not. What it is already changes nothing.
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

    /// Marks what is not read as read, a bounded number of items; how many with those before, and whether there may be
    /// more. The last step remembers the answer: a repeat before that marks what is left, which can be done twice.
    pub(crate) async fn read_some(
        &mut self,
        user_id: String,
        before: usize,
        once: Option<IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<(usize, bool), StoreError> {
        if let Some(known) = self.remembered_answer(once.as_ref(), source).await? {
            return Ok((known, false));
        }
        self.person(&user_id, source).await?;
        let stored = source.unread(&user_id, READ_STEP).await?;
        let more = stored.len() == READ_STEP;
        let mut items: BTreeMap<NotificationId, InboxItem> = stored.into_iter().map(|item| (item.id, item)).collect();
        // What this very commit changed is as it is here.
        let fresh = self.changes.people.inbox.values().filter(|item| item.user_id == user_id);
        items.extend(fresh.map(|item| (item.id, item.clone())));
        items.retain(|_, item| item.read_at.is_none());
        let count = items.len();
        for (_, item) in items {
            self.put_item(InboxItem { read_at: Some(self.context.now), ..item });
        }
        let all = before + count;
        if !more {
            self.remember(once.as_ref(), &all, [&*user_id]);
        }
        Ok((all, more))
    }

    /// Takes an item out of sight; it counts as read and is kept.
    pub(crate) async fn dismiss(
        &mut self,
        user_id: String,
        id: NotificationId,
        source: &mut impl RowSource,
    ) -> Result<InboxItem, StoreError> {
        let item = self.found(&user_id, id, source).await?;
        Ok(self.dismiss_item(item))
    }

    /// Presses a button: a prompt is said to the agent, once; anything else dismisses.
    pub(crate) async fn act(
        &mut self,
        user_id: String,
        id: NotificationId,
        index: usize,
        once: Option<IdempotencyKey>,
        source: &mut impl RowSource,
    ) -> Result<PressResult, StoreError> {
        if let Some(known) = self.remembered_answer(once.as_ref(), source).await? {
            return Ok(known);
        }
        let pressed = self.press(&user_id, id, index, source).await?;
        self.remember(once.as_ref(), &pressed, [&*user_id]);
        Ok(pressed)
    }

    async fn press(
        &mut self,
        user_id: &str,
        id: NotificationId,
        index: usize,
        source: &mut impl RowSource,
    ) -> Result<PressResult, StoreError> {
        let item = self.found(user_id, id, source).await?;
        let button = item.toast.as_ref().and_then(|toast| toast.buttons.get(index)).cloned();
        let button = button.ok_or_else(|| StoreError::not_found("action"))?;
        if let Some(acted) = item.acted.iter().find(|acted| acted.index == index) {
            return Ok(PressResult { button, acted: acted.clone() });
        }
        let event_id = match &button.prompt {
            Some(prompt) => Some(self.say(&item, &button, prompt, source).await?),
            None => None,
        };
        let acted = ButtonPress { index, at: self.context.now, event_id };
        let mut item = item;
        item.acted.push(acted.clone());
        item.read_at = item.read_at.or(Some(self.context.now));
        if button.prompt.is_none() {
            item.dismissed_at = item.dismissed_at.or(Some(self.context.now));
        }
        self.put_item(item);
        Ok(PressResult { button, acted })
    }

    /// What a button says is the person's own word, and it says so who offered it.
    async fn say(
        &mut self,
        item: &InboxItem,
        button: &ToastButton,
        prompt: &str,
        source: &mut impl RowSource,
    ) -> Result<bellwire_core::EventId, StoreError> {
        let conflict = |message: &str| StoreError::new(ErrorKind::Conflict, message);
        if item.dismissed_at.is_some() {
            return Err(conflict("this notification was dismissed; its buttons no longer work"));
        }
        let conversation = item.conversation_id.as_deref();
        let conversation =
            conversation.ok_or_else(|| conflict("this notification is of no conversation to answer in"))?;
        let text = pressed(&button.label, &item.origin, prompt);
        let event = Event::user_message(&text).map_err(|invalid| conflict(&invalid.to_string()))?;
        let event = event.in_conversation(conversation).at(self.context.now);
        let event = match &item.correlation_id {
            Some(id) => event.correlated(id),
            None => event,
        };
        let caller = Caller::user(&item.user_id);
        let address = self.address(&caller, &event, source).await?;
        let receipt = self.accept_event(&caller, &mut Incoming::new(event, None), address, source).await?;
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

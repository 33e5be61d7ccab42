//! Messages that the hub has sent to chats, their buttons, and the edits that show what was pressed.

use bellwire_core::NotificationId;
use bellwire_core::person::ChannelName;
use bellwire_core::retry::Next;

use crate::chats::{ButtonAction, ButtonRow, ChatKey, ChatMessage, ChatMessageRow, EditEnd, MessageEdit, NewButton};
use crate::error::StoreError;
use crate::executor::{Executor, RowSource};

/// How long a button works.
const BUTTON_MS: u64 = 30 * 24 * 60 * 60 * 1000;
/// How many messages may show the buttons of one notification: one per channel and attempt.
const MESSAGES_MAX: usize = 100;

impl Executor {
    /// Stores the hashes of buttons before their message is sent.
    pub(crate) async fn put_buttons(
        &mut self,
        buttons: Vec<NewButton>,
        _: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let expires_at = self.context.now.plus(BUTTON_MS);
        for NewButton { token, chat, user_id, notification_id, index } in buttons {
            self.erasing.check(&user_id)?;
            let does = ButtonAction::Press { notification_id, index };
            let row = ButtonRow { chat, user_id, does, expires_at, used_at: None };
            self.changes.people.chats.buttons.insert(token, row);
        }
        Ok(())
    }

    /// Stores a message. One whose notification was settled while it was on its way is edited at once.
    pub(crate) async fn put_chat_message(
        &mut self,
        message: ChatMessage,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        self.erasing.check(&message.user_id)?;
        let item = match message.notification_id {
            Some(id) => self.inbox_item(&message.user_id, id, source).await?,
            None => None,
        };
        let edit_at = item.and_then(|item| item.settlement()).map(|_| self.context.now);
        self.keep_chat_message(ChatMessageRow { message, edit_at, edit_attempts: 0 });
        Ok(())
    }

    /// Plans the edit of every message that shows the buttons of a settled notification.
    pub(in crate::executor) async fn plan_edits(
        &mut self,
        id: NotificationId,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let mut rows = source.messages_with_buttons(id, MESSAGES_MAX).await?;
        let fresh = self.changes.people.chats.messages.values();
        rows.extend(fresh.filter(|row| row.message.notification_id == Some(id)).cloned());
        for row in rows {
            let edit_at = Some(self.context.now);
            self.keep_chat_message(ChatMessageRow { edit_at, edit_attempts: 0, ..row });
        }
        Ok(())
    }

    /// The messages to edit now, with their notifications.
    pub(crate) async fn due_edits(
        &mut self,
        channel: ChannelName,
        limit: usize,
        source: &mut impl RowSource,
    ) -> Result<Vec<MessageEdit>, StoreError> {
        let mut edits = Vec::new();
        for ChatMessageRow { message, .. } in source.due_edits(&channel, self.context.now, limit).await? {
            let item = match message.notification_id {
                Some(id) => self.inbox_item(&message.user_id, id, source).await?,
                None => None,
            };
            edits.push(MessageEdit { message, item });
        }
        Ok(edits)
    }

    /// Records the outcome of an edit.
    pub(crate) async fn finish_edit(
        &mut self,
        chat: ChatKey,
        message_id: i64,
        end: EditEnd,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let Some(row) = self.message_in_chat(&chat, message_id, source).await? else { return Ok(()) };
        let edit_attempts = row.edit_attempts.saturating_add(1);
        let edit_at = match end {
            EditEnd::Done => None,
            EditEnd::TryAgain { retry_after_ms, jitter } => {
                match self.rules.retry.next(edit_attempts, self.context.now, retry_after_ms, jitter) {
                    Next::At(at) => Some(at),
                    Next::GiveUp { .. } => None,
                }
            }
        };
        self.keep_chat_message(ChatMessageRow { edit_at, edit_attempts, ..row });
        Ok(())
    }
}

//! Handles what people do in chats. Deciding and marking the update as handled are one commit.

mod inbound;
mod lease;
mod pairing;
mod sent;

use std::future::Future;

use bellwire_core::person::ChannelName;
use bellwire_core::{NotificationId, Time};
use uuid::Uuid;

use super::{Executor, RowSource};
use crate::chats::{
    ButtonRow, ChannelUpdate, ChatKey, ChatMessageRow, ChatSender, CodeRow, KeptMessageRow, LeaseRow, Pairing,
    StrangerRow, UpdateAction, UpdateCommand, UpdateOutcome, UpdateRow,
};
use crate::error::StoreError;

/// Loads the rows of chats. Part of [`super::RowSource`].
pub(crate) trait ChatRowSource {
    fn pairing(&mut self, chat: &ChatKey) -> impl Future<Output = Result<Option<Pairing>, StoreError>> + Send;
    fn pairing_of(
        &mut self,
        user_id: &str,
        channel: &ChannelName,
    ) -> impl Future<Output = Result<Option<Pairing>, StoreError>> + Send;
    fn pairing_code(&mut self, code: &[u8]) -> impl Future<Output = Result<Option<CodeRow>, StoreError>> + Send;
    fn stranger(&mut self, chat: &ChatKey) -> impl Future<Output = Result<Option<StrangerRow>, StoreError>> + Send;
    /// Whether there are at least this many strangers.
    fn has_strangers(&mut self, count: usize) -> impl Future<Output = Result<bool, StoreError>> + Send;
    /// Whether an update is handled; none = it is not stored.
    fn is_handled(
        &mut self,
        channel: &ChannelName,
        id: i64,
    ) -> impl Future<Output = Result<Option<bool>, StoreError>> + Send;
    fn waiting_updates(
        &mut self,
        channel: &ChannelName,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<ChannelUpdate>, StoreError>> + Send;
    fn chat_message(
        &mut self,
        chat: &ChatKey,
        message_id: i64,
    ) -> impl Future<Output = Result<Option<ChatMessageRow>, StoreError>> + Send;
    /// The messages that show the buttons of a notification, at most `limit`.
    fn messages_with_buttons(
        &mut self,
        notification_id: NotificationId,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<ChatMessageRow>, StoreError>> + Send;
    fn due_edits(
        &mut self,
        channel: &ChannelName,
        now: Time,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<ChatMessageRow>, StoreError>> + Send;
    fn button(&mut self, token: &[u8]) -> impl Future<Output = Result<Option<ButtonRow>, StoreError>> + Send;
    fn kept_message(&mut self, id: Uuid) -> impl Future<Output = Result<Option<KeptMessageRow>, StoreError>> + Send;
    fn lease(&mut self, name: &str) -> impl Future<Output = Result<Option<LeaseRow>, StoreError>> + Send;
}

impl Executor {
    /// Carries out what an update asks for, once.
    pub(crate) async fn handle_update(
        &mut self,
        command: Box<UpdateCommand>,
        source: &mut impl RowSource,
    ) -> Result<UpdateOutcome, StoreError> {
        let UpdateCommand { channel, update_id, from, action } = *command;
        let key = (channel.clone(), update_id);
        let is_handled = match self.changes.people.chats.updates.get(&key) {
            Some(row) => matches!(row, UpdateRow::Handled { .. }),
            None => source.is_handled(&channel, update_id).await? == Some(true),
        };
        if is_handled {
            return Ok(UpdateOutcome::Repeated);
        }
        let outcome = match (from, action) {
            (None, _) | (_, UpdateAction::Ignore(_)) => UpdateOutcome::Ignored,
            (Some(from), action) => self.act_in_chat(channel, from, action, source).await?,
        };
        let handled = UpdateRow::Handled { outcome: outcome.as_str(), at: self.context.now };
        self.changes.people.chats.updates.insert(key, handled);
        Ok(outcome)
    }

    async fn act_in_chat(
        &mut self,
        channel: ChannelName,
        from: ChatSender,
        action: UpdateAction,
        source: &mut impl RowSource,
    ) -> Result<UpdateOutcome, StoreError> {
        let chat = ChatKey { channel, target: from.target };
        let pairing = self.pairing(&chat, source).await?;
        if let UpdateAction::Pair(code) = action {
            return self.pair(chat, from.sender, pairing, code, source).await;
        }
        let Some(pairing) = pairing else { return self.meet_stranger(chat, source).await };
        if pairing.sender != from.sender {
            return Ok(UpdateOutcome::Ignored);
        }
        self.erasing.check(&pairing.user_id)?;
        match action {
            UpdateAction::Start => self.start_chat(&pairing, source).await,
            UpdateAction::Stop => self.stop_chat(&pairing, source).await,
            UpdateAction::Mute(message_id) => self.mute(&pairing, message_id, source).await,
            UpdateAction::Help => Ok(UpdateOutcome::Help),
            UpdateAction::NotText => Ok(UpdateOutcome::NotText),
            UpdateAction::Text(text) => self.receive(&pairing, *text, source).await,
            UpdateAction::Press(token) => self.press_in_chat(&pairing, token, source).await,
            UpdateAction::Blocked => self.block_chat(&pairing, source).await,
            UpdateAction::Ignore(_) | UpdateAction::Pair(_) => Ok(UpdateOutcome::Ignored),
        }
    }

    async fn pairing(&self, chat: &ChatKey, source: &mut impl RowSource) -> Result<Option<Pairing>, StoreError> {
        match self.changes.people.chats.pairings.get(chat) {
            Some(row) => Ok(row.clone()),
            None => source.pairing(chat).await,
        }
    }
}

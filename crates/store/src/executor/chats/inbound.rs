//! A person's words from a chat: finds the conversation, or asks for it.

use bellwire_core::notify::RequestContext;
use bellwire_core::{Event, Time};
use uuid::Uuid;

use crate::chats::{
    ButtonAction, ButtonRow, ChatKey, ChatMessage, ChatMessageRow, InboundText, KeptMessageRow, Pairing, UpdateOutcome,
};
use crate::command::{Caller, IncomingEvent};
use crate::error::StoreError;
use crate::executor::{Executor, RowSource};
use crate::people::PressOutcome;
use crate::rows::ConversationKey;

/// How long a kept message waits for its conversation. Retention deletes it after that.
const KEPT_MS: u64 = 24 * 60 * 60 * 1000;

impl Executor {
    /// Sends a text to the conversation that it belongs to: that of the replied-to message, else the only open one. If
    /// several are open, keeps the text and asks.
    pub(super) async fn receive(
        &mut self,
        pairing: &Pairing,
        text: InboundText,
        source: &mut impl RowSource,
    ) -> Result<UpdateOutcome, StoreError> {
        let user_id = &pairing.user_id;
        let InboundText { message_id, text, reply_to, endpoint, thread, choices } = text;
        // The agent must be able to read all of it.
        if text.chars().count() > Event::MESSAGE_MAX {
            let message = format!("is too long; write at most {} characters", Event::MESSAGE_MAX);
            return Err(StoreError::invalid("text", message));
        }
        let kept = KeptMessageRow {
            user_id: user_id.clone(),
            chat: pairing.chat.clone(),
            sender: pairing.sender.clone(),
            message_id,
            endpoint,
            thread,
            text,
            created_at: self.context.now,
        };
        if let Some(key) = self.conversation_of(pairing, reply_to, source).await? {
            return self.say(&kept, &key, source).await;
        }
        let open = self.latest_open_conversations(user_id, source).await?;
        match open.as_slice() {
            [] => Ok(UpdateOutcome::NoConversation),
            [only] => self.say(&kept, only, source).await,
            several => self.ask(kept, &several[..several.len().min(choices.len())], choices, source).await,
        }
    }

    /// The button decides: it presses a notification's, or chooses the conversation of a kept message.
    pub(super) async fn press_in_chat(
        &mut self,
        pairing: &Pairing,
        token: Vec<u8>,
        source: &mut impl RowSource,
    ) -> Result<UpdateOutcome, StoreError> {
        let row = match self.changes.people.chats.buttons.get(&token) {
            Some(row) => Some(row.clone()),
            None => source.button(&token).await?,
        };
        let now = self.context.now;
        let is_theirs =
            |row: &ButtonRow| row.chat == pairing.chat && row.user_id == pairing.user_id && row.expires_at > now;
        let Some(row) = row.filter(is_theirs) else { return Ok(UpdateOutcome::UnknownButton) };
        if row.used_at.is_some() {
            return Ok(UpdateOutcome::UsedButton);
        }
        let outcome = match &row.does {
            ButtonAction::Press { notification_id, index } => {
                match self.press(&pairing.user_id, *notification_id, *index, source).await? {
                    PressOutcome::Pressed(pressed) => UpdateOutcome::Pressed(pressed),
                    PressOutcome::Settled(settlement) => UpdateOutcome::Settled(settlement),
                }
            }
            ButtonAction::Choose { kept_id, conversation_id } => {
                let Some(kept) = self.kept_message(*kept_id, source).await? else {
                    return Ok(UpdateOutcome::UsedButton);
                };
                self.changes.people.chats.kept.insert(*kept_id, None);
                self.say(&kept, &ConversationKey::new(&pairing.user_id, conversation_id), source).await?
            }
        };
        self.changes.people.chats.buttons.insert(token, ButtonRow { used_at: Some(now), ..row });
        Ok(outcome)
    }

    /// The conversation of the replied-to message, if it has one. An agent may notify before its conversation exists.
    async fn conversation_of(
        &mut self,
        pairing: &Pairing,
        reply_to: Option<i64>,
        source: &mut impl RowSource,
    ) -> Result<Option<ConversationKey>, StoreError> {
        let Some(message_id) = reply_to else { return Ok(None) };
        let row = self.message_in_chat(&pairing.chat, message_id, source).await?;
        let row = row.filter(|row| row.message.user_id == pairing.user_id);
        let id = row.and_then(|row| row.message.conversation_id);
        Ok(id.map(|id| ConversationKey::new(&pairing.user_id, &id)))
    }

    /// Publishes the person's message, and stores it as a message of the chat.
    async fn say(
        &mut self,
        said: &KeptMessageRow,
        key: &ConversationKey,
        source: &mut impl RowSource,
    ) -> Result<UpdateOutcome, StoreError> {
        let now = self.context.now;
        let context = RequestContext {
            request_id: self.context.ids.next(now),
            source_channel: said.chat.channel.to_string(),
            source_endpoint_identity: said.endpoint.clone(),
            source_sender_identity: said.sender.clone(),
            source_thread_identity: Some(said.thread.clone()),
            received_at: Some(said.created_at.to_string()),
        };
        let event = Event::user_message_in(&said.text, &context);
        let event = event.map_err(|invalid| StoreError::invalid(invalid.field, invalid.message))?;
        let event = event.in_conversation(&key.id).at(now);
        let caller = Caller::user(&said.user_id);
        let address = self.address(&caller, &event, source).await?;
        self.accept_event(&caller, &mut IncomingEvent::new(event, None), address, source).await?;
        let title = self.title_of(key, source).await?;
        self.keep_chat_message(ChatMessageRow {
            message: ChatMessage {
                chat: said.chat.clone(),
                message_id: said.message_id,
                user_id: said.user_id.clone(),
                conversation_id: Some(key.id.to_string()),
                origin: None,
                notification_id: None,
                at: now,
            },
            edit_at: None,
            edit_attempts: 0,
        });
        Ok(UpdateOutcome::Sent { conversation_id: key.id.to_string(), title })
    }

    /// Keeps a text, with one button per conversation.
    async fn ask(
        &mut self,
        kept: KeptMessageRow,
        conversations: &[ConversationKey],
        tokens: Vec<Vec<u8>>,
        source: &mut impl RowSource,
    ) -> Result<UpdateOutcome, StoreError> {
        let now = self.context.now;
        let kept_id: Uuid = self.context.ids.next(now);
        let expires_at: Time = now.plus(KEPT_MS);
        let mut titles = Vec::new();
        for (key, token) in conversations.iter().zip(tokens) {
            titles.push(self.title_of(key, source).await?);
            let does = ButtonAction::Choose { kept_id, conversation_id: key.id.to_string() };
            let (chat, user_id) = (kept.chat.clone(), kept.user_id.clone());
            let row = ButtonRow { chat, user_id, does, expires_at, used_at: None };
            self.changes.people.chats.buttons.insert(token, row);
        }
        self.changes.people.chats.kept.insert(kept_id, Some(kept));
        Ok(UpdateOutcome::Choose { titles })
    }

    /// The title of a conversation, or its id.
    async fn title_of(&mut self, key: &ConversationKey, source: &mut impl RowSource) -> Result<String, StoreError> {
        let row = self.conversation(key, source).await?;
        Ok(row.and_then(|row| row.title.clone()).unwrap_or_else(|| key.id.to_string()))
    }

    async fn kept_message(&self, id: Uuid, source: &mut impl RowSource) -> Result<Option<KeptMessageRow>, StoreError> {
        match self.changes.people.chats.kept.get(&id) {
            Some(row) => Ok(row.clone()),
            None => source.kept_message(id).await,
        }
    }

    pub(super) async fn message_in_chat(
        &self,
        chat: &ChatKey,
        message_id: i64,
        source: &mut impl RowSource,
    ) -> Result<Option<ChatMessageRow>, StoreError> {
        match self.changes.people.chats.messages.get(&(chat.clone(), message_id)) {
            Some(row) => Ok(Some(row.clone())),
            None => source.chat_message(chat, message_id).await,
        }
    }

    pub(super) fn keep_chat_message(&mut self, row: ChatMessageRow) {
        let key = (row.message.chat.clone(), row.message.message_id);
        self.changes.people.chats.messages.insert(key, row);
    }
}

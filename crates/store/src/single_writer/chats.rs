use bellwire_core::Time;
use bellwire_core::person::ChannelName;
use tokio::sync::watch;

use super::{Reader, SingleWriterStore};
use crate::StoreFuture;
use crate::chats::{
    ChannelUpdate, ChatKey, ChatMessage, Chats, EditEnd, MessageEdit, NewButton, UpdateCommand, UpdateOutcome,
};
use crate::command::IdempotencyKey;
use crate::people::PeopleCommand;

impl<R: Reader> Chats for SingleWriterStore<R> {
    fn put_pairing_code(
        &self,
        user_id: String,
        channel: ChannelName,
        code: Vec<u8>,
        idempotency_key: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, Time> {
        self.command(|reply| PeopleCommand::PutPairingCode { user_id, channel, code, idempotency_key, reply })
    }

    fn keep_updates(
        &self,
        channel: ChannelName,
        lease: Option<(String, i64)>,
        updates: Vec<ChannelUpdate>,
    ) -> StoreFuture<'_, bool> {
        self.command(|reply| PeopleCommand::KeepUpdates { channel, lease, updates, reply })
    }

    fn waiting_updates(&self, channel: ChannelName, limit: usize) -> StoreFuture<'_, Vec<ChannelUpdate>> {
        self.command(move |reply| PeopleCommand::WaitingUpdates { channel, limit, reply })
    }

    fn handle_update(&self, command: UpdateCommand) -> StoreFuture<'_, UpdateOutcome> {
        self.command(|reply| PeopleCommand::HandleUpdate { command: Box::new(command), reply })
    }

    fn put_buttons(&self, buttons: Vec<NewButton>) -> StoreFuture<'_, ()> {
        self.command(|reply| PeopleCommand::PutButtons { buttons, reply })
    }

    fn put_chat_message(&self, message: ChatMessage) -> StoreFuture<'_, ()> {
        self.command(|reply| PeopleCommand::PutChatMessage { message, reply })
    }

    fn due_edits(&self, channel: ChannelName, limit: usize) -> StoreFuture<'_, Vec<MessageEdit>> {
        self.command(move |reply| PeopleCommand::DueEdits { channel, limit, reply })
    }

    fn finish_edit(&self, chat: ChatKey, message_id: i64, end: EditEnd) -> StoreFuture<'_, ()> {
        self.command(move |reply| PeopleCommand::FinishEdit { chat, message_id, end, reply })
    }

    fn take_lease(&self, name: String, holder: String, ttl_ms: u64) -> StoreFuture<'_, Option<i64>> {
        self.command(move |reply| PeopleCommand::TakeLease { name, holder, ttl_ms, reply })
    }

    fn release_lease(&self, name: String, holder: String) -> StoreFuture<'_, ()> {
        self.command(|reply| PeopleCommand::ReleaseLease { name, holder, reply })
    }

    fn edit_changes(&self) -> watch::Receiver<()> {
        self.writer.doorbells.edits()
    }
}

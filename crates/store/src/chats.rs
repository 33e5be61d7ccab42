//! Chats: where people write back to the hub.
//!
//! A channel that receives messages stores each update before its provider forgets it, and then handles it with one
//! command. The command decides and marks the update as handled in one commit, so that a crash neither loses an update nor
//! handles it twice. A chat belongs to one person, by a pairing; what it sends counts as that person's.

mod message;
mod rows;
mod update;

pub use message::{ChatMessage, EditEnd, MessageEdit, NewButton};
pub(crate) use rows::{
    ButtonAction, ButtonRow, ChatChanges, ChatMessageRow, CodeRow, KeptMessageRow, LeaseRow, StrangerRow, UpdateRow,
};
pub use update::{ChannelUpdate, ChatSender, InboundText, UpdateAction, UpdateCommand, UpdateOutcome};

use bellwire_core::Time;
use bellwire_core::person::ChannelName;
use tokio::sync::watch;

use crate::StoreFuture;
use crate::command::IdempotencyKey;

/// A chat of a channel.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ChatKey {
    /// The channel.
    pub channel: ChannelName,
    /// The chat in the channel, as it stands in people's settings.
    pub target: String,
}

/// Whose chat it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pairing {
    /// The chat.
    pub chat: ChatKey,
    /// The person.
    pub user_id: String,
    /// The only sender who may act in the chat.
    pub sender: String,
    /// When it was paired.
    pub paired_at: Time,
}

/// The operations on chats, with the same duties as [`crate::Store`].
pub trait Chats: Send + Sync {
    /// Stores the hash of a code that pairs a chat with this person. It is valid for ten minutes and replaces the person's
    /// older one. A repeat under the same key is a conflict: the code was shown and cannot be shown again.
    fn put_pairing_code(
        &self,
        user_id: String,
        channel: ChannelName,
        code: Vec<u8>,
        idempotency_key: Option<IdempotencyKey>,
    ) -> StoreFuture<'_, Time>;
    /// Stores updates; those that are already stored stay as they are. With a lease, only while `fence` is its fence:
    /// false = another process has the lease, and nothing was stored.
    fn keep_updates(
        &self,
        channel: ChannelName,
        lease: Option<(String, i64)>,
        updates: Vec<ChannelUpdate>,
    ) -> StoreFuture<'_, bool>;
    /// The updates that are not handled yet, oldest first, at most `limit`.
    fn waiting_updates(&self, channel: ChannelName, limit: usize) -> StoreFuture<'_, Vec<ChannelUpdate>>;
    /// Carries out what an update asks for, and marks it as handled. An update that is handled already changes nothing.
    fn handle_update(&self, command: UpdateCommand) -> StoreFuture<'_, UpdateOutcome>;
    /// Stores the hashes of buttons before their message is sent.
    fn put_buttons(&self, buttons: Vec<NewButton>) -> StoreFuture<'_, ()>;
    /// Stores a message of a chat, so that answers to it find their conversation.
    fn put_chat_message(&self, message: ChatMessage) -> StoreFuture<'_, ()>;
    /// The messages to edit because their notification was settled, oldest first, at most `limit`.
    fn due_edits(&self, channel: ChannelName, limit: usize) -> StoreFuture<'_, Vec<MessageEdit>>;
    /// Records the outcome of an edit.
    fn finish_edit(&self, chat: ChatKey, message_id: i64, end: EditEnd) -> StoreFuture<'_, ()>;
    /// Takes or prolongs a lease for `ttl_ms`. Returns its fence, or none while another holder has it.
    fn take_lease(&self, name: String, holder: String, ttl_ms: u64) -> StoreFuture<'_, Option<i64>>;
    /// Gives a lease back, if the holder has it.
    fn release_lease(&self, name: String, holder: String) -> StoreFuture<'_, ()>;
    /// Rings after every commit that planned an edit.
    fn edit_changes(&self) -> watch::Receiver<()>;
}

use bellwire_core::event::AgentName;
use bellwire_core::person::{ChannelName, PersonSettings};
use bellwire_core::{NotificationId, Time};
use uuid::Uuid;

use super::{
    AttemptEnd, AttemptOutcome, AttemptStart, Claim, Delivery, InboxItem, NewReminder, NotificationDraft, PressOutcome,
    Reminder, RestoreOutcome, SendResult, SettingsRequest,
};
use crate::chats::{
    ChannelUpdate, ChatKey, ChatMessage, EditEnd, MessageEdit, NewButton, UpdateCommand, UpdateOutcome,
};
use crate::command::{Caller, IdempotencyKey, PendingNotification};
use crate::error::StoreError;
use crate::executor::{Executor, RowSource};
use crate::notify::{LedgerDraft, NotifyAnswer, NotifyClaim, NotifyClaimed, NotifyEnd, NotifyKey, SentFrom};
use crate::reply::PendingReply;
use crate::sessions::{NewSession, SessionOwner, SignInCode, SignedIn};

/// Each line: the command, its arguments, its answer, and the method of the executor that decides it.
macro_rules! people_commands {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty => $verb:ident;)+) => {
        /// The writer's commands for people.
        pub(crate) enum PeopleCommand {
            $($name { $($argument: $type,)* reply: PendingReply<$answer> },)+
        }

        impl PeopleCommand {
            /// Lets the executor decide; the answer is held until the commit. May be called again.
            pub(crate) async fn decide(
                &mut self,
                executor: &mut Executor,
                source: &mut impl RowSource,
            ) -> Result<(), StoreError> {
                match self {
                    $(Self::$name { $($argument,)* reply } => {
                        reply.hold(executor.$verb($($argument.clone(),)* source).await)
                    })+
                }
            }

            /// Sends the answer after the commit.
            pub(crate) fn answer(self, committed: Result<(), StoreError>) {
                match self {
                    $(Self::$name { reply, .. } => reply.send(committed),)+
                }
            }
        }
    };
}

people_commands! {
    Send(draft: Box<NotificationDraft>) -> SendResult => send;
    Mark(user_id: String, id: NotificationId, read: bool) -> InboxItem => mark;
    ReadSome(user_id: String, before: usize, idempotency_key: Option<IdempotencyKey>) -> (usize, bool) => read_some;
    Dismiss(user_id: String, id: NotificationId) -> InboxItem => dismiss;
    Restore(user_id: String, id: NotificationId) -> RestoreOutcome => restore;
    Act(user_id: String, id: NotificationId, index: usize, idempotency_key: Option<IdempotencyKey>) -> PressOutcome => act;
    Remind(reminder: Box<NewReminder>) -> Reminder => remind;
    CancelReminder(user_id: Option<String>, id: Uuid) -> () => cancel_reminder;
    ChangeSettings(change: Box<SettingsRequest>) -> (PersonSettings, Option<Uuid>) => change_settings;
    PlanAnew(user_id: String, after: Uuid) -> Option<Uuid> => replan;
    ConfirmTarget(user_id: String, channel: ChannelName, code: Vec<u8>, idempotency_key: Option<IdempotencyKey>) -> PersonSettings => confirm_target;
    Unsubscribe(user_id: String, channel: ChannelName, target: String) -> () => unsubscribe;
    SettleLeases(notified: Option<Uuid>) -> Option<Uuid> => settle_leases;
    Claim(channel: ChannelName, limit: usize) -> (Vec<Claim>, bool) => claim;
    Start(start: AttemptStart) -> bool => start;
    AttemptEnd(finish: AttemptEnd, is_notified: bool) -> (bool, Option<AttemptOutcome>) => finish;
    RetryDelivery(user_id: Option<String>, id: Uuid, idempotency_key: Option<IdempotencyKey>) -> Delivery => retry_delivery;
    ClaimNotify(claim: Box<NotifyClaim>) -> NotifyClaimed => claim_notify;
    StartNotify(key: NotifyKey, fence: i64, from: SentFrom) -> bool => start_notify;
    EndNotify(end: Box<NotifyEnd>) -> Option<NotifyAnswer> => end_notify;
    RecordDecision(draft: Box<LedgerDraft>) -> () => record_decision;
    Recall(idempotency_key: IdempotencyKey) -> Option<String> => known_answer;
PutPairingCode(user_id: String, channel: ChannelName, code: Vec<u8>, idempotency_key: Option<IdempotencyKey>) -> Time => put_pairing_code;
    KeepUpdates(channel: ChannelName, lease: Option<(String, i64)>, updates: Vec<ChannelUpdate>) -> bool => keep_updates;
    WaitingUpdates(channel: ChannelName, limit: usize) -> Vec<ChannelUpdate> => waiting_updates;
    HandleUpdate(command: Box<UpdateCommand>) -> UpdateOutcome => handle_update;
    PutButtons(buttons: Vec<NewButton>) -> () => put_buttons;
    PutChatMessage(message: ChatMessage) -> () => put_chat_message;
    DueEdits(channel: ChannelName, limit: usize) -> Vec<MessageEdit> => due_edits;
    FinishEdit(chat: ChatKey, message_id: i64, end: EditEnd) -> () => finish_edit;
    TakeLease(name: String, holder: String, ttl_ms: u64) -> Option<i64> => take_lease;
    ReleaseLease(name: String, holder: String) -> () => release_lease;
    Secret(name: String, fresh: Vec<u8>) -> Vec<u8> => secret;
    Pending(caller: Caller, id: String, agent: AgentName) -> Vec<PendingNotification> => pending;
    PutSignInCode(code: SignInCode) -> () => put_sign_in_code;
    SignIn(code: Vec<u8>, session: NewSession) -> Option<SignedIn> => sign_in;
    NoteSessionUse(id: String) -> () => note_session_use;
    EndSession(owner: SessionOwner, id: String) -> bool => end_session;
    CancelDelivery(user_id: Option<String>, id: Uuid, idempotency_key: Option<IdempotencyKey>) -> Delivery => cancel_delivery;
}

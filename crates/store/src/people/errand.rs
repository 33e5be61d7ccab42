use bellwire_core::NotificationId;
use bellwire_core::person::Settings;
use uuid::Uuid;

use super::{
    Claim, Delivery, Finish, InboxItem, Letter, NewReminder, NewSettings, NotificationDraft, Pressed, Reminder, Sent,
};
use crate::command::Once;
use crate::error::StoreError;
use crate::postroom::{PostRoom, Source};
use crate::reply::Reply;

/// A line says: what is asked, with what, for which answer, and which verb of the post room answers.
macro_rules! errands {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty => $verb:ident;)+) => {
        /// What is asked of the writer on behalf of people.
        pub(crate) enum Errand {
            $($name { $($argument: $type,)* reply: Reply<$answer> },)+
        }

        impl Errand {
            /// Lets the post room decide; the answer waits for the commit. It may be decided again.
            pub(crate) async fn decide(
                &mut self,
                room: &mut PostRoom,
                source: &mut impl Source,
            ) -> Result<(), StoreError> {
                match self {
                    $(Self::$name { $($argument,)* reply } => {
                        reply.hold(room.$verb($($argument.clone(),)* source).await)
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

errands! {
    Send(draft: Box<NotificationDraft>) -> Sent => send;
    Mark(user_id: String, id: NotificationId, read: bool) -> InboxItem => mark;
    ReadSome(user_id: String, before: usize, once: Option<Once>) -> (usize, bool) => read_some;
    Dismiss(user_id: String, id: NotificationId) -> InboxItem => dismiss;
    Act(user_id: String, id: NotificationId, index: usize, once: Option<Once>) -> Pressed => act;
    Remind(reminder: Box<NewReminder>) -> Reminder => remind;
    CancelReminder(user_id: Option<String>, id: Uuid) -> () => cancel_reminder;
    ChangeSettings(change: Box<NewSettings>) -> (Settings, Option<Uuid>) => change_settings;
    PlanAnew(user_id: String, after: Uuid) -> Option<Uuid> => plan_anew;
    ConfirmAddress(user_id: String, code: Vec<u8>, once: Option<Once>) -> Settings => confirm_address;
    Unsubscribe(user_id: String, address: String) -> () => unsubscribe;
    Claim(limit: usize) -> Vec<Claim> => claim;
    Start(letter: Letter) -> bool => start;
    Finish(finish: Finish) -> bool => finish;
    RetryDelivery(user_id: Option<String>, id: Uuid, once: Option<Once>) -> Delivery => retry_delivery;
    Recall(once: Once) -> Option<String> => known_answer;
    Secret(name: String, fresh: Vec<u8>) -> Vec<u8> => secret;
    CancelDelivery(user_id: Option<String>, id: Uuid, once: Option<Once>) -> Delivery => cancel_delivery;
}

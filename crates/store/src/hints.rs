//! Routes hints to the listeners of their conversation.
//!
//! Thousands of streams may be idle while one conversation is busy, so a hint is not broadcast to all streams. A slow
//! listener loses the oldest of its hints and gets [`HintEvent::Missed`]; it never blocks another listener.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::broadcast::{self, Receiver, Sender};

use crate::command::Hint;
use crate::rows::ConversationKey;

/// How many hints are buffered per listener.
const BEHIND_MAX: usize = 16;

/// The listeners, by conversation.
#[derive(Default)]
pub(crate) struct HintRouter(Mutex<Listeners>);

type Listeners = HashMap<ConversationKey, Sender<Arc<Hint>>>;

/// One listener of one conversation.
pub struct HintReceiver {
    conversation: ConversationKey,
    receiver: Receiver<Arc<Hint>>,
    router: Arc<HintRouter>,
}

/// What a listener receives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HintEvent {
    /// A hint, after its commit.
    Hint(Arc<Hint>),
    /// Some hints were missed: read the current state again.
    Missed,
    /// The store is closed; no more hints will come.
    Closed,
}

impl HintReceiver {
    /// Waits for the next hint of this conversation.
    pub async fn next(&mut self) -> HintEvent {
        match self.receiver.recv().await {
            Ok(hint) => HintEvent::Hint(hint),
            Err(RecvError::Lagged(_)) => HintEvent::Missed,
            Err(RecvError::Closed) => HintEvent::Closed,
        }
    }

    /// The next hint, if there is one now.
    pub fn try_next(&mut self) -> Option<HintEvent> {
        match self.receiver.try_recv() {
            Ok(hint) => Some(HintEvent::Hint(hint)),
            Err(TryRecvError::Empty) => None,
            Err(TryRecvError::Lagged(_)) => Some(HintEvent::Missed),
            Err(TryRecvError::Closed) => Some(HintEvent::Closed),
        }
    }
}

impl Drop for HintReceiver {
    fn drop(&mut self) {
        let mut listeners = self.router.lock();
        // The last listener removes the conversation. This receiver is still counted.
        if listeners.get(&self.conversation).is_some_and(|sender| sender.receiver_count() <= 1) {
            listeners.remove(&self.conversation);
        }
    }
}

impl HintRouter {
    pub(crate) fn listen(self: &Arc<Self>, conversation: ConversationKey) -> HintReceiver {
        let receiver = match self.lock().entry(conversation.clone()) {
            std::collections::hash_map::Entry::Occupied(listened) => listened.get().subscribe(),
            std::collections::hash_map::Entry::Vacant(free) => {
                let (sender, receiver) = broadcast::channel(BEHIND_MAX);
                free.insert(sender);
                receiver
            }
        };
        HintReceiver { conversation, receiver, router: self.clone() }
    }

    pub(crate) fn post(&self, hint: Hint) {
        let key = ConversationKey { owner: hint.user_id.clone(), id: hint.conversation_id.clone() };
        if let Some(sender) = self.lock().get(&key) {
            // Fails only if the last listener was just dropped.
            let _ = sender.send(Arc::new(hint));
        }
    }

    /// Closes every listener's channel.
    pub(crate) fn close(&self) {
        self.lock().clear();
    }

    /// No code panics while it holds the lock, so the map is consistent even if the lock is poisoned.
    fn lock(&self) -> MutexGuard<'_, Listeners> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use bellwire_core::event::AgentName;

    use super::*;
    use crate::command::HintKind;

    fn hint(conversation: &str, count: usize) -> Hint {
        let (agent, kind) = (AgentName::main(), HintKind::Pending);
        let (user_id, conversation_id) = ("ada".into(), conversation.into());
        Hint { user_id, conversation_id, agent, kind, notifications: Vec::new(), count }
    }

    fn listen(router: &Arc<HintRouter>, id: &str) -> HintReceiver {
        router.listen(ConversationKey::new("ada", id))
    }

    #[test]
    fn a_hint_reaches_every_listener_of_its_conversation_and_no_other() {
        let router = Arc::new(HintRouter::default());
        let [mut one, mut two, mut other] = ["chat", "chat", "else"].map(|id| listen(&router, id));
        router.post(hint("chat", 1));
        for listener in [&mut one, &mut two] {
            assert_eq!(listener.try_next(), Some(HintEvent::Hint(Arc::new(hint("chat", 1)))));
        }
        assert_eq!(other.try_next(), None);
    }

    #[test]
    fn a_slow_listener_is_told_it_missed_hints_and_blocks_no_other() {
        let router = Arc::new(HintRouter::default());
        let (mut slow, mut quick) = (listen(&router, "chat"), listen(&router, "chat"));
        for count in 0..2 * BEHIND_MAX {
            router.post(hint("chat", count));
            assert_eq!(quick.try_next(), Some(HintEvent::Hint(Arc::new(hint("chat", count)))));
        }
        assert_eq!(slow.try_next(), Some(HintEvent::Missed));
    }

    #[test]
    fn a_conversation_without_listeners_is_removed() {
        let router = Arc::new(HintRouter::default());
        let (one, two) = (listen(&router, "chat"), listen(&router, "chat"));
        drop(one);
        assert_eq!(router.lock().len(), 1);
        drop(two);
        assert_eq!(router.lock().len(), 0);
    }

    #[test]
    fn listeners_get_closed_when_the_store_closes() {
        let router = Arc::new(HintRouter::default());
        let mut listener = listen(&router, "chat");
        router.close();
        assert_eq!(listener.try_next(), Some(HintEvent::Closed));
    }
}

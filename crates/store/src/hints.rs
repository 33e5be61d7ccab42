//! Who listens for which conversation: a hint wakes its own listeners and nobody else.
//!
//! Thousands of streams wait while one conversation is busy, so hints are routed and not broadcast to all. A listener
//! that reads too slowly loses the oldest of its own hints and is told so; it never holds up anybody else.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::broadcast::error::{RecvError, TryRecvError};
use tokio::sync::broadcast::{self, Receiver, Sender};

use crate::command::Hint;
use crate::rows::ConversationKey;

/// How many hints a slow listener may be behind.
const BEHIND_MAX: usize = 16;

/// The listeners, by conversation.
#[derive(Default)]
pub(crate) struct HintRouter(Mutex<Listeners>);

type Listeners = HashMap<ConversationKey, Sender<Arc<Hint>>>;

/// One listener of one conversation.
pub struct HintReceiver {
    conversation: ConversationKey,
    receiver: Receiver<Arc<Hint>>,
    board: Arc<HintRouter>,
}

/// What a listener hears.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HintEvent {
    /// A hint, after its commit.
    Hint(Arc<Hint>),
    /// Some hints were missed: ask for the state anew.
    Missed,
    /// The store is closed; there will be nothing more.
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

    /// What there is to hear without waiting.
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
        let mut listeners = self.board.lock();
        // The last one takes the conversation off the board; its own receiver is still counted here.
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
        HintReceiver { conversation, receiver, board: self.clone() }
    }

    pub(crate) fn post(&self, hint: Hint) {
        let key = ConversationKey { owner: hint.user_id.clone(), id: hint.conversation_id.clone() };
        if let Some(sender) = self.lock().get(&key) {
            // The last listener may be just leaving.
            let _ = sender.send(Arc::new(hint));
        }
    }

    /// Tells every listener that nothing more will come.
    pub(crate) fn close(&self) {
        self.lock().clear();
    }

    /// Nothing panics while it is held, so a poisoned lock still guards a whole map.
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

    fn listen(board: &Arc<HintRouter>, id: &str) -> HintReceiver {
        board.listen(ConversationKey::new("ada", id))
    }

    #[test]
    fn a_hint_reaches_every_listener_of_its_conversation_and_no_other() {
        let board = Arc::new(HintRouter::default());
        let [mut one, mut two, mut other] = ["chat", "chat", "else"].map(|id| listen(&board, id));
        board.post(hint("chat", 1));
        for listener in [&mut one, &mut two] {
            assert_eq!(listener.try_next(), Some(HintEvent::Hint(Arc::new(hint("chat", 1)))));
        }
        assert_eq!(other.try_next(), None);
    }

    #[test]
    fn a_slow_listener_is_told_it_missed_hints_and_blocks_no_other() {
        let board = Arc::new(HintRouter::default());
        let (mut slow, mut quick) = (listen(&board, "chat"), listen(&board, "chat"));
        for count in 0..2 * BEHIND_MAX {
            board.post(hint("chat", count));
            assert_eq!(quick.try_next(), Some(HintEvent::Hint(Arc::new(hint("chat", count)))));
        }
        assert_eq!(slow.try_next(), Some(HintEvent::Missed));
    }

    #[test]
    fn a_conversation_without_listeners_is_removed() {
        let board = Arc::new(HintRouter::default());
        let (one, two) = (listen(&board, "chat"), listen(&board, "chat"));
        drop(one);
        assert_eq!(board.lock().len(), 1);
        drop(two);
        assert_eq!(board.lock().len(), 0);
    }

    #[test]
    fn listeners_hear_that_the_store_is_closed() {
        let board = Arc::new(HintRouter::default());
        let mut listener = listen(&board, "chat");
        board.close();
        assert_eq!(listener.try_next(), Some(HintEvent::Closed));
    }
}

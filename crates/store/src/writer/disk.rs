//! Where the backend is: here, to be asked, or away with a commit while the next one is decided.
//!
//! Whoever asks it something waits until it is back: so what it says is never older than what was decided before, and
//! what is decided without asking waits for nothing.

use std::sync::Arc;

use bellwire_core::{EventId, NotificationId, Time};
use tokio::sync::{mpsc, oneshot};
use uuid::Uuid;

use super::committing::{Back, Trip};
use super::{Backend, Group};
use crate::command::Once;
use crate::error::{ErrorKind, StoreError};
use crate::packed::Packed;
use crate::people::{ConfirmationRow, Delivery, InboxItem, LoadedPerson, Reminder};
use crate::postroom::{LoadedMailbox, PeopleSource, Source};
use crate::rows::{BroughtRow, Changes, ConversationKey, ConversationRow, EventRow, InjectionRow, MailboxKey, OnceRow};

pub(super) struct Disk<B> {
    at: Whereabouts<B>,
    trips: mpsc::UnboundedSender<Trip<B>>,
    /// What became of the last commit, until somebody asks.
    written: Option<Written>,
}

enum Whereabouts<B> {
    Here(B),
    Away(oneshot::Receiver<Back<B>>),
    /// It never came back: who commits has broken down.
    Lost,
}

/// What a commit was to write, and whether it did.
pub(super) struct Written {
    pub(super) changes: Changes,
    pub(super) committed: Result<(), StoreError>,
}

impl<B: Backend> Disk<B> {
    pub(super) fn new(backend: B, trips: mpsc::UnboundedSender<Trip<B>>) -> Self {
        Self { at: Whereabouts::Here(backend), trips, written: None }
    }

    pub(super) fn is_away(&self) -> bool {
        matches!(self.at, Whereabouts::Away(_))
    }

    pub(super) fn is_lost(&self) -> bool {
        matches!(self.at, Whereabouts::Lost)
    }

    /// What became of the last commit, said once.
    pub(super) fn written(&mut self) -> Option<Written> {
        self.written.take()
    }

    /// Waits until it is back. May be given up and begun again.
    pub(super) async fn come_back(&mut self) {
        let Whereabouts::Away(away) = &mut self.at else { return };
        match away.await {
            Ok(Back { backend, written }) => {
                self.at = Whereabouts::Here(backend);
                self.written = Some(written);
            }
            Err(_) => self.at = Whereabouts::Lost,
        }
    }

    /// The backend, once it is here. A commit that failed on the way is said here too: what is being decided may rest on
    /// what it did not write.
    pub(super) async fn here(&mut self) -> Result<&mut B, StoreError> {
        self.come_back().await;
        if let Some(Written { committed: Err(error), .. }) = &self.written {
            return Err(error.clone());
        }
        match &mut self.at {
            Whereabouts::Here(backend) => Ok(backend),
            _ => Err(StoreError::new(ErrorKind::Retry, "the store is shutting down")),
        }
    }

    /// Sends it away with a commit. It must be here.
    pub(super) fn send(&mut self, changes: Changes, group: Group) {
        let (home, away) = oneshot::channel();
        match std::mem::replace(&mut self.at, Whereabouts::Away(away)) {
            // Where nobody commits any more the trip is dropped, and with it the way home: it is lost.
            Whereabouts::Here(backend) => drop(self.trips.send(Trip { backend, changes, group, home })),
            _ => self.at = Whereabouts::Lost,
        }
    }

    /// The backend for good, once it is back.
    pub(super) async fn into_backend(mut self) -> Option<B> {
        self.come_back().await;
        match self.at {
            Whereabouts::Here(backend) => Some(backend),
            _ => None,
        }
    }
}

/// A line says: what is asked, with what, for which answer.
macro_rules! asked_here {
    ($trait:ident: $($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)+) => {
        impl<B: Backend> $trait for Disk<B> {
            $(async fn $name(&mut self, $($argument: $type),*) -> Result<$answer, StoreError> {
                self.here().await?.$name($($argument),*).await
            })+
        }
    };
}

asked_here! { Source:
    conversation(key: &ConversationKey) -> Option<ConversationRow>;
    conversations_named(id: &str) -> Vec<ConversationRow>;
    open_conversations(user_id: &str, since: Time, limit: usize) -> Vec<Arc<str>>;
    mailbox(key: &MailboxKey) -> Option<LoadedMailbox>;
    sub_agents(key: &ConversationKey) -> Vec<Arc<str>>;
    disabled(user_id: &str) -> Vec<String>;
    brought(owner: &str, id: &str) -> Option<(BroughtRow, EventRow)>;
    once(once: &Once) -> Option<OnceRow>;
    injection(key: &MailboxKey, call_id: &str) -> Option<InjectionRow>;
    events(ids: &[EventId]) -> Vec<(EventId, Packed)>;
    due(now: Time, limit: usize) -> Vec<MailboxKey>;
}

asked_here! { PeopleSource:
    person(user_id: &str, since: Time) -> LoadedPerson;
    inbox_item(user_id: &str, id: NotificationId) -> Option<InboxItem>;
    unread(user_id: &str) -> Vec<InboxItem>;
    reminder(id: Uuid) -> Option<Reminder>;
    waiting_reminders(user_id: &str) -> usize;
    due_reminders(now: Time, limit: usize) -> Vec<Reminder>;
    delivery(id: Uuid) -> Option<Delivery>;
    due_deliveries(now: Time, limit: usize) -> Vec<Delivery>;
    waiting_deliveries(user_id: &str) -> Vec<Delivery>;
    leased_deliveries() -> Vec<Delivery>;
    letter(user_id: &str, letter_id: Uuid) -> Vec<Delivery>;
    codes_since(user_id: &str, since: Time) -> usize;
    confirmation(user_id: &str) -> Option<ConfirmationRow>;
    secret(name: &str) -> Option<Vec<u8>>;
}

//! The interface of what drives mailboxes: the conversation in memory, or a hub that stores them as rows.

use std::sync::Arc;

use bellwire_core::conversation::{ConversationUpdate, InjectError, InjectOptions, PublishResult};
use bellwire_core::mailbox::MailboxError;
use bellwire_core::{
    AgentName, Boundary, Conversation, Event, Inject, Injection, Mailbox, Preferences, Subscribers, Time,
};

pub(crate) trait Driver {
    fn publish(&mut self, event: Event, now: Time) -> Result<PublishResult, MailboxError>;
    fn inject(
        &mut self,
        request: Inject,
        more: InjectOptions,
        now: Time,
    ) -> Result<(Injection, Vec<ConversationUpdate>), InjectError>;
    fn tick(&mut self, now: Time) -> Vec<ConversationUpdate>;
    fn wakes_at(&self) -> Time;
    fn mailbox(&self, agent: &AgentName) -> Option<&Mailbox>;
    fn subscribers(&self) -> &Arc<Subscribers>;
    fn set_subscribers(&mut self, subscribers: Arc<Subscribers>);
    fn set_preferences(&mut self, preferences: Preferences);
    fn boundary(&self) -> &Boundary;
    fn rotate_boundary(&mut self);
    fn crash(&mut self);
}

impl Driver for Conversation {
    fn publish(&mut self, event: Event, now: Time) -> Result<PublishResult, MailboxError> {
        Self::publish(self, event, now)
    }

    fn inject(
        &mut self,
        request: Inject,
        more: InjectOptions,
        now: Time,
    ) -> Result<(Injection, Vec<ConversationUpdate>), InjectError> {
        self.inject_with(request, more, now)
    }

    fn tick(&mut self, now: Time) -> Vec<ConversationUpdate> {
        Self::tick(self, now)
    }

    fn wakes_at(&self) -> Time {
        Self::wakes_at(self)
    }

    fn mailbox(&self, agent: &AgentName) -> Option<&Mailbox> {
        Self::mailbox(self, agent)
    }

    fn subscribers(&self) -> &Arc<Subscribers> {
        Self::subscribers(self)
    }

    fn set_subscribers(&mut self, subscribers: Arc<Subscribers>) {
        Self::set_subscribers(self, subscribers);
    }

    fn set_preferences(&mut self, preferences: Preferences) {
        Self::set_preferences(self, preferences);
    }

    fn boundary(&self) -> &Boundary {
        Self::boundary(self)
    }

    fn rotate_boundary(&mut self) {
        Self::rotate_boundary(self);
    }

    fn crash(&mut self) {
        Self::crash(self);
    }
}

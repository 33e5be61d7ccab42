//! Size: every mailbox stays within its bounds, and the person's own messages are never dropped.

use std::collections::{BTreeSet, HashSet};

use bellwire_core::conversation::ConversationUpdate;
use bellwire_core::event::EventCause;
use bellwire_core::mailbox::{BLOB_MAX, PENDING_MAX};
use bellwire_core::notification::EndReason;
use bellwire_core::{AgentName, NotificationId, Verdict};

use super::{Action, Law, StepRecord};

/// The most subscribers that listen for messages here; each may hold one in a batch.
const LISTENERS: usize = 8;

/// Pending notifications and saved bytes stay within their bounds.
#[derive(Default)]
pub(crate) struct Bounds {
    handled: u32,
    fullest: usize,
    /// Agents with requeued injections: messages of the person among these are pending again, even beyond the bound.
    with_requeued: HashSet<AgentName>,
}

impl Law for Bounds {
    fn observe(&mut self, record: &StepRecord<'_>) {
        self.handled += 1;
        let pending = record.mailbox.pending();
        let from_person = pending.iter().filter(|row| row.from_person).count();
        if !record.unseen().is_empty() {
            self.with_requeued.insert(record.agent.clone());
        }
        let beyond = self.with_requeued.contains(record.agent) && from_person > PENDING_MAX;
        let bound = if beyond { from_person } else { PENDING_MAX };
        assert!(pending.len() <= bound + 1, "{} are pending", pending.len());
        if let Action::Published { event, result: Err(_) } = record.action {
            assert_eq!(event.cause(), EventCause::Person, "only a message can be refused");
            let alive = pending.iter().filter(|row| row.from_person && row.expires > record.given).count();
            assert!(alive + LISTENERS >= PENDING_MAX, "refused with {alive} messages");
        }
        let references = record.mailbox.references().count();
        if references > self.fullest || self.handled.is_multiple_of(64) {
            self.fullest = self.fullest.max(references + references / 8);
            let saved = record.mailbox.save().len();
            assert!(saved <= BLOB_MAX, "{saved} bytes");
        }
    }
}

/// A message of the person is refused at once, or an agent reads it.
#[derive(Default)]
pub(crate) struct PersonIsHeard {
    messages: BTreeSet<NotificationId>,
}

impl Law for PersonIsHeard {
    fn observe(&mut self, record: &StepRecord<'_>) {
        if let Action::Published { event, result: Ok(receipt) } = record.action
            && event.cause() == EventCause::Person
        {
            for (_, verdict) in &receipt.verdicts {
                assert_ne!(*verdict, Verdict::Suppressed);
                self.messages.extend(verdict.notification());
            }
        }
        for update in record.updates {
            if let ConversationUpdate::Ended(id, EndReason::Folded) = update {
                let in_answer = record.injection().is_some_and(|(_, answer)| answer.notifications.contains(id));
                assert!(in_answer || !self.messages.contains(id), "a message of the person was folded");
            }
        }
    }
}

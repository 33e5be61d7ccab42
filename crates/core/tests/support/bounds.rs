//! Size: whatever comes, a mailbox stays small, and still the person's own word is never dropped.

use std::collections::{BTreeSet, HashSet};

use bellwire_core::conversation::ConversationUpdate;
use bellwire_core::event::EventCause;
use bellwire_core::mailbox::{BLOB_MAX, PENDING_MAX};
use bellwire_core::notification::EndReason;
use bellwire_core::{AgentName, NotificationId, Verdict};

use super::{Deed, Law, Moment};

/// A message is at most so many notifications here, and may be in a batch of each.
const LISTENERS: usize = 8;

/// Whatever comes, a mailbox stays small.
#[derive(Default)]
pub(crate) struct Bounds {
    handled: u32,
    fullest: usize,
    /// Whom earlier answers were given back to: the person's words among them wait again, however many there are.
    given_back: HashSet<AgentName>,
}

impl Law for Bounds {
    fn see(&mut self, moment: &Moment<'_>) {
        self.handled += 1;
        let pending = moment.mailbox.pending();
        let from_person = pending.iter().filter(|row| row.from_person).count();
        if !moment.unseen().is_empty() {
            self.given_back.insert(moment.agent.clone());
        }
        let beyond = self.given_back.contains(moment.agent) && from_person > PENDING_MAX;
        let bound = if beyond { from_person } else { PENDING_MAX };
        assert!(pending.len() <= bound + 1, "{} wait", pending.len());
        if let Deed::Published { event, result: Err(_) } = moment.deed {
            assert_eq!(event.cause(), EventCause::Person, "only a message can be refused");
            let alive = pending.iter().filter(|row| row.from_person && row.expires > moment.given).count();
            assert!(alive + LISTENERS >= PENDING_MAX, "refused with {alive} messages");
        }
        let references = moment.mailbox.references().count();
        if references > self.fullest || self.handled.is_multiple_of(64) {
            self.fullest = self.fullest.max(references + references / 8);
            let saved = moment.mailbox.save().len();
            assert!(saved <= BLOB_MAX, "{saved} bytes");
        }
    }
}

/// The person's own word is never dropped: it is refused at once, or an agent hears it.
#[derive(Default)]
pub(crate) struct PersonIsHeard {
    messages: BTreeSet<NotificationId>,
}

impl Law for PersonIsHeard {
    fn see(&mut self, moment: &Moment<'_>) {
        if let Deed::Published { event, result: Ok(receipt) } = moment.deed
            && event.cause() == EventCause::Person
        {
            for (_, verdict) in &receipt.verdicts {
                assert_ne!(*verdict, Verdict::Suppressed);
                self.messages.extend(verdict.notification());
            }
        }
        for news in moment.news {
            if let ConversationUpdate::Ended(id, EndReason::Folded) = news {
                let in_answer = moment.injection().is_some_and(|(_, answer)| answer.notifications.contains(id));
                assert!(in_answer || !self.messages.contains(id), "the person's word was crowded out");
            }
        }
    }
}

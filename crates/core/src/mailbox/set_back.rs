//! Repairs a mailbox whose time is in the future because the clock was wrong when it was last handled.

use super::Mailbox;
use crate::Time;

impl Mailbox {
    /// Moves every time in the mailbox back by as much as its own time is ahead of `now`, so that windows, batches and
    /// times to live keep their remaining duration. Returns whether the mailbox was ahead; if so, its state and the
    /// rows of all its pending notifications have changed.
    pub fn set_back(&mut self, now: Time) -> bool {
        let ahead = self.now.millis_since(now);
        if ahead == 0 {
            return false;
        }
        self.now = now;
        self.batches.0.iter_mut().for_each(|batch| batch.due = batch.due.minus(ahead));
        let held = self.batches.0.iter_mut().map(|batch| &mut batch.notification);
        for notification in held.chain(&mut self.pending) {
            notification.since = notification.since.minus(ahead);
            notification.expires = notification.expires.minus(ahead);
        }
        self.dedupe.set_back(ahead);
        self.storm.set_back(ahead);
        self.presence.set_back(ahead);
        if let Some(detectors) = &mut self.detectors {
            detectors.set_back(ahead);
        }
        self.next_timer = self.wakes_at();
        true
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::{Event, Ids, InjectionPoint, Input, MailboxContext, MailboxKind, Severity, Subscribers};

    const DAY_MS: u64 = 24 * 60 * 60 * 1000;

    /// Publishes three failures within 2.5 s of `start`; by then the first batch has closed.
    fn used(start: Time) -> Mailbox {
        let mut context = MailboxContext::new(Subscribers::bundled().into(), Ids::seeded(1));
        let mut mailbox = Mailbox::new(MailboxKind::MainAgent, [7; 16]);
        for (after, tool) in [(0, "grep"), (1_000, "grep"), (2_500, "find")] {
            context.now = start.plus(after);
            let payload = json!({"tool_name": tool, "arguments": {}});
            let event = Event::new("tool.call.failure", "tool_executor", Severity::Error, payload).unwrap();
            let event = event.with_id(context.ids.event(Time::ZERO)).at(Time::ZERO);
            mailbox.handle(Input::Event(&event), &mut context).unwrap();
            while context.poll().is_some() {}
        }
        mailbox.presence.reached(InjectionPoint::AfterTool, false, context.now);
        mailbox
    }

    #[test]
    fn a_mailbox_ahead_of_the_clock_keeps_its_remaining_durations() {
        let today = Time::from_millis(1_767_454_200_000);
        let (mut ahead, expected) = (used(today.plus(3 * DAY_MS)), used(today));
        assert!(ahead.set_back(today.plus(2_500)));
        assert_eq!(ahead.wakes_at(), expected.wakes_at());
        let state = |mailbox: &Mailbox| {
            let times = mailbox.pending().iter().map(|one| (one.since, one.expires, one.sequence));
            (times.collect::<Vec<_>>(), mailbox.dedupe.next_close(), mailbox.is_working(today))
        };
        assert_eq!(state(&ahead), state(&expected));
        assert_eq!((&ahead.storm, &ahead.presence), (&expected.storm, &expected.presence));
        assert_eq!(ahead.detectors, expected.detectors);
    }

    #[test]
    fn a_mailbox_that_is_not_ahead_stays_unchanged() {
        let mut mailbox = used(Time::from_millis(1_000_000));
        let before = mailbox.clone();
        assert!(!mailbox.set_back(Time::from_millis(1_002_500)));
        assert_eq!(mailbox, before);
    }
}

//! Timers: fires those of mailboxes, sends due reminders, and reads damaged rows again.

use std::collections::BTreeSet;

use bellwire_core::Input;

use super::{Executor, RowSource};
use crate::error::{ErrorKind, StoreError};
use crate::rows::MailboxKey;

/// The work per step for reminders, after the mailboxes.
const REMINDER_WORK: usize = 400;

impl Executor {
    /// Fires the timers of at most `limit` due mailboxes, the oldest first, until `work` is reached; then sends due
    /// reminders. Returns true if there may be more. Damaged mailboxes are skipped.
    pub(crate) async fn tick(
        &mut self,
        limit: usize,
        work: usize,
        source: &mut impl RowSource,
    ) -> Result<bool, StoreError> {
        let now = self.context.now;
        let repaired = self.retry_damaged(source).await?;
        let due = source.due(now, limit, &self.damage, &self.erasing.users()).await?;
        let mut more = due.more;
        for key in repaired.into_iter().chain(self.damage.readable(due.found)) {
            if self.changes.work() >= work {
                more = true;
                break;
            }
            self.changes.begin();
            match self.let_time_pass(&key, source).await {
                Err(error) if error.kind == ErrorKind::Damaged => {
                    self.damage.mark_mailbox(key, now, &error);
                    // Its staged changes must be dropped. The next tick skips the mailbox from the start.
                    if self.changes.is_touched() {
                        return Err(error);
                    }
                }
                Err(_) if self.take_unfinished() => {
                    more = true;
                    break;
                }
                passed => {
                    passed?;
                    self.damage.clear_mailbox(&key);
                }
            }
        }
        more |= self.send_due_reminders((limit / 8).max(1), REMINDER_WORK, source).await?;
        more |= self.settle_notify((limit / 4).max(1), source).await?;
        Ok(more)
    }

    pub(super) async fn let_time_pass(
        &mut self,
        key: &MailboxKey,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        self.load_mailbox(key, source).await?;
        if key.origin().is_some() {
            self.person(key.owner(), source).await?;
        }
        self.handle(key, Input::Time)?;
        let drained = self.drain(key);
        self.deliver_to_inbox(key, drained.ready, source).await
    }

    /// Reads damaged rows again whose retry is due, because they may have been repaired. Returns the mailboxes that can be
    /// read; they count as damaged until they are handled.
    async fn retry_damaged(&mut self, source: &mut impl RowSource) -> Result<Vec<MailboxKey>, StoreError> {
        let now = self.context.now;
        for user_id in self.damage.people_to_retry(now) {
            self.is_readable(&user_id, source).await?;
        }
        let mut readable = Vec::new();
        for key in self.damage.mailboxes_to_retry(now) {
            match source.mailbox(&key).await {
                Ok(Some(_)) => readable.push(key),
                Ok(None) => self.damage.clear_mailbox(&key),
                Err(error) if error.kind == ErrorKind::Damaged => self.damage.mark_mailbox(key, now, &error),
                Err(error) => return Err(error),
            }
        }
        Ok(readable)
    }

    /// Whether the person's rows can be read. Nothing is sent to a person whose rows are damaged; others are not
    /// affected.
    pub(super) async fn is_readable(&mut self, user_id: &str, source: &mut impl RowSource) -> Result<bool, StoreError> {
        match self.person(user_id, source).await {
            Err(error) if error.kind == ErrorKind::Damaged => {
                self.damage.mark_person(user_id, self.context.now, &error);
                Ok(false)
            }
            loaded => {
                loaded?;
                self.damage.clear_person(user_id);
                Ok(true)
            }
        }
    }

    /// The people to whom nothing is sent: those whose rows are damaged, and those who are being erased.
    pub(super) fn unreachable_people(&self) -> BTreeSet<String> {
        let mut people = self.erasing.users();
        people.extend(self.damage.people().cloned());
        people
    }
}

#[cfg(test)]
mod tests {
    use bellwire_core::subscriber::Subscribers;
    use bellwire_core::{Event, Randomness, Severity, Time};
    use serde_json::json;

    use super::*;
    use crate::command::{Caller, IncomingEvent, Publish};
    use crate::executor::Publishing;
    use crate::memory::Memory;
    use crate::people::{NewReminder, PeopleRules};
    use crate::writer::Backend as _;

    async fn commit(executor: &mut Executor, rows: &mut Memory) -> Result<(), StoreError> {
        executor.build_rows();
        rows.commit(&executor.changes).await?;
        executor.committed();
        Ok(())
    }

    #[tokio::test]
    async fn due_rows_of_a_person_who_is_being_erased_take_no_place_of_others() -> Result<(), Box<dyn std::error::Error>>
    {
        let mut executor =
            Executor::new(Subscribers::bundled().into(), Randomness::repeatable(1), PeopleRules::default().into());
        let mut rows = Memory::default();
        for (at, user, conversations) in [(1_000, "ada", 40), (2_000, "bob", 1)] {
            executor.set_now(Time::from_millis(at));
            for number in 0..conversations {
                let payload = json!({ "tool_name": "grep", "error_type": "timeout" });
                let event = Event::new("tool.call.failure", "tool_executor", Severity::Error, payload)?;
                let events = vec![IncomingEvent::new(event.in_conversation(&format!("chat-{number}")), None)];
                let publish = Publish { caller: Caller::user(user), events, idempotency_key: None };
                executor.publish(&mut Publishing::new(publish), &mut rows).await?;
                let reminder = NewReminder {
                    caller: Caller::user(user),
                    user_id: user.into(),
                    origin: "butler".into(),
                    conversation_id: None,
                    correlation_id: None,
                    message: "Buy milk".into(),
                    at: Time::from_millis(at),
                    idempotency_key: None,
                };
                executor.remind(Box::new(reminder), &mut rows).await?;
                commit(&mut executor, &mut rows).await?;
            }
        }
        executor.set_now(Time::from_millis(100_000));
        executor.evict_user("ada");
        executor.erasing.begin("ada");
        executor.tick(8, 1_000, &mut rows).await?;
        let people = &executor.changes.people;
        assert!(people.inbox.values().any(|item| item.user_id == "bob"), "Bob is reminded by the first tick");
        assert!(executor.changes.mailboxes.iter().any(|key| &**key.owner() == "bob"), "and his window closes");
        assert!(people.inbox.values().all(|item| item.user_id == "bob"));
        Ok(())
    }
}

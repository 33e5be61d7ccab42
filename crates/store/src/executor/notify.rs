//! Requests of the `notify` tool: claims them, records their start and outcome, and releases or ends those whose lease has
//! ended.

use std::collections::BTreeSet;
use std::future::Future;

use bellwire_core::Time;
use bellwire_core::notify::{ErrorClass, NotifyError};

use super::notify_admission::EarlierAttempt;
use super::notify_rows::{draft_of, ended_draft, new_row};
use super::outcome::failure_note;
use super::people::InboxDraft;
use super::{Executor, RowSource};
use crate::damage::Found;
use crate::error::StoreError;
use crate::notify::{
    AnswerCount, Claimant, LedgerDecision, LedgerDraft, NotifyAnswer, NotifyClaim, NotifyClaimed, NotifyEnd,
    NotifyEnding, NotifyKey, NotifyRow, NotifyState, SentFrom,
};
use crate::people::DeliveryState;

/// Loads the rows of `notify`. Part of [`RowSource`].
pub(crate) trait NotifyRowSource {
    fn notify_request(&mut self, key: &NotifyKey)
    -> impl Future<Output = Result<Option<NotifyRow>, StoreError>> + Send;
    /// Claimed and started requests whose lease has ended, oldest first, except those of some people; at most `limit`.
    fn lapsed_notify(
        &mut self,
        now: Time,
        limit: usize,
        except: &BTreeSet<String>,
    ) -> impl Future<Output = Result<Found<NotifyRow>, StoreError>> + Send;
    /// When the `nth` newest request to this target was made, counted from 1, if that is after `since`.
    fn nth_listed(
        &mut self,
        limit_key: &NotifyKey,
        since: Time,
        nth: usize,
    ) -> impl Future<Output = Result<Option<Time>, StoreError>> + Send;
    fn answer_count(&mut self, key: &NotifyKey)
    -> impl Future<Output = Result<Option<AnswerCount>, StoreError>> + Send;
    /// The number of decisions of an origin on a day.
    fn ledger_count(&mut self, origin: &str, day: i64) -> impl Future<Output = Result<u64, StoreError>> + Send;
}

impl Executor {
    /// Claims a request for one attempt, or returns what became of an equal one.
    pub(crate) async fn claim_notify(
        &mut self,
        claim: Box<NotifyClaim>,
        source: &mut impl RowSource,
    ) -> Result<NotifyClaimed, StoreError> {
        let now = self.context.now;
        let previous = self.notify_row(&claim.key, source).await?;
        let known = previous.as_ref().filter(|row| !row.is_forgotten(now));
        if let Some(row) = known {
            if row.is_leased() && !row.has_lapsed(now) {
                return match row.is_passed_on && claim.claimant == Claimant::Messenger {
                    true => self.take_over(row.clone(), source).await,
                    false => Ok(NotifyClaimed::InFlight),
                };
            }
            if row.state == NotifyState::Started {
                return self.end_unknown(row.clone(), source).await.map(NotifyClaimed::Ended);
            }
            if let (NotifyState::Ended, Some(answer)) = (row.state, row.answer.clone()) {
                return Ok(NotifyClaimed::Ended(answer));
            }
            if row.state == NotifyState::Claimed {
                self.abandon(row.clone(), source).await?;
            }
        }
        let earlier = known.map(|row| EarlierAttempt { inbox_item: row.notification_id });
        let fence = previous.as_ref().map_or(0, |row| row.fence) + 1;
        match self.admit_notify(&claim, earlier, source).await? {
            Admission::Refused(error) => {
                let (class, reason) = (Some(error.class), Some(error.message.clone()));
                let draft = LedgerDraft { class, reason, ..draft_of(&claim, LedgerDecision::Refused) };
                self.record(draft, source).await?;
                Ok(NotifyClaimed::Refused(error))
            }
            Admission::Deferred { notification_id, ending } => {
                let notification_id = Some(notification_id);
                let answer = NotifyAnswer::without_attempt(ending, notification_id);
                let row = NotifyRow { notification_id, ..new_row(&claim, fence, now) };
                let draft = LedgerDraft {
                    reason: Some("quiet hours".to_owned()),
                    notification_id: notification_id.map(|id| id.0),
                    ..draft_of(&claim, LedgerDecision::Deferred)
                };
                self.end_request(row, answer.clone());
                self.record(draft, source).await?;
                Ok(NotifyClaimed::Ended(answer))
            }
            Admission::Now { notification_id, timezone } => {
                let lease_until = Some(now.plus(self.rules.claim_ms));
                let row = NotifyRow { notification_id, lease_until, ..new_row(&claim, fence, now) };
                self.changes.notify.requests.insert(claim.key, row);
                Ok(NotifyClaimed::Mine { fence, notification_id, timezone })
            }
        }
    }

    /// Gives the Messenger a request that another process of this store has passed on. That process has checked and counted
    /// it; from now on only the Messenger's outcome counts.
    async fn take_over(&mut self, row: NotifyRow, source: &mut impl RowSource) -> Result<NotifyClaimed, StoreError> {
        let timezone = match &row.user_id {
            Some(user_id) => self.person(user_id, source).await?.settings.timezone(),
            None => None,
        };
        let (fence, notification_id) = (row.fence + 1, row.notification_id);
        let lease_until = Some(self.context.now.plus(self.rules.claim_ms));
        let state = NotifyState::Claimed;
        let taken = NotifyRow { state, is_passed_on: false, fence, lease_until, ..row };
        self.changes.notify.requests.insert(taken.key, taken);
        Ok(NotifyClaimed::Mine { fence, notification_id, timezone })
    }

    /// Records the start of an attempt, if the claim is still valid.
    pub(crate) async fn start_notify(
        &mut self,
        key: NotifyKey,
        fence: i64,
        from: SentFrom,
        source: &mut impl RowSource,
    ) -> Result<bool, StoreError> {
        let now = self.context.now;
        let row = self.notify_row(&key, source).await?;
        let Some(row) = row.filter(|row| row.fence == fence && row.state == NotifyState::Claimed) else {
            return Ok(false);
        };
        self.check_erasing(&row)?;
        let (is_passed_on, lease_ms) = match from {
            SentFrom::Here => (false, self.rules.attempt_ms(&row.channel)),
            SentFrom::Elsewhere => (true, self.rules.passed_on_ms(&row.channel)),
        };
        let (state, lease_until) = (NotifyState::Started, Some(now.plus(lease_ms)));
        self.changes.notify.requests.insert(key, NotifyRow { state, is_passed_on, lease_until, ..row });
        Ok(true)
    }

    /// Records the outcome of an attempt. A request that ended meanwhile keeps its answer.
    pub(crate) async fn end_notify(
        &mut self,
        end: Box<NotifyEnd>,
        source: &mut impl RowSource,
    ) -> Result<Option<NotifyAnswer>, StoreError> {
        let (fence, unreachable_target) = (end.fence, end.unreachable_target.clone());
        let row = self.notify_row(&end.key, source).await?;
        let answer = end.into_answer(row.as_ref().and_then(|row| row.notification_id));
        let Some(row) = row.filter(|row| self.check_erasing(row).is_ok()) else {
            // The person was erased during the attempt, and the request with them.
            return Ok(Some(answer));
        };
        if let (NotifyState::Ended, Some(known)) = (row.state, row.answer.clone()) {
            return Ok(Some(known));
        }
        if row.fence != fence || !row.is_leased() {
            return Ok(if row.is_leased() { None } else { Some(answer) });
        }
        let draft = ended_draft(&row, &answer.ending);
        if let Some(target) = &unreachable_target {
            self.give_up_channel(&row, target, source).await?;
        }
        match answer.ending.is_final() {
            true => self.end_request(row, answer.clone()),
            false => self.release(row, answer.clone()),
        }
        self.record(draft, source).await?;
        Ok(Some(answer))
    }

    /// Switches the channel off for a person whom it cannot reach, and tells them in the inbox.
    async fn give_up_channel(
        &mut self,
        row: &NotifyRow,
        target: &str,
        source: &mut impl RowSource,
    ) -> Result<(), StoreError> {
        let Some(user_id) = row.user_id.as_deref() else { return Ok(()) };
        self.person(user_id, source).await?;
        if self.switch_off(user_id, &row.channel, target) {
            let channel = self.rules.display_name(&row.channel);
            let text = failure_note(channel, target, DeliveryState::Failed, true, "it refuses messages from this hub");
            // Notes have no hourly limit, so it is always admitted.
            let _ = self.admit(InboxDraft::note(user_id, None, text), source).await?;
        }
        Ok(())
    }

    /// Ends started requests whose lease has ended as *unknown*, and releases claimed ones. Returns true if there may be
    /// more.
    pub(super) async fn settle_notify(
        &mut self,
        limit: usize,
        source: &mut impl RowSource,
    ) -> Result<bool, StoreError> {
        let now = self.context.now;
        let lapsed = source.lapsed_notify(now, limit, &self.erasing.users()).await?;
        let lapsed = self.damage.readable(lapsed);
        let more = lapsed.len() == limit;
        for row in lapsed {
            // A command of this commit may have changed it.
            let row = self.changes.notify.requests.get(&row.key).cloned().unwrap_or(row);
            match row.state {
                _ if !row.has_lapsed(now) => {}
                NotifyState::Started => drop(self.end_unknown(row, source).await?),
                _ => self.abandon(row, source).await?,
            }
        }
        Ok(more)
    }

    /// Ends a started request whose outcome was never reported. It may have been delivered, so it is not repeated.
    async fn end_unknown(&mut self, row: NotifyRow, source: &mut impl RowSource) -> Result<NotifyAnswer, StoreError> {
        let error = NotifyError::unknown_outcome("the hub stopped while it was being sent");
        let ending = NotifyEnding::failed(error, None);
        let answer = NotifyAnswer::without_attempt(ending, row.notification_id);
        let draft = ended_draft(&row, &answer.ending);
        self.end_request(row, answer.clone());
        self.record(draft, source).await?;
        Ok(answer)
    }

    /// Releases a claimed request whose caller has stopped. Nothing was sent.
    async fn abandon(&mut self, row: NotifyRow, source: &mut impl RowSource) -> Result<(), StoreError> {
        let error = NotifyError::new(ErrorClass::TargetUnavailable, "The hub stopped before it was sent. Try again");
        let answer = NotifyAnswer::without_attempt(NotifyEnding::failed(error, None), row.notification_id);
        let draft = ended_draft(&row, &answer.ending);
        self.release(row, answer);
        self.record(draft, source).await
    }

    fn end_request(&mut self, row: NotifyRow, answer: NotifyAnswer) {
        let (answer, ended_at) = (Some(answer), Some(self.context.now));
        let row = NotifyRow { state: NotifyState::Ended, answer, ended_at, lease_until: None, ..row };
        self.changes.notify.requests.insert(row.key, row);
    }

    /// Lets an equal request claim it again. The inbox item stays, so that a retry adds no second one; callers who waited
    /// for this attempt get its answer.
    fn release(&mut self, row: NotifyRow, answer: NotifyAnswer) {
        let (answer, ended_at) = (Some(answer), Some(self.context.now));
        let row = NotifyRow { state: NotifyState::Released, answer, ended_at, lease_until: None, ..row };
        self.changes.notify.requests.insert(row.key, row);
    }

    async fn notify_row(
        &mut self,
        key: &NotifyKey,
        source: &mut impl RowSource,
    ) -> Result<Option<NotifyRow>, StoreError> {
        match self.changes.notify.requests.get(key) {
            Some(row) => Ok(Some(row.clone())),
            None => source.notify_request(key).await,
        }
    }

    fn check_erasing(&self, row: &NotifyRow) -> Result<(), StoreError> {
        row.user_id.as_deref().map_or(Ok(()), |user_id| self.erasing.check(user_id))
    }
}

/// Whether a request may be attempted now.
pub(super) enum Admission {
    Now { notification_id: Option<bellwire_core::NotificationId>, timezone: Option<String> },
    Deferred { notification_id: bellwire_core::NotificationId, ending: NotifyEnding },
    Refused(NotifyError),
}

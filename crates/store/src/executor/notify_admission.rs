//! Decides whether a `notify` request may be attempted now: the recipient's settings, quiet hours and limits.

use bellwire_core::notify::{ErrorClass, Intent, NotifyError, normalized_target};
use bellwire_core::person::PersonSettings;
use bellwire_core::{NotificationId, Time};

use super::notify::Admission;
use super::people::{HOUR_MS, InboxDraft};
use super::{Executor, RowSource};
use crate::error::StoreError;
use crate::notify::{AnswerCount, Claimant, NotifyClaim, NotifyEnding, NotifyKey, NotifyRecipient};
use crate::people::{DirectMessage, InboxItemKind, InboxItemType};

/// How many replies and reactions one inbound message may have.
const ANSWERS_MAX: i64 = 20;

/// An attempt of the same request that failed and may be repeated. It was admitted and counted.
#[derive(Copy, Clone)]
pub(super) struct EarlierAttempt {
    pub(super) inbox_item: Option<NotificationId>,
}

impl Executor {
    /// Checks a request against the recipient's settings and limits. A `send` to a person adds an inbox item, unless an
    /// earlier attempt of the same request has added it.
    pub(super) async fn admit_notify(
        &mut self,
        claim: &NotifyClaim,
        earlier: Option<EarlierAttempt>,
        source: &mut impl RowSource,
    ) -> Result<Admission, StoreError> {
        let inbox_item = earlier.and_then(|earlier| earlier.inbox_item);
        match &claim.recipient {
            NotifyRecipient::Person { user_id, target } => {
                let settings = self.person(user_id, source).await?.settings.clone();
                if let Err(error) = check_target(&settings, claim, target) {
                    return Ok(Admission::Refused(error));
                }
                let timezone = settings.timezone();
                match (claim.intent, settings.quiet_until(self.context.now)) {
                    (Intent::Send, Some(until)) if claim.claimant == Claimant::Messenger => {
                        Ok(Admission::Refused(in_quiet_hours(until, self.context.now)))
                    }
                    (Intent::Send, Some(_)) => self.defer(claim, user_id, inbox_item, source).await,
                    (Intent::Send, None) => {
                        let item = self.inbox_item_of(claim, user_id, inbox_item, source).await?;
                        Ok(item.map_or_else(Admission::Refused, |id| Admission::Now {
                            notification_id: Some(id),
                            timezone,
                        }))
                    }
                    (Intent::Reply | Intent::React, _) if earlier.is_some() => {
                        Ok(Admission::Now { notification_id: None, timezone })
                    }
                    (Intent::Reply | Intent::React, _) => self.admit_answer(claim, timezone, source).await,
                }
            }
            NotifyRecipient::Listed { limit_key } if claim.intent == Intent::Send => {
                Ok(match self.listed_limit(limit_key, source).await? {
                    Some(error) => Admission::Refused(error),
                    None => Admission::Now { notification_id: None, timezone: None },
                })
            }
            NotifyRecipient::Listed { .. } if earlier.is_some() => {
                Ok(Admission::Now { notification_id: None, timezone: None })
            }
            NotifyRecipient::Listed { .. } => self.admit_answer(claim, None, source).await,
        }
    }

    /// Counts a reply or reaction against the limit of its inbound message.
    async fn admit_answer(
        &mut self,
        claim: &NotifyClaim,
        timezone: Option<String>,
        source: &mut impl RowSource,
    ) -> Result<Admission, StoreError> {
        let Some(key) = claim.answer_key else {
            return Ok(Admission::Refused(NotifyError::invalid("An answer needs the message that it answers")));
        };
        let known = match self.changes.notify.answer_counts.get(&key) {
            Some(known) => Some(known.clone()),
            None => source.answer_count(&key).await?,
        };
        let used = known.as_ref().map_or(0, |known| known.used);
        if used >= ANSWERS_MAX {
            let message = format!(
                "This message has had {ANSWERS_MAX} replies and reactions, which is the limit. Use intent 'send'"
            );
            return Ok(Admission::Refused(NotifyError::invalid(message)));
        }
        let at = known.map_or(self.context.now, |known| known.at);
        let user_id = claim.recipient.user_id().map(str::to_owned);
        self.changes.notify.answer_counts.insert(key, AnswerCount { user_id, used: used + 1, at });
        Ok(Admission::Now { notification_id: None, timezone })
    }

    /// Adds the item to the recipient's inbox. The inner error says when the hourly limit allows it.
    async fn inbox_item_of(
        &mut self,
        claim: &NotifyClaim,
        user_id: &str,
        inbox_item: Option<NotificationId>,
        source: &mut impl RowSource,
    ) -> Result<Result<NotificationId, NotifyError>, StoreError> {
        if let Some(id) = inbox_item {
            return Ok(Ok(id));
        }
        let now = self.context.now;
        let draft = InboxDraft {
            id: None,
            user_id: user_id.into(),
            kind: InboxItemKind::Message,
            item_type: InboxItemType::Info,
            origin: claim.origin.clone(),
            source: None,
            conversation_id: claim.recipients_conversation().map(str::to_owned),
            correlation_id: claim.correlation_id.clone(),
            title: claim.subject.clone(),
            message: claim.message.clone().unwrap_or_default(),
            repeats: 0,
            toast: None,
            template_error: None,
            is_delivered_elsewhere: true,
        };
        Ok(self.admit(draft, source).await?.map_err(|free| limited(free, now)))
    }

    /// Holds a message until the recipient's quiet hours end: an inbox item, and one delivery of the whole text on this
    /// channel, which is checked again when it is due.
    async fn defer(
        &mut self,
        claim: &NotifyClaim,
        user_id: &str,
        inbox_item: Option<NotificationId>,
        source: &mut impl RowSource,
    ) -> Result<Admission, StoreError> {
        let notification_id = match self.inbox_item_of(claim, user_id, inbox_item, source).await? {
            Ok(id) => id,
            Err(error) => return Ok(Admission::Refused(error)),
        };
        // As it stands in the settings: when it is due, it is compared with them.
        let target = self.people[user_id].settings.channel(claim.channel.as_str()).target.unwrap_or_default();
        let message = DirectMessage {
            origin: claim.origin.clone(),
            subject: claim.subject.clone(),
            message: claim.message.clone().unwrap_or_default(),
            needs_allowance: claim.on_behalf_of.as_deref() != Some(user_id),
        };
        let deliver_at = self.deliver_direct(user_id, &claim.channel, target, notification_id, message);
        let reason = "the recipient's quiet hours".to_owned();
        Ok(Admission::Deferred { notification_id, ending: NotifyEnding::Deferred { deliver_at, reason } })
    }

    /// Why a target without a user is refused now: it has the hourly limit that a person has.
    async fn listed_limit(
        &mut self,
        limit_key: &NotifyKey,
        source: &mut impl RowSource,
    ) -> Result<Option<NotifyError>, StoreError> {
        let now = self.context.now;
        let max = usize::try_from(self.rules.notifications_per_hour).unwrap_or(usize::MAX);
        let in_this_commit =
            self.changes.notify.requests.values().filter(|row| row.limit_key.as_ref() == Some(limit_key));
        let fresh = in_this_commit.filter(|row| row.created_at == now).count();
        let Some(stored) = max.checked_sub(fresh).filter(|left| *left > 0) else {
            return Ok(Some(limited(now.plus(HOUR_MS), now)));
        };
        // When that one is an hour old, there is room for the next.
        let oldest = source.nth_listed(limit_key, now.minus(HOUR_MS), stored).await?;
        Ok(oldest.map(|at| limited(at.plus(HOUR_MS), now)))
    }
}

/// A target is usable if it is still the one in the person's settings, verified and switched on. Mutes hold back only what
/// the person did not ask for.
fn check_target(settings: &PersonSettings, claim: &NotifyClaim, target: &str) -> Result<(), NotifyError> {
    let channel = claim.channel.as_str();
    let refused = |message: String| Err(NotifyError::invalid(message));
    let known = settings.channel(channel);
    match &known.target {
        None => refused(format!("The recipient has no {channel} target any more")),
        Some(known) if normalized_target(known) != normalized_target(target) => {
            refused(format!("The recipient's {channel} target has changed"))
        }
        Some(_) if !known.verified => refused(format!("The recipient has not confirmed this {channel} target")),
        Some(_) if !known.enabled => refused(format!("The recipient has switched {channel} off")),
        Some(_) if claim.intent == Intent::Send && settings.mutes(&claim.origin) => {
            refused(format!("The recipient has muted '{}'", claim.origin))
        }
        Some(_) => Ok(()),
    }
}

fn in_quiet_hours(until: Time, now: Time) -> NotifyError {
    let seconds = until.millis_since(now).div_ceil(1000).max(1);
    let message = "The recipient has quiet hours. Try again when they end";
    NotifyError::new(ErrorClass::OverloadRejected, message).retry_after(Some(seconds))
}

fn limited(free: Time, now: Time) -> NotifyError {
    let seconds = free.millis_since(now).div_ceil(1000).max(1);
    let message = "The recipient has got as many notifications within an hour as the limit allows. Try again later";
    NotifyError::new(ErrorClass::OverloadRejected, message).retry_after(Some(seconds))
}

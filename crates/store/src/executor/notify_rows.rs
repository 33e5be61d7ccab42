//! Builds the rows of `notify`: a new request, and what the ledger says of one.

use bellwire_core::Time;
use bellwire_core::notify::{ErrorClass, Intent};

use crate::notify::{LedgerDecision, LedgerDraft, NotifyClaim, NotifyEnding, NotifyRow, NotifyState};

pub(super) fn new_row(claim: &NotifyClaim, fence: i64, now: Time) -> NotifyRow {
    use crate::notify::NotifyRecipient::{Listed, Person};
    let (user_id, limit_key) = match &claim.recipient {
        Person { user_id, .. } => (Some(user_id.clone()), None),
        Listed { limit_key } => (None, Some(*limit_key).filter(|_| claim.intent == Intent::Send)),
    };
    NotifyRow {
        key: claim.key,
        request_id: claim.request_id,
        origin: claim.origin.clone(),
        intent: claim.intent,
        channel: claim.channel.clone(),
        user_id,
        on_behalf_of: claim.on_behalf_of.clone(),
        limit_key,
        chosen: claim.chosen.clone(),
        state: NotifyState::Claimed,
        is_passed_on: false,
        fence,
        lease_until: None,
        answer: None,
        notification_id: None,
        created_at: now,
        ended_at: None,
    }
}

pub(super) fn draft_of(claim: &NotifyClaim, decision: LedgerDecision) -> LedgerDraft {
    let person = claim.recipient.user_id().map(str::to_owned);
    LedgerDraft {
        origin: claim.origin.clone(),
        user_id: person.or_else(|| claim.on_behalf_of.clone()),
        channel: claim.channel.to_string(),
        intent: Some(claim.intent),
        decision,
        class: None,
        reason: None,
        notification_id: None,
        request_id: Some(claim.request_id),
    }
}

pub(super) fn ended_draft(row: &NotifyRow, ending: &NotifyEnding) -> LedgerDraft {
    let (decision, class, reason) = match ending {
        NotifyEnding::Delivered { .. } => (LedgerDecision::Delivered, None, None),
        NotifyEnding::Deferred { reason, .. } => (LedgerDecision::Deferred, None, Some(reason)),
        NotifyEnding::Failed { class: ErrorClass::Timeout, retryable: false, message, .. } => {
            (LedgerDecision::Unknown, Some(ErrorClass::Timeout), Some(message))
        }
        NotifyEnding::Failed { class, message, .. } => (LedgerDecision::Failed, Some(*class), Some(message)),
    };
    LedgerDraft {
        origin: row.origin.clone(),
        user_id: row.user_id.clone().or_else(|| row.on_behalf_of.clone()),
        channel: row.channel.to_string(),
        intent: Some(row.intent),
        decision,
        class,
        reason: reason.map(|text| LedgerDraft::short(text)),
        notification_id: row.notification_id.map(|id| id.0),
        request_id: Some(row.request_id),
    }
}

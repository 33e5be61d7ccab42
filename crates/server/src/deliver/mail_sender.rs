//! Makes a [`MailMessage`] of a [`Claim`] and sends it by SMTP. The store decides the content, the email channel the format.

use std::collections::BTreeMap;
use std::sync::Arc;

use bellwire_core::person::without_addresses;
use bellwire_store::{AttemptOutcome, Claim, InboxItem, InboxItemType, Purpose};

use super::email::{
    self, Content, EmailAddress, Link, Links, MailItem, MailItemKind, MailMessage, MessageId, NamedAddress, Smtp,
};
use super::{SendFn, UnsubscribeLinks};

/// What every mail of the hub has in common.
pub(crate) struct MailSender {
    /// The mail server.
    pub(crate) smtp: Smtp,
    /// The sender of every mail.
    pub(crate) from: NamedAddress,
    /// The base URL of the hub, for links.
    pub(crate) hub: String,
    /// Signs the unsubscribe links.
    pub(crate) unsubscribe: UnsubscribeLinks,
}

impl MailSender {
    /// The function with which the outbox sends.
    pub(crate) fn into_send_fn(self) -> SendFn {
        let sender = Arc::new(self);
        Arc::new(move |claim, code| {
            let sender = sender.clone();
            Box::pin(async move {
                match sender.message(&claim, code) {
                    Ok(message) => outcome(sender.smtp.deliver(&message).await, &claim.target),
                    // The message can never be composed, so a retry would fail too.
                    Err(reason) => AttemptOutcome::Refused { reason: without_addresses(&reason, &claim.target) },
                }
            })
        })
    }

    fn message(&self, claim: &Claim, code: Option<String>) -> Result<MailMessage, String> {
        let content = match &claim.purpose {
            Purpose::Confirmation => Content::Confirmation { code: code.unwrap_or_default() },
            Purpose::Notifications(items) => match items.as_slice() {
                [item] => Content::Notification { item: mail_item(item, &claim.titles), subject: None },
                items => Content::Digest(items.iter().map(|item| mail_item(item, &claim.titles)).collect()),
            },
        };
        let link = format!("{}/u/{}", self.hub, self.unsubscribe.sign(&claim.user_id, &claim.target));
        Ok(MailMessage {
            message_id: MessageId::new(&claim.mail_id.to_string(), &self.from.address)?,
            from: self.from.clone(),
            to: EmailAddress::parse(&claim.target)?,
            at: claim.created_at,
            zone: claim.timezone.clone(),
            content,
            links: Links { inbox: None, unsubscribe: Some(Link::parse(&link)?) },
        })
    }
}

fn mail_item(item: &InboxItem, titles: &BTreeMap<String, String>) -> MailItem {
    let kind = match item.item_type {
        InboxItemType::Reminder => MailItemKind::Reminder,
        InboxItemType::Info => MailItemKind::Info,
        InboxItemType::Success => MailItemKind::Success,
        InboxItemType::Warning => MailItemKind::Warning,
        InboxItemType::Error => MailItemKind::Error,
    };
    let mut mail_item = MailItem::new(&item.origin, kind, &item.shown_message(), item.created_at);
    if let Some(title) = &item.title {
        mail_item = mail_item.titled(title);
    }
    if let Some(source) = &item.source {
        mail_item = mail_item.from_source(source);
    }
    match &item.conversation_id {
        Some(id) => mail_item.in_conversation(titles.get(id).unwrap_or(id)),
        None => mail_item,
    }
}

/// The outcome as the outbox records it. Addresses are removed, because agents and logs read the reason too. A configuration
/// error is not the recipient's fault, so the mail is retried.
fn outcome(outcome: email::SmtpOutcome, target: &str) -> AttemptOutcome {
    let reason = without_addresses(&outcome.to_string(), target);
    match outcome {
        email::SmtpOutcome::Sent { .. } => AttemptOutcome::Sent,
        email::SmtpOutcome::Refused { .. } => AttemptOutcome::Refused { reason },
        email::SmtpOutcome::Misconfigured { .. } => AttemptOutcome::TryAgain { reason, retry_after_ms: None },
        email::SmtpOutcome::TryAgain { retry_after, .. } => {
            let millis = retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
            AttemptOutcome::TryAgain { reason, retry_after_ms: millis }
        }
        email::SmtpOutcome::Unknown { .. } => AttemptOutcome::Unknown { reason },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_outcome_carries_an_address_to_agents_or_the_log() {
        let said = || "the server said 451 <Ada@Example.org> is busy".to_owned();
        for failed in [
            email::SmtpOutcome::Refused { step: email::SmtpStep::Recipient, code: 550, enhanced: None, text: said() },
            email::SmtpOutcome::Misconfigured { reason: said() },
            email::SmtpOutcome::TryAgain { reason: said(), retry_after: None },
            email::SmtpOutcome::Unknown { reason: said() },
            email::SmtpOutcome::Sent { reply: said() },
        ] {
            let logged = format!("{:?}", outcome(failed, "ada@example.org"));
            assert!(!logged.to_lowercase().contains("ada"), "{logged}");
        }
    }
}

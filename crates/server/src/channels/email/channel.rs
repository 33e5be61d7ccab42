//! The email channel: makes a [`MailMessage`] of what the hub wants to send, and sends it by SMTP.

use std::collections::BTreeMap;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::time::Duration;

use bellwire_core::Time;
use bellwire_core::notify::Intent;
use bellwire_core::person::{ChannelName, without_addresses};
use bellwire_store::{AttemptOutcome, InboxItem, InboxItemType};
use futures_util::future::BoxFuture;
use uuid::Uuid;

use super::mail_test::MailTester;
use super::{
    Content, EmailAddress, Link, Links, MailItem, MailItemKind, MailMessage, MessageId, NamedAddress, Smtp,
    SmtpOutcome, SmtpStep,
};
use crate::channels::{
    Channel, ChannelError, ChannelHub, ChannelStatus, ChannelTask, Grouping, NotifyDelivery, NotifyMessage,
    NotifyOutcome, NotifyTarget, Obstacle, OutboundContent, OutboundMessage, Sending, SettingsShape, TargetField,
    TargetKind, TestRefusal, TestReport, Verification, VerifiedField,
};
use crate::config::EmailConfig;

/// The name of the channel.
const NAME: &str = "email";

/// Enhanced status codes (RFC 3463) of a recipient that does not exist or no longer takes mail.
const UNREACHABLE: [&str; 6] = ["5.1.1", "5.1.2", "5.1.3", "5.1.6", "5.1.10", "5.2.1"];

static SHAPE: SettingsShape = SettingsShape {
    display_name: NAME,
    description: "Email.",
    target: TargetField {
        name: "address",
        description: "The address. The hub mails a code to it, and sends notifications only after the code was confirmed.",
        kind: TargetKind::Text { max: 254 },
        is_writable: true,
        example: "ada@example.org",
        parse: |text| EmailAddress::parse(text).map(|address| address.to_string()),
    },
    verified: VerifiedField {
        name: "confirmed",
        description: "Whether the address was confirmed with the mailed code.",
    },
    verification: Verification::Code,
};

/// Mail over one SMTP server.
pub struct EmailChannel {
    /// None = email is off.
    smtp: Option<Smtp>,
    /// The sender of every mail.
    from: NamedAddress,
    workers: usize,
    hub: OnceLock<ChannelHub>,
    tester: MailTester,
    /// Why the server could not be used the last time, if the settings are the cause.
    failing: Mutex<Option<String>>,
}

impl EmailChannel {
    /// Reads the files that the settings name.
    pub fn new(config: &EmailConfig) -> Result<Self, ChannelError> {
        let smtp = Smtp::new(config);
        let smtp = smtp.map_err(|error| ChannelError { channel: NAME.to_owned(), reason: error.to_string() })?;
        let tester = MailTester::new(smtp.clone(), config.clone());
        let (from, workers) = (config.from.clone(), config.workers);
        Ok(Self { smtp, from, workers, hub: OnceLock::new(), tester, failing: Mutex::default() })
    }

    /// Sends a mail. `None` = email is off. A mail that is not complete when the hub stops is not sent: it could keep the hub
    /// from stopping for minutes, and would count as sent.
    async fn send(&self, mail: &MailMessage) -> Option<SmtpOutcome> {
        let stopping = self.hub.get().map(|hub| hub.stopping.clone());
        let stop = async {
            match stopping {
                // An error means that the hub has stopped.
                Some(mut stopping) => drop(stopping.wait_for(|stopping| *stopping).await),
                None => std::future::pending().await,
            }
        };
        let outcome = self.smtp.as_ref()?.deliver_unless(mail, stop).await;
        let failing = match &outcome {
            SmtpOutcome::Misconfigured { .. } => Some(without_addresses(&outcome.to_string(), &mail.to.to_string())),
            SmtpOutcome::Sent { .. } | SmtpOutcome::Refused { .. } => None,
            // Nothing new is known about the settings.
            SmtpOutcome::TryAgain { .. } | SmtpOutcome::Interrupted | SmtpOutcome::Unknown { .. } => {
                return Some(outcome);
            }
        };
        *self.failing.lock().unwrap_or_else(PoisonError::into_inner) = failing;
        Some(outcome)
    }

    fn message(&self, outbound: OutboundMessage) -> Result<MailMessage, String> {
        let content = match &outbound.content {
            OutboundContent::Code(code) => Content::Confirmation { code: code.clone() },
            OutboundContent::Direct(item, direct) => {
                let text = MailItem::new(&direct.origin, MailItemKind::Message, &direct.message, item.created_at);
                let subject = Some(direct.subject.clone().unwrap_or_default());
                Content::Notification { item: in_conversation(text, item, &outbound.titles), subject }
            }
            OutboundContent::Notifications(items) => match items.as_slice() {
                [item] => Content::Notification { item: mail_item(item, &outbound.titles), subject: None },
                items => Content::Digest(items.iter().map(|item| mail_item(item, &outbound.titles)).collect()),
            },
        };
        Ok(MailMessage {
            message_id: MessageId::new(&outbound.id.to_string(), &self.from.address)?,
            from: self.from.clone(),
            to: EmailAddress::parse(&outbound.target)?,
            at: outbound.created_at,
            zone: outbound.timezone,
            in_reply_to: None,
            content,
            links: self.links(&outbound.user_id, &outbound.target)?,
        })
    }

    fn notify_message(&self, message: NotifyMessage) -> Result<MailMessage, String> {
        let NotifyMessage { id, origin, target, user_id, message, subject, timezone, at, .. } = message;
        let links = user_id.map(|user_id| self.links(&user_id, &target.target)).transpose()?.unwrap_or_default();
        let item = MailItem::new(&origin, MailItemKind::Message, message.as_deref().unwrap_or_default(), at);
        Ok(MailMessage {
            message_id: MessageId::new(&id.to_string(), &self.from.address)?,
            from: self.from.clone(),
            to: EmailAddress::parse(&target.target)?,
            at,
            zone: timezone,
            in_reply_to: target.thread.as_deref().map(MessageId::parse).transpose()?,
            content: Content::Notification { item, subject: Some(subject.unwrap_or_default()) },
            links,
        })
    }

    fn links(&self, user_id: &str, target: &str) -> Result<Links, String> {
        let Some(hub) = self.hub.get() else { return Ok(Links::default()) };
        let link = format!("{}/u/{}", hub.public_url, hub.unsubscribe.sign(user_id, target));
        Ok(Links { inbox: None, unsubscribe: Some(Link::parse(&link)?) })
    }
}

impl Channel for EmailChannel {
    fn name(&self) -> ChannelName {
        ChannelName::parse(NAME).expect("the name is valid")
    }

    fn settings(&self) -> &SettingsShape {
        &SHAPE
    }

    fn sending(&self) -> Sending {
        let attempt_max = self.smtp.as_ref().map(Smtp::attempt_max).unwrap_or_default();
        Sending { grouping: Grouping::Digest, concurrency: self.workers.max(1), attempt_max }
    }

    fn status(&self) -> ChannelStatus {
        let failing = self.failing.lock().unwrap_or_else(PoisonError::into_inner).clone();
        match (&self.smtp, failing) {
            (None, _) => ChannelStatus::Off { fix: "set email.host".to_owned() },
            (Some(_), Some(reason)) => ChannelStatus::Failing { reason },
            (Some(_), None) => ChannelStatus::Ready,
        }
    }

    fn start(&self, hub: ChannelHub) -> Vec<ChannelTask> {
        // Only the first call counts.
        let _ = self.hub.set(hub);
        Vec::new()
    }

    fn deliver(&self, message: OutboundMessage) -> BoxFuture<'_, AttemptOutcome> {
        Box::pin(async move {
            let target = message.target.clone();
            match self.message(message) {
                Ok(mail) => match self.send(&mail).await {
                    Some(outcome) => attempt_outcome(outcome, &target),
                    None => AttemptOutcome::TryAgain { reason: off(), retry_after_ms: None },
                },
                // The message can never be composed, so a retry would fail too.
                Err(reason) => AttemptOutcome::Refused { reason: without_addresses(&reason, &target) },
            }
        })
    }

    fn resolve(&self, request: &NotifyDelivery) -> Result<NotifyTarget, String> {
        if self.smtp.is_none() {
            return Err(off());
        }
        let context = || request.request_context.as_ref().ok_or("Missing required 'request_context' parameter");
        match request.intent {
            Intent::React => Err("email has no reactions; use intent send or reply".to_owned()),
            Intent::Send => {
                let recipient = request.recipient.as_deref().ok_or("Missing required 'recipient' parameter")?;
                let address = EmailAddress::parse(recipient).map_err(|why| format!("Invalid recipient: {why}"))?;
                Ok(NotifyTarget { target: address.to_string(), thread: None, reaction: None })
            }
            Intent::Reply => {
                let context = context()?;
                let wrong = |field: &str, why: String| format!("Invalid request_context field '{field}': {why}");
                let address = EmailAddress::parse(&context.source_sender_identity)
                    .map_err(|why| wrong("source_sender_identity", why))?;
                let thread = context.source_thread_identity.as_deref().map(MessageId::parse).transpose();
                let thread = thread.map_err(|why| wrong("source_thread_identity", why))?.map(|id| id.to_string());
                Ok(NotifyTarget { target: address.to_string(), thread, reaction: None })
            }
        }
    }

    fn notify(&self, message: NotifyMessage) -> BoxFuture<'_, NotifyOutcome> {
        Box::pin(async move {
            let target = message.target.target.clone();
            match self.notify_message(message) {
                Ok(mail) => match self.send(&mail).await {
                    Some(outcome) => notify_outcome(outcome, &target, &mail.message_id),
                    None => unavailable(off(), None),
                },
                Err(reason) => NotifyOutcome::Refused { reason: without_addresses(&reason, &target) },
            }
        })
    }

    fn test(
        &self,
        target: String,
        id: Uuid,
        at: Time,
        wait: Duration,
    ) -> BoxFuture<'_, Result<TestReport, TestRefusal>> {
        Box::pin(async move { self.tester.run(&target, id, at, wait).await })
    }
}

/// Why nothing is sent while email is off.
fn off() -> String {
    "email is not configured on this hub; its operator has to set email.host first".to_owned()
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
    in_conversation(mail_item, item, titles)
}

fn in_conversation(mail_item: MailItem, item: &InboxItem, titles: &BTreeMap<String, String>) -> MailItem {
    match &item.conversation_id {
        Some(id) => mail_item.in_conversation(titles.get(id).unwrap_or(id)),
        None => mail_item,
    }
}

/// The outcome as the outbox records it. Addresses are removed, because agents and logs read the reason too. A configuration
/// error is not the recipient's fault, so the mail is retried.
fn attempt_outcome(outcome: SmtpOutcome, target: &str) -> AttemptOutcome {
    let reason = without_addresses(&outcome.to_string(), target);
    match outcome {
        SmtpOutcome::Sent { .. } => AttemptOutcome::Sent,
        refused @ SmtpOutcome::Refused { .. } if is_unreachable(&refused) => AttemptOutcome::Unreachable { reason },
        SmtpOutcome::Refused { .. } => AttemptOutcome::Refused { reason },
        SmtpOutcome::Misconfigured { .. } => AttemptOutcome::TryAgain { reason, retry_after_ms: None },
        SmtpOutcome::TryAgain { retry_after, .. } => {
            let millis = retry_after.map(|wait| u64::try_from(wait.as_millis()).unwrap_or(u64::MAX));
            AttemptOutcome::TryAgain { reason, retry_after_ms: millis }
        }
        SmtpOutcome::Interrupted => AttemptOutcome::Interrupted,
        SmtpOutcome::Unknown { .. } => AttemptOutcome::Unknown { reason },
    }
}

/// The outcome as the caller of `notify` reads it.
fn notify_outcome(outcome: SmtpOutcome, target: &str, message_id: &MessageId) -> NotifyOutcome {
    let reason = without_addresses(&outcome.to_string(), target);
    match outcome {
        SmtpOutcome::Sent { .. } => NotifyOutcome::delivered(message_id.to_string()),
        refused @ SmtpOutcome::Refused { .. } if is_unreachable(&refused) => NotifyOutcome::Unreachable { reason },
        SmtpOutcome::Refused { .. } => NotifyOutcome::Refused { reason },
        SmtpOutcome::Misconfigured { .. } | SmtpOutcome::Interrupted => unavailable(reason, None),
        SmtpOutcome::TryAgain { retry_after, .. } => unavailable(reason, retry_after),
        SmtpOutcome::Unknown { .. } => NotifyOutcome::Unknown { reason },
    }
}

fn unavailable(reason: String, retry_after: Option<Duration>) -> NotifyOutcome {
    NotifyOutcome::TryAgain { obstacle: Obstacle::Unavailable, reason, retry_after }
}

/// Whether the server has said that the recipient does not exist. A refusal without such a code may be about the sender or
/// the text.
fn is_unreachable(outcome: &SmtpOutcome) -> bool {
    match outcome {
        SmtpOutcome::Refused { step: SmtpStep::Recipient, enhanced: Some(code), .. } => {
            UNREACHABLE.contains(&code.as_str())
        }
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use bellwire_core::notify::RequestContext;

    use super::*;

    fn channel(host: &str) -> EmailChannel {
        let config = EmailConfig { host: host.to_owned(), ..crate::Config::default().email };
        EmailChannel::new(&config).expect("the settings are valid")
    }

    fn request(intent: Intent, recipient: Option<&str>, context: Option<(&str, Option<&str>)>) -> NotifyDelivery {
        let request_context = context.map(|(sender, thread)| RequestContext {
            request_id: Uuid::nil(),
            source_channel: NAME.to_owned(),
            source_endpoint_identity: "bell@example.org".to_owned(),
            source_sender_identity: sender.to_owned(),
            source_thread_identity: thread.map(str::to_owned),
            received_at: None,
        });
        let recipient = recipient.map(str::to_owned);
        NotifyDelivery { intent, recipient, message: None, subject: None, emoji: None, request_context }
    }

    #[test]
    fn no_outcome_carries_an_address_to_agents_or_the_log() {
        let said = || "the server said 451 <Ada@Example.org> is busy".to_owned();
        let id = MessageId::parse("<1@example.net>").expect("an id");
        let failed = [
            SmtpOutcome::Refused { step: SmtpStep::Recipient, code: 550, enhanced: None, text: said() },
            SmtpOutcome::Refused { step: SmtpStep::Recipient, code: 550, enhanced: Some("5.1.1".into()), text: said() },
            SmtpOutcome::Misconfigured { reason: said() },
            SmtpOutcome::TryAgain { reason: said(), retry_after: None },
            SmtpOutcome::Unknown { reason: said() },
            SmtpOutcome::Sent { reply: said() },
        ];
        for failed in failed {
            let logged = format!("{:?}", attempt_outcome(failed.clone(), "ada@example.org"));
            assert!(!logged.to_lowercase().contains("ada"), "{logged}");
            let answered = format!("{:?}", notify_outcome(failed, "ada@example.org", &id));
            assert!(!answered.to_lowercase().contains("ada"), "{answered}");
        }
    }

    #[test]
    fn only_a_recipient_that_does_not_exist_is_unreachable() {
        let refused = |step, enhanced: Option<&str>| {
            let enhanced = enhanced.map(str::to_owned);
            is_unreachable(&SmtpOutcome::Refused { step, code: 550, enhanced, text: String::new() })
        };
        assert!(refused(SmtpStep::Recipient, Some("5.1.1")) && refused(SmtpStep::Recipient, Some("5.2.1")));
        assert!(!refused(SmtpStep::Recipient, None) && !refused(SmtpStep::Recipient, Some("5.7.1")));
        assert!(!refused(SmtpStep::Answer, Some("5.1.1")));
    }

    #[test]
    fn a_reply_goes_to_its_sender_in_its_thread_and_nowhere_else() {
        let email = channel("localhost");
        let resolved = |context| email.resolve(&request(Intent::Reply, None, context));
        let target = resolved(Some(("Ada@EXAMPLE.org", Some("<a.1@mail.example>")))).expect("it is valid");
        assert_eq!((target.target.as_str(), target.thread.as_deref()), ("Ada@example.org", Some("<a.1@mail.example>")));
        let unthreaded = resolved(Some(("ada@example.org", None))).expect("a thread is optional");
        assert_eq!(unthreaded.thread, None);
        let (bad_sender, bad_thread) =
            (resolved(Some(("ada", None))), resolved(Some(("ada@example.org", Some("7:8")))));
        assert!(bad_sender.is_err_and(|why| why.starts_with("Invalid request_context field 'source_sender_identity'")));
        assert!(bad_thread.is_err_and(|why| why.starts_with("Invalid request_context field 'source_thread_identity'")));
    }

    #[test]
    fn reactions_two_recipients_and_an_unconfigured_hub_are_refused_with_the_reason() {
        let send = |recipient| request(Intent::Send, Some(recipient), None);
        let email = channel("localhost");
        let sent = email.resolve(&send("ada@example.org")).map(|resolved| resolved.target);
        assert_eq!(sent, Ok("ada@example.org".to_owned()));
        let two = email.resolve(&send("ada@example.org,eve@example.org"));
        assert!(two.is_err_and(|why| why.contains("more than one address")));
        let react = email.resolve(&request(Intent::React, None, Some(("ada@example.org", None))));
        assert_eq!(react, Err("email has no reactions; use intent send or reply".to_owned()));
        let off = channel("").resolve(&send("ada@example.org"));
        assert!(off.is_err_and(|why| why.contains("not configured")));
    }

    #[test]
    fn a_held_message_has_its_whole_text_and_its_subject() {
        let item = InboxItem {
            id: bellwire_core::NotificationId(Uuid::nil()),
            user_id: "ada".to_owned(),
            kind: bellwire_store::InboxItemKind::Message,
            item_type: InboxItemType::Info,
            origin: "health".to_owned(),
            source: None,
            conversation_id: Some("chat".to_owned()),
            title: None,
            message: "The beginning…".to_owned(),
            repeats: 0,
            template_error: None,
            toast: None,
            correlation_id: None,
            created_at: Time::ZERO,
            read_at: None,
            dismissed_at: None,
            acted: Vec::new(),
            created_sequence: 1,
            changed_sequence: 1,
        };
        let direct = bellwire_store::DirectMessage {
            origin: "health".to_owned(),
            subject: Some("Your results".to_owned()),
            message: "The beginning and the end.".to_owned(),
            needs_allowance: false,
        };
        let outbound = OutboundMessage {
            progress: None,
            id: Uuid::nil(),
            user_id: "ada".to_owned(),
            target: "ada@example.org".to_owned(),
            content: OutboundContent::Direct(Box::new(item), direct),
            titles: BTreeMap::from([("chat".to_owned(), "Check-up".to_owned())]),
            timezone: None,
            created_at: Time::ZERO,
        };
        let mail = channel("localhost").message(outbound).expect("it can be composed");
        let text = String::from_utf8(super::super::compose(&mail)).expect("mail is ASCII");
        assert!(text.contains("\r\nSubject: [health] Your results\r\n"), "{text}");
        assert!(text.contains("| The beginning and the end.") && text.contains("Conversation: Check-up"), "{text}");
    }

    #[test]
    fn a_message_has_the_origin_in_its_subject_and_a_reply_the_headers_of_its_thread() {
        let target = NotifyTarget {
            target: "ada@example.org".to_owned(),
            thread: Some("<a.1@mail.example>".to_owned()),
            reaction: None,
        };
        let message = NotifyMessage {
            id: Uuid::nil(),
            intent: Intent::Reply,
            origin: "health".to_owned(),
            target,
            user_id: None,
            conversation_id: None,
            message: Some("Your results are in.".to_owned()),
            subject: None,
            timezone: None,
            at: Time::ZERO,
        };
        let mail = channel("localhost").notify_message(message).expect("it can be composed");
        let text = String::from_utf8(super::super::compose(&mail)).expect("mail is ASCII");
        for header in [
            "Subject: [health] Notification",
            "In-Reply-To: <a.1@mail.example>",
            "References: <a.1@mail.example>",
            "Message-ID: <00000000-0000-0000-0000-000000000000@localhost>",
        ] {
            assert!(text.contains(&format!("\r\n{header}\r\n")), "{header}: {text}");
        }
        assert!(text.contains("Message from health") && text.contains("| Your results are in."), "{text}");
        assert!(!text.contains("List-Unsubscribe"), "a target without a person has no settings to change");
    }
}

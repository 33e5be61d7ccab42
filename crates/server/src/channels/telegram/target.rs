//! Where messages go: chats, and messages in chats.

use bellwire_core::notify::{ChatThread, Intent};

use super::reaction;
use crate::channels::{NotifyDelivery, NotifyTarget};

/// A chat id in the one form in which it is written.
pub(super) fn chat_id(text: &str) -> Option<i64> {
    let id: i64 = text.trim().parse().ok()?;
    (id != 0 && id.to_string() == text.trim()).then_some(id)
}

/// The target of a notify request. A reply and a reaction go exactly to their thread.
pub(super) fn resolve(request: &NotifyDelivery) -> Result<NotifyTarget, String> {
    match request.intent {
        Intent::Send => {
            let recipient = request.recipient.as_deref().ok_or("Missing required 'recipient' parameter")?;
            let chat = chat_id(recipient).ok_or_else(|| {
                "Invalid recipient: on Telegram it is the id of a chat, an integer such as 123456789".to_owned()
            })?;
            Ok(NotifyTarget { target: chat.to_string(), thread: None, reaction: None })
        }
        Intent::Reply => in_thread(request, None),
        Intent::React => {
            let emoji = request.emoji.as_deref().unwrap_or_default();
            in_thread(request, Some(reaction::normalized(emoji)?.to_owned()))
        }
    }
}

fn in_thread(request: &NotifyDelivery, reaction: Option<String>) -> Result<NotifyTarget, String> {
    let context = request.request_context.as_ref().ok_or("Missing required 'request_context' parameter")?;
    let thread = context.thread().map_err(|missing| missing.to_string())?;
    let Some(parsed) = ChatThread::parse(thread) else {
        return Err("Invalid request_context field 'source_thread_identity': on Telegram it is \
                    <chat_id>:<message_id>, two integers such as 123456789:42"
            .to_owned());
    };
    Ok(NotifyTarget { target: parsed.chat_id.to_string(), thread: Some(parsed.to_string()), reaction })
}

#[cfg(test)]
mod tests {
    use bellwire_core::notify::RequestContext;
    use uuid::Uuid;

    use super::*;

    fn request(intent: Intent, recipient: Option<&str>, thread: Option<&str>, emoji: Option<&str>) -> NotifyDelivery {
        let context = RequestContext {
            request_id: Uuid::nil(),
            source_channel: "telegram".into(),
            source_endpoint_identity: "telegram:7001".into(),
            source_sender_identity: "1815".into(),
            source_thread_identity: thread.map(str::to_owned),
            received_at: None,
        };
        NotifyDelivery {
            intent,
            recipient: recipient.map(str::to_owned),
            message: Some("hello".into()),
            subject: None,
            emoji: emoji.map(str::to_owned),
            request_context: Some(context),
        }
    }

    #[test]
    fn a_recipient_is_the_id_of_a_chat_in_one_form() {
        let target = |recipient| resolve(&request(Intent::Send, recipient, None, None)).map(|found| found.target);
        assert_eq!(target(Some(" 1815 ")), Ok("1815".to_owned()));
        assert_eq!(target(Some("-100123")), Ok("-100123".to_owned()));
        for wrong in ["0", "+1815", "01815", "@ada", "1815:4", "", "9223372036854775808"] {
            assert!(target(Some(wrong)).is_err_and(|said| said.starts_with("Invalid recipient")), "{wrong}");
        }
        assert!(target(None).is_err());
    }

    #[test]
    fn an_answer_goes_to_its_thread_or_nowhere() {
        let found = resolve(&request(Intent::Reply, None, Some("1815:42"), None)).expect("a thread");
        assert_eq!((found.target.as_str(), found.thread.as_deref()), ("1815", Some("1815:42")));
        for wrong in [None, Some(""), Some("1815"), Some("1815:x"), Some("1815:42:7"), Some("1815:-1")] {
            let refused = resolve(&request(Intent::Reply, Some("7"), wrong, None));
            assert!(refused.is_err(), "{wrong:?}: {refused:?}");
        }
    }

    #[test]
    fn a_reaction_is_checked_before_anything_is_sent() {
        let react = |emoji| resolve(&request(Intent::React, None, Some("1815:42"), Some(emoji)));
        assert_eq!(react("❤\u{fe0f}").expect("allowed").reaction.as_deref(), Some("❤"));
        assert!(react("✅").is_err_and(|said| said.starts_with("Invalid emoji '✅'")));
    }
}

use bellwire_core::person::one_line;

use super::mail_message::{Content, MailItem, MailItemKind, MailMessage};

/// The prefix of every line of an agent's text. The hub's own lines never begin with it, so that an agent's text cannot imitate
/// them.
const FRAME: &str = "| ";

/// How many notifications one mail shows; the rest is only counted.
pub(super) const ITEMS_MAX: usize = 50;

// Texts that the plain and the HTML part share.
const REASON: &str = "Sent by Bellwire, because email is on in your notification settings.";
const NO_REASON: &str = "Sent by Bellwire.";
pub(super) const CONFIRM: &str =
    "Somebody wants notifications from Bellwire at this address. If it was you, this is the code:";
pub(super) const CONFIRM_NOT: &str = "If it was not you, do nothing: without the code no further mail comes.";

/// The plain text part.
pub(super) fn plain(mail: &MailMessage) -> String {
    let mut text = match &mail.content {
        Content::Notification { item, .. } => one(item, mail),
        Content::Digest(items) => digest(items, mail),
        Content::Confirmation { code } => format!("{CONFIRM}\n\n    {}\n\n{CONFIRM_NOT}\n", one_line(code)),
    };
    text.push_str("\n-- \n");
    let links = mail.links();
    for (label, link) in [("Inbox", links.inbox), ("Stop these mails", links.unsubscribe)] {
        if let Some(link) = link {
            text.push_str(&format!("{label}: {}\n", link.as_str()));
        }
    }
    text.push_str(reason(mail));
    text.push('\n');
    text
}

/// Why the person gets this mail. A confirmation, and a direct message to an address without a person, follow from no
/// settings.
pub(super) fn reason(mail: &MailMessage) -> &'static str {
    match &mail.content {
        Content::Confirmation { .. } => NO_REASON,
        Content::Notification { item, .. }
            if item.kind == MailItemKind::Message && mail.links.unsubscribe.is_none() =>
        {
            NO_REASON
        }
        _ => REASON,
    }
}

fn one(item: &MailItem, mail: &MailMessage) -> String {
    let mut text = format!("{} from {}\n", item.kind.label(), item.origin);
    if let Some(source) = &item.source {
        text.push_str(&format!("Source: {source}\n"));
    }
    if let Some(conversation) = &item.conversation {
        text.push_str(&format!("Conversation: {conversation}\n"));
    }
    text.push_str(&format!("{}\n\n", mail.shown(item.at)));
    let title = item.title.iter().flat_map(|title| [title.as_str(), ""]);
    for line in title.chain(item.message.split('\n')) {
        text.push_str(format!("{FRAME}{line}").trim_end());
        text.push('\n');
    }
    text
}

fn digest(items: &[MailItem], mail: &MailMessage) -> String {
    let shown: Vec<String> = items.iter().take(ITEMS_MAX).map(|item| one(item, mail)).collect();
    let mut text = match items.len() {
        1 => String::new(),
        count => format!("{count} notifications\n\n\n"),
    };
    text.push_str(&shown.join("\n\n"));
    if let Some(line) = more(items.len()) {
        text.push_str(&format!("\n\n{line}\n"));
    }
    text
}

/// The line that counts the notifications beyond [`ITEMS_MAX`].
pub(super) fn more(count: usize) -> Option<String> {
    count.checked_sub(ITEMS_MAX).filter(|left| *left > 0).map(|left| format!("and {left} more in your inbox"))
}

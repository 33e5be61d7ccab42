use bellwire_core::person::one_line;

use super::mail_message::{Content, MailItem, MailMessage};

/// What stands before every line of an agent's own text. The hub's lines never begin with it, so that no text can pass for
/// the frame around it.
const FRAME: &str = "| ";

/// How many notifications one mail shows; of those beyond it, it tells the number.
pub(super) const ITEMS_MAX: usize = 50;

// Both forms of a mail say the same.
pub(super) const REASON: &str = "Sent by Bellwire, because email is on in your notification settings.\n";
pub(super) const CONFIRM: &str =
    "Somebody wants notifications from Bellwire at this address. If it was you, this is the code:";
pub(super) const CONFIRM_NOT: &str = "If it was not you, do nothing: without the code no further mail comes.";

/// The mail as plain text.
pub(super) fn plain(letter: &MailMessage) -> String {
    let mut text = match &letter.content {
        Content::Notification { item, .. } => one(item, letter),
        Content::Digest(items) => digest(items, letter),
        Content::Confirmation { code } => format!("{CONFIRM}\n\n    {}\n\n{CONFIRM_NOT}\n", one_line(code)),
    };
    text.push_str("\n-- \n");
    let links = letter.links();
    for (label, link) in [("Inbox", links.inbox), ("Stop these mails", links.unsubscribe)] {
        if let Some(link) = link {
            text.push_str(&format!("{label}: {}\n", link.as_str()));
        }
    }
    text.push_str(match letter.content {
        Content::Confirmation { .. } => "Sent by Bellwire.\n",
        _ => REASON,
    });
    text
}

fn one(item: &MailItem, letter: &MailMessage) -> String {
    let mut text = format!("{} from {}\n", item.kind.label(), item.origin);
    if let Some(source) = &item.source {
        text.push_str(&format!("Source: {source}\n"));
    }
    if let Some(conversation) = &item.conversation {
        text.push_str(&format!("Conversation: {conversation}\n"));
    }
    text.push_str(&format!("{}\n\n", letter.shown(item.at)));
    let title = item.title.iter().flat_map(|title| [title.as_str(), ""]);
    for line in title.chain(item.message.split('\n')) {
        text.push_str(format!("{FRAME}{line}").trim_end());
        text.push('\n');
    }
    text
}

fn digest(items: &[MailItem], letter: &MailMessage) -> String {
    let shown: Vec<String> = items.iter().take(ITEMS_MAX).map(|item| one(item, letter)).collect();
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

/// What is said of those that one mail does not show.
pub(super) fn more(count: usize) -> Option<String> {
    count.checked_sub(ITEMS_MAX).filter(|left| *left > 0).map(|left| format!("and {left} more in your inbox"))
}

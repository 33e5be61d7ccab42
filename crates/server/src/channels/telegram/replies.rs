//! What the bot says to people.

use bellwire_core::person::one_line;
use bellwire_store::{ErrorKind, UpdateOutcome};

use super::api::KeyboardButton;
use super::compose::{button_text, settlement_line};

/// The longest title on a button, in characters.
const LABEL_MAX: usize = 40;
/// The longest answer to a pressed button, in characters.
const QUERY_MAX: usize = 200;

/// What the bot says about an outcome; none = nothing.
pub(super) fn text(outcome: &UpdateOutcome, origins: &[String]) -> Option<String> {
    let said = match outcome {
        UpdateOutcome::Stranger { is_answered: true } => {
            "This is the bot of a Bellwire hub. It sends notifications to people who have connected their chat. To \
             connect this one, open the link that your hub gives you, or send /start and the code."
        }
        UpdateOutcome::Paired { user_id, .. } => {
            return Some(format!(
                "This chat is connected: notifications for {} come here. Write here to answer your agents. /help \
                 tells more.",
                one_line(user_id)
            ));
        }
        UpdateOutcome::WrongCode { is_answered: true } => {
            "This code is not valid. A code works once, for ten minutes. Ask for a new one."
        }
        UpdateOutcome::TooManyCodes { is_answered: true } => "Too many wrong codes. Try again in an hour.",
        UpdateOutcome::Taken => "This chat is connected to another person. Send /stop first.",
        UpdateOutcome::Started => "This chat is connected. Notifications come here. /help tells more.",
        UpdateOutcome::Stopped => "This chat is no longer connected. No more messages come here.",
        UpdateOutcome::Muted { origin } => {
            return Some(format!(
                "Notifications from {} go only to your inbox now. You can change that in your settings.",
                one_line(origin)
            ));
        }
        UpdateOutcome::NothingToMute => {
            "This message is not from one sender. Reply with /mute to a notification of the sender to mute."
        }
        UpdateOutcome::MutedOrigins { muted, .. } => return Some(senders(muted, origins)),
        UpdateOutcome::Help => HELP,
        UpdateOutcome::NotText => "Only new text messages are read: no edits, forwards, pictures or files.",
        UpdateOutcome::NoConversation => {
            "None of your agents has an open conversation, so nobody would read this. It was not kept."
        }
        UpdateOutcome::Choose { .. } => "Which conversation is this for?",
        _ => return None,
    };
    Some(said.to_owned())
}

/// What the client shows after a button was pressed.
pub(super) fn query(outcome: &UpdateOutcome) -> String {
    let said = match outcome {
        UpdateOutcome::Pressed(pressed) => format!("Pressed: {}", one_line(&pressed.button.label)),
        UpdateOutcome::Settled(settlement) => format!("Already done. {}", settlement_line(settlement)),
        UpdateOutcome::Sent { title, .. } => sent_to(title),
        UpdateOutcome::UsedButton => "This button was used before.".to_owned(),
        UpdateOutcome::UnknownButton => "This button no longer works.".to_owned(),
        UpdateOutcome::Repeated => String::new(),
        _ => "This button is not for you.".to_owned(),
    };
    said.chars().take(QUERY_MAX).collect()
}

/// What the question shows after a conversation was chosen.
pub(super) fn sent_to(title: &str) -> String {
    format!("Sent to: {}", one_line(title))
}

/// What the bot says if a command could not be carried out.
pub(super) fn failure(kind: ErrorKind) -> &'static str {
    match kind {
        ErrorKind::Full => {
            "Your agent has too many unread messages and takes no more for now. This one was not kept; send it again \
             later."
        }
        ErrorKind::Invalid("text") => "This text is too long: write at most 4096 characters. It was not kept.",
        _ => "This could not be done, and nothing was kept.",
    }
}

/// What the bot says in a chat whose person has connected another one.
pub(super) const REPLACED: &str =
    "This chat is no longer connected, because another chat was connected instead. No more messages come here.";

/// The buttons of a question: one row per conversation.
pub(super) fn choices(titles: &[String], tokens: &[String]) -> Vec<Vec<KeyboardButton>> {
    let button = |(index, (title, token)): (usize, (&String, &String))| {
        let title = button_text(title, || format!("Conversation {}", index + 1));
        let shown: String = title.chars().take(LABEL_MAX).collect();
        let text = if shown.len() < title.len() { format!("{shown}…") } else { shown };
        vec![KeyboardButton { text, callback_data: token.clone() }]
    };
    titles.iter().zip(tokens).enumerate().map(button).collect()
}

const HELP: &str = "Notifications of your agents come to this chat.\n\n\
     Reply to a notification to answer the agent that sent it, or just write: your words go to the conversation that is \
     open. Buttons do what they say, once.\n\n\
     /mute as a reply: notifications of that sender go only to your inbox\n\
     /mute alone: lists senders\n\
     /stop: disconnects this chat\n\
     /help: this text";

fn senders(muted: &[String], origins: &[String]) -> String {
    let list = |origins: &[String]| origins.iter().map(|origin| one_line(origin)).collect::<Vec<_>>().join(", ");
    let mut text = "Reply with /mute to a notification to mute its sender.".to_owned();
    let others: Vec<String> = origins.iter().filter(|origin| !muted.contains(origin)).cloned().collect();
    if !others.is_empty() {
        text.push_str(&format!("\n\nSenders of late: {}", list(&others)));
    }
    if !muted.is_empty() {
        text.push_str(&format!("\n\nMuted: {}. You can change that in your settings.", list(muted)));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn senders_are_listed_apart_from_the_muted_ones() {
        let list = |origins: &[&str]| origins.iter().map(|origin| (*origin).to_owned()).collect::<Vec<_>>();
        let said = senders(&list(&["ads"]), &list(&["butler", "ads"]));
        assert_eq!(
            said,
            "Reply with /mute to a notification to mute its sender.\n\nSenders of late: butler\n\nMuted: ads. You can \
             change that in your settings."
        );
    }

    #[test]
    fn a_long_title_is_shortened_on_its_button() {
        let titles = ["short".to_owned(), "x".repeat(60), "two\nlines".to_owned(), "\u{202e} ".to_owned()];
        let tokens = ["a", "b", "c", "d"].map(str::to_owned);
        let rows = choices(&titles, &tokens);
        let labels: Vec<&str> = rows.iter().map(|row| row[0].text.as_str()).collect();
        assert_eq!(labels[0], "short");
        assert_eq!(labels[1].chars().count(), LABEL_MAX + 1);
        assert_eq!(labels[2..], ["two lines", "Conversation 4"]);
    }
}

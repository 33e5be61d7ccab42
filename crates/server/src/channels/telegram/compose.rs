//! The text of notifications. Each origin's label is bold, which an agent's text cannot be, so that no text imitates
//! another origin; several notifications in one message are quoted each.

use std::collections::BTreeMap;

use bellwire_core::NotificationId;
use bellwire_core::notify::labelled;
use bellwire_core::person::{clean, one_line, visible_name};
use bellwire_store::{InboxItem, InboxItemType, Settlement};

use super::text::{EntityKind, Text};

/// How many notifications one message shows; the rest is only counted.
const ITEMS_MAX: usize = 20;

/// A message with whole notifications.
pub(super) struct Digest {
    pub(super) text: Text,
    /// The notifications that it tells of.
    pub(super) ids: Vec<NotificationId>,
}

/// These notifications, which are of one conversation, in as few messages as hold them. No notification is divided between
/// two messages, so that each is either sent or not.
pub(super) fn notifications(items: &[InboxItem], titles: &BTreeMap<String, String>) -> Vec<Digest> {
    let mut digests: Vec<Digest> = Vec::new();
    let shown = items.len().min(ITEMS_MAX);
    for (index, item) in items[..shown].iter().enumerate() {
        let (mut text, mut ids) = (Text::default(), vec![item.id]);
        push_item(&mut text, item, items.len() > 1);
        if index + 1 == shown {
            push_ending(&mut text, items, titles);
            ids.extend(items[shown..].iter().map(|item| item.id));
        }
        let left = match digests.last_mut() {
            Some(last) => last.text.append_paragraph(text).map(|()| last.ids.append(&mut ids)).err(),
            None => Some(text),
        };
        digests.extend(left.map(|text| Digest { text, ids }));
    }
    digests
}

/// Appends what stands after the last notification: how many are not shown, and the title of the conversation.
fn push_ending(text: &mut Text, items: &[InboxItem], titles: &BTreeMap<String, String>) {
    if items.len() > ITEMS_MAX {
        text.push("\n\n");
        text.push_formatted(&format!("and {} more in your inbox", items.len() - ITEMS_MAX), EntityKind::Italic);
    }
    let title = items.first().and_then(|item| titles.get(item.conversation_id.as_ref()?));
    if let Some(title) = title {
        text.push("\n\n");
        text.push_formatted(&one_line(title), EntityKind::Italic);
    }
}

/// A notification after it was settled: its text, and what was done.
pub(super) fn settled(item: &InboxItem, settlement: &Settlement) -> Text {
    let mut text = Text::default();
    push_item(&mut text, item, false);
    text.push("\n\n");
    text.push_formatted(&settlement_line(settlement), EntityKind::Italic);
    text
}

/// What was done with a notification, in one line.
pub(super) fn settlement_line(settlement: &Settlement) -> String {
    match &settlement.pressed {
        Some((_, button)) => format!("Pressed: {}", one_line(&button.label)),
        None => "Dismissed".to_owned(),
    }
}

/// What stands on a button. Telegram refuses a blank one.
pub(super) fn button_text(text: &str, or: impl FnOnce() -> String) -> String {
    match visible_name(text).is_empty() {
        true => or(),
        false => one_line(text),
    }
}

/// A message of `notify`: the label of its origin, the subject if it has one, the text.
pub(super) fn direct(origin: &str, subject: Option<&str>, message: &str) -> Text {
    let mut text = Text::default();
    match subject.map(one_line).filter(|subject| !subject.is_empty()) {
        Some(subject) => {
            push_labelled(&mut text, origin, "");
            text.push_formatted(&subject, EntityKind::Bold);
            text.push("\n");
            text.push(&clean(message));
        }
        None => push_labelled(&mut text, origin, &clean(message)),
    }
    text
}

fn push_item(text: &mut Text, item: &InboxItem, is_quoted: bool) {
    let kind = match item.item_type {
        InboxItemType::Reminder => "Reminder: ",
        InboxItemType::Warning => "Warning: ",
        InboxItemType::Error => "Error: ",
        InboxItemType::Info | InboxItemType::Success => "",
    };
    let message = clean(&item.shown_message());
    match (&item.title, is_quoted) {
        (None, false) => push_labelled(text, &item.origin, &format!("{kind}{message}")),
        (title, _) => {
            push_labelled(text, &item.origin, kind);
            text.push_formatted(&one_line(title.as_deref().unwrap_or_default()), EntityKind::Bold);
            text.push("\n");
            match is_quoted {
                true => text.push_formatted(&message, EntityKind::Blockquote),
                false => text.push(&message),
            }
        }
    }
    if let Some(source) = &item.source {
        text.push("\n");
        text.push_formatted(&format!("source: {}", one_line(source)), EntityKind::Italic);
    }
}

/// Appends a text with the bold label of its origin in front.
fn push_labelled(text: &mut Text, origin: &str, message: &str) {
    let labelled = labelled(origin, message);
    let label = labelled.find(']').filter(|_| labelled.starts_with('[')).map_or(0, |at| at + 1);
    text.push_formatted(&labelled[..label], EntityKind::Bold);
    text.push(&labelled[label..]);
}

#[cfg(test)]
mod tests {
    use bellwire_core::{NotificationId, Time};
    use bellwire_store::{InboxItemKind, ToastButton};
    use uuid::Uuid;

    use super::*;

    fn item(origin: &str, item_type: InboxItemType, title: Option<&str>, message: &str) -> InboxItem {
        InboxItem {
            id: NotificationId(Uuid::nil()),
            user_id: "ada".into(),
            kind: InboxItemKind::Message,
            item_type,
            origin: origin.into(),
            source: None,
            conversation_id: Some("chat".into()),
            title: title.map(str::to_owned),
            message: message.into(),
            repeats: 0,
            toast: None,
            template_error: None,
            correlation_id: None,
            created_at: Time::ZERO,
            read_at: None,
            dismissed_at: None,
            acted: Vec::new(),
            created_sequence: 0,
            changed_sequence: 0,
        }
    }

    /// The text with its formatting as markup.
    fn shown(text: &Text) -> String {
        let parts = text.split();
        assert_eq!(parts.len(), 1);
        let units: Vec<u16> = parts[0].text.encode_utf16().collect();
        let mut marks: Vec<(usize, String)> = Vec::new();
        for entity in &parts[0].entities {
            let name = format!("{:?}", entity.kind).to_lowercase();
            marks.push((entity.offset, format!("<{name}>")));
            marks.push((entity.offset + entity.length, format!("</{name}>")));
        }
        let mut out = String::new();
        for at in 0..=units.len() {
            for (_, mark) in marks.iter().filter(|(offset, _)| *offset == at) {
                out.push_str(mark);
            }
            if let Some(unit) = units.get(at) {
                out.push_str(&String::from_utf16(&[*unit]).expect("the tests have no pairs"));
            }
        }
        out
    }

    /// The only message.
    fn digest(items: &[InboxItem], titles: &BTreeMap<String, String>) -> Text {
        let mut digests = notifications(items, titles);
        assert_eq!(digests.len(), 1);
        digests.remove(0).text
    }

    #[test]
    fn no_notification_is_divided_between_two_messages_and_each_is_in_one() {
        let texts = ["x".repeat(480), "🙂".repeat(500), "y\n\n".repeat(100)];
        let numbered = |number: u128| InboxItem {
            id: NotificationId(Uuid::from_u128(number)),
            ..item("butler", InboxItemType::Info, Some("Title"), &texts[number as usize % 3])
        };
        for count in [1, 2, 12, 20, 21, 500] {
            let items: Vec<InboxItem> = (0..count).map(numbered).collect();
            let titles = BTreeMap::from([("chat".to_owned(), "Rome".to_owned())]);
            let digests = notifications(&items, &titles);
            for digest in &digests {
                assert_eq!(digest.text.split().len(), 1);
                assert!(digest.text.text.starts_with("[butler] Title\n"), "{}", digest.text.text);
                assert_eq!(digest.text.split()[0].entities[0].length, 8, "the label is bold");
            }
            let ids: Vec<NotificationId> = digests.iter().flat_map(|digest| digest.ids.clone()).collect();
            assert_eq!(ids, items.iter().map(|item| item.id).collect::<Vec<_>>());
            assert!(digests.last().is_some_and(|last| last.text.text.ends_with("Rome")));
        }
    }

    #[test]
    fn a_notification_has_its_origin_in_front() {
        let titles = BTreeMap::from([("chat".to_owned(), "Trip\nto Rome".to_owned())]);
        let one = item("butler", InboxItemType::Warning, None, "low disk");
        assert_eq!(
            shown(&digest(&[one], &titles)),
            "<bold>[butler]</bold> Warning: low disk\n\n<italic>Trip to Rome</italic>"
        );
        let titled = item("butler", InboxItemType::Info, Some("Done"), "all tests pass");
        let titled = InboxItem { source: Some("ci".into()), ..titled };
        assert_eq!(
            shown(&digest(&[titled], &BTreeMap::new())),
            "<bold>[butler]</bold> <bold>Done</bold>\nall tests pass\n<italic>source: ci</italic>"
        );
    }

    #[test]
    fn no_text_can_imitate_another_origin() {
        let forged = item("butler", InboxItemType::Info, None, "hi\n\n[bank] Pay now\u{202e}");
        assert_eq!(
            shown(&digest(std::slice::from_ref(&forged), &BTreeMap::new())),
            "<bold>[butler]</bold> hi\n\n[bank] Pay now"
        );
        let both = digest(&[forged, item("bank", InboxItemType::Info, None, "real")], &BTreeMap::new());
        assert_eq!(
            shown(&both),
            "<bold>[butler]</bold> \n<blockquote>hi\n\n[bank] Pay now</blockquote>\n\n<bold>[bank]</bold> \n\
             <blockquote>real</blockquote>"
        );
    }

    #[test]
    fn many_notifications_are_counted() {
        let items: Vec<InboxItem> = (0..30).map(|_| item("b", InboxItemType::Info, None, "x")).collect();
        assert!(shown(&digest(&items, &BTreeMap::new())).ends_with("<italic>and 10 more in your inbox</italic>"));
    }

    #[test]
    fn a_settled_notification_shows_what_was_done() {
        let button = ToastButton { label: "Go".into(), prompt: Some("go on".into()) };
        let one = item("butler", InboxItemType::Info, Some("Go?"), "Shall I?");
        let pressed = Settlement { pressed: Some((0, button)), at: Time::ZERO };
        assert_eq!(
            shown(&settled(&one, &pressed)),
            "<bold>[butler]</bold> <bold>Go?</bold>\nShall I?\n\n<italic>Pressed: Go</italic>"
        );
        let dismissed = Settlement { pressed: None, at: Time::ZERO };
        assert!(shown(&settled(&one, &dismissed)).ends_with("<italic>Dismissed</italic>"));
    }

    #[test]
    fn a_button_is_never_blank_and_has_no_hidden_characters() {
        let shown = |label: &str| button_text(label, || "Button 1".to_owned());
        assert_eq!(shown(" Go\non "), "Go on");
        assert_eq!(shown("\u{202e}oG"), "oG");
        for blank in ["", " \n", "\u{202e}", "\u{200d}\u{fe0f}"] {
            assert_eq!(shown(blank), "Button 1", "{blank:?}");
        }
    }

    #[test]
    fn a_direct_message_has_one_label() {
        assert_eq!(shown(&direct("health", None, "Take a walk")), "<bold>[health]</bold> Take a walk");
        assert_eq!(shown(&direct("health", None, "[Health] Take a walk")), "<bold>[Health]</bold> Take a walk");
        assert_eq!(shown(&direct("health", Some("Now"), "Walk")), "<bold>[health]</bold> <bold>Now</bold>\nWalk");
    }
}

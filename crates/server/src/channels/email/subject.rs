use bellwire_core::person::one_line;

use super::mail_message::{Content, MailItem, cut};

/// How many characters of a notification's text the subject shows.
const EXCERPT_MAX: usize = 60;
/// The longest subject an agent may set, in characters.
const CHOSEN_MAX: usize = 150;

/// The subject on one line. It begins with the authenticated origin, whatever the agent's text contains.
pub(super) fn subject(content: &Content) -> String {
    match content {
        Content::Notification { item, subject: Some(chosen) } => with_origin(item, &cut(&one_line(chosen), CHOSEN_MAX)),
        Content::Notification { item, subject: None } => of_item(item),
        Content::Digest(items) => match items.as_slice() {
            [] => "Nothing new".to_owned(),
            [item] => of_item(item),
            items => of_digest(items),
        },
        Content::Confirmation { code } => format!("{} is your Bellwire code", cut(&one_line(code), EXCERPT_MAX)),
    }
}

/// Puts the origin in brackets in front, unless the text already begins with exactly that.
fn with_origin(item: &MailItem, chosen: &str) -> String {
    let front = format!("[{}] ", item.origin);
    match chosen {
        "" => format!("{front}Notification"),
        chosen if chosen.starts_with(&front) => chosen.to_owned(),
        chosen => front + chosen,
    }
}

fn of_item(item: &MailItem) -> String {
    let text = item.title.as_deref().map_or_else(|| one_line(&item.message), str::to_owned);
    format!("[{}] {}: {}", item.origin, item.kind.label(), cut(&text, EXCERPT_MAX))
}

fn of_digest(items: &[MailItem]) -> String {
    let mut origins: Vec<&str> = items.iter().map(|item| item.origin.as_str()).collect();
    origins.sort_unstable();
    origins.dedup();
    let count = items.len();
    match origins.as_slice() {
        [origin] => format!("[{origin}] {count} notifications"),
        [first, second] => format!("{count} notifications from {first} and {second}"),
        [first, others @ ..] => format!("{count} notifications from {first} and {} others", others.len()),
        [] => format!("{count} notifications"),
    }
}

#[cfg(test)]
mod tests {
    use bellwire_core::Time;

    use super::super::mail_message::MailItemKind;
    use super::*;

    fn item(origin: &str, message: &str) -> MailItem {
        MailItem::new(origin, MailItemKind::Warning, message, Time::ZERO)
    }

    fn chosen(subject: &str) -> String {
        super::subject(&Content::Notification { item: item("butler", "x"), subject: Some(subject.to_owned()) })
    }

    #[test]
    fn a_subject_has_origin_kind_and_the_first_words() {
        let of = |item: MailItem| subject(&Content::Notification { item, subject: None });
        assert_eq!(of(item("butler", "Disk\nfull")), "[butler] Warning: Disk full");
        let long = of(item("butler", &"é".repeat(61)));
        assert_eq!(long, format!("[butler] Warning: {}…", "é".repeat(59)));
        assert_eq!(of(item("butler", "text").titled("Title")), "[butler] Warning: Title");
    }

    #[test]
    fn a_chosen_subject_gets_the_origin_in_front_unless_it_has_it() {
        assert_eq!(chosen("News"), "[butler] News");
        assert_eq!(chosen("[butler] News"), "[butler] News");
        assert_eq!(chosen("[coder] News"), "[butler] [coder] News");
        assert_eq!(chosen(" \r\n "), "[butler] Notification");
        assert_eq!(chosen("a\r\nBcc: eve@example.org"), "[butler] a Bcc: eve@example.org");
    }

    #[test]
    fn a_digest_is_counted_and_a_digest_of_one_is_no_digest() {
        let of = |origins: &[&str]| subject(&Content::Digest(origins.iter().map(|name| item(name, "x")).collect()));
        assert_eq!(of(&["butler"]), "[butler] Warning: x");
        assert_eq!(of(&["butler", "butler"]), "[butler] 2 notifications");
        assert_eq!(of(&["butler", "coder", "butler"]), "3 notifications from butler and coder");
        assert_eq!(of(&["a", "b", "c"]), "3 notifications from a and 2 others");
    }
}

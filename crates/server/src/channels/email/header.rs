//! Header fields in RFC 5322 form, for any text.
//!
//! A field name is always a literal. A value is either of a type that allows only safe characters, or goes through
//! [`Headers::text`], which keeps printable ASCII and writes everything else as encoded words (RFC 2047). So no input can
//! end a line.

use base64::Engine;
use base64::prelude::BASE64_STANDARD;

use super::NamedAddress;

/// The longest line with encoded words, and the longest encoded word (RFC 2047, 2).
const LINE_MAX: usize = 76;
const WORD_MAX: usize = 75;
const WORD_OPEN: &str = "=?utf-8?B?";
const WORD_CLOSE: &str = "?=";

/// Builds the header block.
#[derive(Default)]
pub(super) struct Headers(String);

impl Headers {
    /// Adds a field whose value is known to be safe: a literal, or of a type that allows only safe characters.
    pub(super) fn known(mut self, name: &'static str, value: &str) -> Self {
        debug_assert!(value.chars().all(|c| c == ' ' || c.is_ascii_graphic()), "{name} is not safe: {value:?}");
        self.0.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// Adds a field with any text.
    pub(super) fn text(mut self, name: &'static str, value: &str) -> Self {
        let room = LINE_MAX - name.len() - 2;
        let value = if is_plain(value) && value.len() <= room { value.to_owned() } else { words(value, room) };
        self.0.push_str(&format!("{name}: {value}\r\n"));
        self
    }

    /// Adds a field with a display name and an address.
    pub(super) fn mailbox(mut self, name: &'static str, mailbox: &NamedAddress) -> Self {
        let room = LINE_MAX - name.len() - 2;
        let shown = mailbox.name.as_deref().map(|shown| match is_plain(shown) && shown.len() <= room / 2 {
            true => quoted(shown),
            false => words(shown, room),
        });
        match shown {
            Some(shown) => self.0.push_str(&format!("{name}: {shown}\r\n <{}>\r\n", mailbox.address)),
            None => self.0.push_str(&format!("{name}: {}\r\n", mailbox.address)),
        }
        self
    }

    /// The block, without the empty line that ends it.
    pub(super) fn finish(self) -> String {
        self.0
    }
}

/// A quoted string: backslashes and quotes inside it are escaped.
pub(super) fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

/// Printable ASCII that cannot be read as an encoded word.
fn is_plain(text: &str) -> bool {
    let printable = text.chars().all(|c| c == ' ' || c.is_ascii_graphic());
    printable && !text.contains("=?") && text.trim() == text && !text.is_empty()
}

/// Encoded words, one per line, none splitting a character. The first one must fit into `room` bytes.
fn words(text: &str, room: usize) -> String {
    let bytes_in = |room: usize| (room.min(WORD_MAX) - WORD_OPEN.len() - WORD_CLOSE.len()) / 4 * 3;
    let mut words = vec![String::new()];
    for character in text.chars() {
        let max = bytes_in(if words.len() == 1 { room } else { WORD_MAX });
        match words.last_mut() {
            Some(word) if word.len() + character.len_utf8() <= max => word.push(character),
            _ => words.push(character.to_string()),
        }
    }
    let encoded = words.iter().map(|word| format!("{WORD_OPEN}{}{WORD_CLOSE}", BASE64_STANDARD.encode(word)));
    encoded.collect::<Vec<_>>().join("\r\n ")
}

#[cfg(test)]
mod tests {
    use super::super::EmailAddress;
    use super::*;

    fn subject(value: &str) -> String {
        Headers::default().text("Subject", value).finish()
    }

    fn from(name: &str) -> String {
        let address = EmailAddress::parse("ada@example.org").expect("an address");
        Headers::default().mailbox("From", &NamedAddress { name: Some(name.to_owned()), address }).finish()
    }

    #[test]
    fn plain_words_stay_readable() {
        assert_eq!(subject("[butler] Info: done, 100 %"), "Subject: [butler] Info: done, 100 %\r\n");
    }

    #[test]
    fn other_letters_are_encoded_in_lines_that_fit() {
        assert_eq!(subject("Zoë"), "Subject: =?utf-8?B?Wm/Dqw==?=\r\n");
        let long = subject(&"\u{1f600}".repeat(500));
        assert!(long.lines().count() > 10);
        for line in long.split("\r\n") {
            assert!(line.len() <= LINE_MAX, "{line}");
        }
    }

    #[test]
    fn a_text_that_looks_encoded_is_not_decoded_into_something_else() {
        let header = subject("=?utf-8?B?QmNjOiBldmU=?=");
        assert_eq!(header, "Subject: =?utf-8?B?PT91dGYtOD9CP1FtTmpPaUJsZG1VPT89?=\r\n");
    }

    #[test]
    fn line_ends_never_reach_a_line() {
        for text in ["a\r\nBcc: x", "a\nb", "a\0b", "\r", "", " a"] {
            let header = subject(text);
            assert!(header.starts_with("Subject: =?utf-8?B?"), "{header:?}");
            assert_eq!(header.matches("\r\n").count(), 1, "{header:?}");
        }
    }

    #[test]
    fn a_name_with_a_comma_or_quotes_is_one_name() {
        assert_eq!(from("Lovelace, Ada"), "From: \"Lovelace, Ada\"\r\n <ada@example.org>\r\n");
        assert_eq!(from("a \"b\" \\ <c>"), "From: \"a \\\"b\\\" \\\\ <c>\"\r\n <ada@example.org>\r\n");
        assert_eq!(from("Zoë"), "From: =?utf-8?B?Wm/Dqw==?=\r\n <ada@example.org>\r\n");
    }
}

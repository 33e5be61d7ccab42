use std::fmt;

use bellwire_core::person::one_line;

use super::super::SmtpStep;
use super::session::{SmtpError, SmtpErrorCause};

/// How much of a reply's text is kept, in characters.
const TEXT_MAX: usize = 300;

/// A server's reply: its code and its text, cleaned and on one line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct SmtpReply {
    pub(in super::super) code: u16,
    pub(in super::super) text: String,
}

/// One line of a reply.
pub(super) struct ReplyLine {
    pub(super) code: u16,
    pub(super) text: String,
    pub(super) last: bool,
}

impl SmtpReply {
    /// Joins the texts of its lines.
    pub(super) fn new(code: u16, lines: &[String]) -> Self {
        let mut text = one_line(&lines.join(" "));
        if let Some((end, _)) = text.char_indices().nth(TEXT_MAX) {
            // Cut between words if possible: a truncated address would not be recognized and removed later.
            text.truncate(text[..end].rfind(' ').unwrap_or(end));
        }
        Self { code, text }
    }

    /// The enhanced status code, such as `5.1.1`, if the text begins with one of the same class as the code.
    pub(in super::super) fn enhanced(&self) -> Option<String> {
        let first = self.text.split(' ').next()?;
        let parts: Vec<&str> = first.split('.').collect();
        let number = |part: &&str| (1..=3).contains(&part.len()) && part.bytes().all(|byte| byte.is_ascii_digit());
        let class = self.code.to_string();
        let fits = parts.len() == 3 && parts.iter().all(number) && class.starts_with(parts[0]);
        fits.then(|| first.to_owned())
    }

    pub(super) fn expect(self, step: SmtpStep, code: u16) -> Result<Self, SmtpError> {
        self.expect_any(step, &[code])
    }

    pub(super) fn expect_any(self, step: SmtpStep, codes: &[u16]) -> Result<Self, SmtpError> {
        match codes.contains(&self.code) {
            true => Ok(self),
            false => Err(SmtpError::at(step, SmtpErrorCause::Answered(self))),
        }
    }
}

impl ReplyLine {
    /// Parses `250-text` or `250 text`; none for anything else.
    pub(super) fn parse(line: &[u8]) -> Option<Self> {
        let digits = line.get(..3).filter(|digits| digits.iter().all(u8::is_ascii_digit))?;
        let code = digits.iter().fold(0, |code, digit| code * 10 + u16::from(digit - b'0'));
        let (last, text) = match line.get(3) {
            None => (true, &line[3..]),
            Some(b' ') => (true, &line[4..]),
            Some(b'-') => (false, &line[4..]),
            Some(_) => return None,
        };
        (200..600).contains(&code).then(|| Self { code, text: String::from_utf8_lossy(text).into_owned(), last })
    }
}

impl fmt::Display for SmtpReply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.code, self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_three_digits_and_a_sign() {
        let read = |line: &str| ReplyLine::parse(line.as_bytes()).map(|line| (line.code, line.text, line.last));
        assert_eq!(read("250 ok"), Some((250, "ok".into(), true)));
        assert_eq!(read("250-SIZE 10"), Some((250, "SIZE 10".into(), false)));
        assert_eq!(read("250"), Some((250, String::new(), true)));
        for garbage in ["", "25", "HTTP/1.1 400", "2500 ok", "25x ok", "250_ok", "999 ok", "٢٥٠ ok"] {
            assert_eq!(read(garbage), None, "{garbage}");
        }
    }

    #[test]
    fn a_text_is_cleaned_and_bounded_and_the_enhanced_code_is_found() {
        let reply = SmtpReply::new(550, &["5.1.1 no\u{1b}[31m such".into(), "5.1.1 user\u{202e}".into()]);
        assert_eq!(reply.to_string(), "550 5.1.1 no[31m such 5.1.1 user");
        assert_eq!(reply.enhanced().as_deref(), Some("5.1.1"));
        for text in ["4.1.1 other class", "5.1 short", "5.1.x", "no", "5.1.1111 long"] {
            assert_eq!(SmtpReply::new(550, &[text.into()]).enhanced(), None, "{text}");
        }
        assert_eq!(SmtpReply::new(250, &["x".repeat(100_000)]).text.len(), TEXT_MAX);
    }
}

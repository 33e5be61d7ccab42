use jiff::fmt::rfc2822;
use jiff::tz::{TimeZone, TimeZoneDatabase};
use jiff::{Timestamp, Zoned};

use bellwire_core::Time;

use super::header::Headers;
use super::{MailMessage, NamedAddress, html, plain, quoted_printable, subject};

/// The bodies are quoted-printable, in which `=_` cannot occur: no text can contain the boundary.
const BOUNDARY: &str = "=_bellwire_alternative";

/// The bytes of the message: headers, the text part and the HTML part. The same message always gives the same bytes, so that
/// every attempt of a delivery sends the same mail. The output is ASCII with lines of at most 998 bytes.
pub fn compose(mail: &MailMessage) -> Vec<u8> {
    let subject = subject::subject(&mail.content);
    let parts = [("text/plain", plain::plain(mail)), ("text/html", html::html(mail, &subject))];
    let mut message = headers(mail, &subject);
    for (kind, text) in parts {
        message.push_str(&format!(
            "\r\n--{BOUNDARY}\r\nContent-Type: {kind}; charset=utf-8\r\nContent-Transfer-Encoding: \
             quoted-printable\r\n\r\n{}",
            quoted_printable::encode(&text)
        ));
    }
    message.push_str(&format!("\r\n--{BOUNDARY}--\r\n"));
    message.into_bytes()
}

fn headers(mail: &MailMessage, subject: &str) -> String {
    let to = NamedAddress { name: None, address: mail.to.clone() };
    let mut headers = Headers::default()
        .known("Date", &date(mail.at))
        .mailbox("From", &mail.from)
        .mailbox("To", &to)
        .text("Subject", subject)
        .known("Message-ID", &mail.message_id.to_string())
        // Asks automatic responders not to reply (RFC 3834).
        .known("Auto-Submitted", "auto-generated");
    if let Some(answered) = &mail.in_reply_to {
        let answered = answered.to_string();
        headers = headers.known("In-Reply-To", &answered).known("References", &answered);
    }
    if let Some(link) = mail.links().unsubscribe {
        headers = headers
            .known("List-Unsubscribe", &format!("<{}>", link.as_str()))
            .known("List-Unsubscribe-Post", "List-Unsubscribe=One-Click");
    }
    headers
        .known("MIME-Version", "1.0")
        .known("Content-Type", &format!("multipart/alternative; boundary=\"{BOUNDARY}\""))
        .finish()
}

impl MailMessage {
    /// A time in the recipient's time zone.
    pub(super) fn shown(&self, at: Time) -> String {
        let zone = self.zone.as_deref().and_then(|name| TimeZoneDatabase::bundled().get(name).ok());
        moment(at, zone.unwrap_or(TimeZone::UTC)).strftime("%a %-d %b %Y, %H:%M %Z").to_string()
    }
}

/// The value of a `Date` header.
pub(super) fn date(at: Time) -> String {
    // The printer refuses years without four digits; such a time is replaced by the epoch.
    let epoch = || "Thu, 1 Jan 1970 00:00:00 +0000".to_owned();
    rfc2822::to_string(&moment(at, TimeZone::UTC)).unwrap_or_else(|_| epoch())
}

fn moment(at: Time, zone: TimeZone) -> Zoned {
    Timestamp::from_millisecond(at.as_millis()).unwrap_or_default().to_zoned(zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_date_has_the_form_of_rfc_2822() {
        let at: Time = "2026-11-15T21:05:09.5Z".parse().expect("a time");
        assert_eq!(date(at), "Sun, 15 Nov 2026 21:05:09 +0000");
        assert_eq!(date(Time::NEVER), "Thu, 1 Jan 1970 00:00:00 +0000");
        assert_eq!(date(Time::from_millis(-80_000_000_000_000)), "Thu, 1 Jan 1970 00:00:00 +0000");
    }
}

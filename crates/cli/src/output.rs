use std::io::Write as _;
use std::sync::mpsc;
use std::time::Duration;

use anstyle::{AnsiColor, Style};
use anyhow::Result;
use bellwire_core::timeline::Tone;
use serde_json::Value;

pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const MUTED: Style = Style::new().dimmed();
pub(crate) const WRONG: Style = AnsiColor::Red.on_default().bold();
pub(crate) const SAID: Style = AnsiColor::Green.on_default();
pub(crate) const WAITS: Style = AnsiColor::Yellow.on_default();
pub(crate) const TEXT: Style = AnsiColor::Cyan.on_default();

/// The style of a report line. `anstream` removes colours where the terminal does not support them.
pub(crate) fn style(tone: Tone) -> Style {
    match tone {
        Tone::Said => SAID,
        Tone::Waits => WAITS,
        Tone::Kept => MUTED,
        Tone::Wrong => WRONG,
        Tone::Text => TEXT,
    }
}

/// The style of a verdict or a notification state.
pub(crate) fn verdict_style(verdict: &str) -> Style {
    match verdict {
        "queued" | "injected" => SAID,
        "held" | "pending" => WAITS,
        "suppressed" | "expired" => WRONG,
        _ => MUTED,
    }
}

/// Whom a verdict is for, where its event does not say it: `in chat` for an event that was sent to a person, `for the
/// person` for a verdict about the person's inbox.
pub(crate) fn decided_for(verdict: &Value, event: &Value) -> Option<String> {
    // The verdict of `*` is about every subscriber, and so for no mailbox.
    let is_of_person = verdict["agent"].is_null() && verdict["subscriber"] != "*";
    let conversation = || verdict["conversation_id"].is_string() && event["conversation_id"].is_null();
    match is_of_person {
        true => Some("for the person".to_owned()),
        false => conversation().then(|| format!("in {}", cell(verdict, "conversation_id"))),
    }
}

/// Wraps a text in a style's escape codes.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{}{text}{}", style.render(), style.render_reset())
}

/// Escapes control characters of external text, which could move the cursor or change colours.
pub(crate) fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c.to_string(),
        c if c.is_control() => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// A string field of a JSON object, made [`printable`]; empty if it is missing.
pub(crate) fn text(value: &Value, key: &str) -> String {
    printable(value[key].as_str().unwrap_or(""))
}

/// The same on one line, as a cell of a table.
pub(crate) fn cell(value: &Value, key: &str) -> String {
    text(value, key).replace(['\n', '\t'], " ")
}

/// A time of a JSON object without fractions of a second, so that columns stay aligned.
pub(crate) fn seconds(value: &Value, key: &str) -> String {
    let time = text(value, key);
    match time.split_once('.') {
        Some((whole, _)) => format!("{whole}Z"),
        None => time,
    }
}

/// The entries of a list that the hub answered.
pub(crate) fn items(list: &Value) -> &[Value] {
    list["items"].as_array().map(Vec::as_slice).unwrap_or_default()
}

/// Says on standard error how to get the next page of a list, if there is one.
pub(crate) fn say_next_page(list: &Value) {
    if let Some(cursor) = list["next_cursor"].as_str() {
        anstream::eprintln!("{}", paint(MUTED, format!("there are more: --cursor {}", printable(cursor))));
    }
}

/// Prints a JSON value on one line.
pub(crate) fn print_json(value: &Value) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}")?;
    out.flush()?;
    Ok(true)
}

/// Prints a warning to standard error.
pub(crate) fn warn(message: &str) {
    anstream::eprintln!("{}", warning_line(message));
}

/// A word of caution as a line.
pub(crate) fn warning_line(message: &str) -> String {
    format!("{} {}", paint(WAITS, "warning:"), printable(message))
}

/// A last line on standard error. Where that is closed or not read, the process ends without it.
pub(crate) fn say_in_time(line: String) {
    let (written, done) = mpsc::channel();
    std::thread::spawn(move || written.send(writeln!(anstream::stderr(), "{line}").is_ok()));
    let _ = done.recv_timeout(Duration::from_millis(500));
}

/// Whether the reader of our output closed the pipe, as `head` does. The program then exits successfully.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_verdict_says_whom_it_is_for_where_its_event_does_not() {
        let agent = json!({"subscriber": "ci", "conversation_id": "chat", "agent": "main"});
        let person = json!({"subscriber": "ci", "conversation_id": null, "agent": null});
        let all = json!({"subscriber": "*", "conversation_id": null, "agent": null});
        let [to_chat, to_ada] = [json!({"conversation_id": "chat"}), json!({"user_id": "ada"})];
        for (verdict, event, expected) in [
            (&agent, &to_chat, None),
            (&agent, &to_ada, Some("in chat")),
            (&person, &to_chat, Some("for the person")),
            (&person, &to_ada, Some("for the person")),
            (&all, &to_ada, None),
        ] {
            assert_eq!(decided_for(verdict, event).as_deref(), expected, "{verdict} {event}");
        }
    }
}

use std::io::Write as _;

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

/// The colour of a line; where colours are not wanted, anstream takes them out.
pub(crate) fn style(tone: Tone) -> Style {
    match tone {
        Tone::Said => SAID,
        Tone::Waits => WAITS,
        Tone::Kept => MUTED,
        Tone::Wrong => WRONG,
        Tone::Text => TEXT,
    }
}

/// The colour of a verdict.
pub(crate) fn verdict_style(verdict: &str) -> Style {
    match verdict {
        "queued" | "injected" => SAID,
        "held" | "pending" => WAITS,
        "suppressed" | "expired" => WRONG,
        _ => MUTED,
    }
}

/// A text in a colour.
pub(crate) fn paint(style: Style, text: impl std::fmt::Display) -> String {
    format!("{}{text}{}", style.render(), style.render_reset())
}

/// Text from outside on its way to a terminal: what could move the cursor or change colours is shown, not obeyed.
pub(crate) fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c.to_string(),
        c if c.is_control() => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// A text of a JSON object, safe for a terminal; nothing where it has none.
pub(crate) fn text(value: &Value, key: &str) -> String {
    printable(value[key].as_str().unwrap_or(""))
}

/// One JSON value on a line of its own.
pub(crate) fn print_json(value: &Value) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    writeln!(out, "{value}")?;
    out.flush()?;
    Ok(true)
}

/// A word of caution, beside the data.
pub(crate) fn warn(message: &str) {
    anstream::eprintln!("{} {}", paint(WAITS, "warning:"), printable(message));
}

/// `head` closes the pipe when it has seen enough; that is no error.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}

use anstyle::{AnsiColor, Style};
use bellwire_core::timeline::Tone;

pub(crate) const STRONG: Style = Style::new().bold();
pub(crate) const MUTED: Style = Style::new().dimmed();
pub(crate) const WRONG: Style = AnsiColor::Red.on_default().bold();
const SAID: Style = AnsiColor::Green.on_default();
const WAITS: Style = AnsiColor::Yellow.on_default();
const TEXT: Style = AnsiColor::Cyan.on_default();

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

/// Text from outside on its way to a terminal: what could move the cursor or change colours is shown, not obeyed.
pub(crate) fn printable(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' | '\t' => c.to_string(),
        c if c.is_control() => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

/// `head` closes the pipe when it has seen enough; that is no error.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().find_map(|cause| cause.downcast_ref::<std::io::Error>());
    io.is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
}

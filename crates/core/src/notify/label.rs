/// The subject of an email whose `notify` call has none.
pub const DEFAULT_SUBJECT: &str = "Notification";

/// The text with `[origin] ` in front, unless it begins with that label, in whatever case.
///
/// Only the authenticated origin counts: a text that begins with another origin's label gets its own in front.
///
/// ```
/// use bellwire_core::notify::labelled;
///
/// assert_eq!(labelled("health", "Take a walk"), "[health] Take a walk");
/// assert_eq!(labelled("health", "[Health] Take a walk"), "[Health] Take a walk");
/// assert_eq!(labelled("health", "[bank] Pay now"), "[health] [bank] Pay now");
/// ```
pub fn labelled(origin: &str, text: &str) -> String {
    let label = format!("[{origin}]");
    // Compared by characters: the lower case of some characters has another length.
    let mut characters = text.trim_start().chars().flat_map(char::to_lowercase);
    let has_label = label.chars().flat_map(char::to_lowercase).all(|expected| characters.next() == Some(expected));
    if has_label { text.to_owned() } else { format!("{label} {text}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_label_is_added_once() {
        let once = labelled("bücher bot", "Neues");
        assert_eq!(once, "[bücher bot] Neues");
        assert_eq!(labelled("bücher bot", &once), once);
        assert_eq!(labelled("a", "  [A] x"), "  [A] x");
        assert_eq!(labelled("a", "[ab] x"), "[a] [ab] x");
        assert_eq!(labelled("a", "[a"), "[a] [a");
        assert_eq!(labelled("a", ""), "[a] ");
    }
}

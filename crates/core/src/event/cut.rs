use std::fmt::{self, Write as _};

/// The first `max` characters, followed by an ellipsis if the text is longer.
pub(crate) fn cut(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// [`cut`] for a value's `Display` output. Formatting stops at the limit, so the output may be endless.
pub(crate) fn cut_display(value: impl fmt::Display, max: usize) -> String {
    let mut kept = CutWriter { text: String::new(), left: max };
    match write!(kept, "{value}") {
        Ok(()) => kept.text,
        Err(_) => kept.text + "…",
    }
}

struct CutWriter {
    text: String,
    /// The number of characters that may still be written.
    left: usize,
}

impl fmt::Write for CutWriter {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = text.char_indices().nth(self.left).map(|(end, _)| end);
        let kept = &text[..end.unwrap_or(text.len())];
        self.text.push_str(kept);
        self.left -= kept.chars().count();
        if end.is_some() { Err(fmt::Error) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endless_output_is_cut_like_a_text() {
        struct Endless;
        impl fmt::Display for Endless {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                loop {
                    f.write_str("é,")?;
                }
            }
        }
        assert_eq!(cut_display(Endless, 5), "é,é,é…");
        for (text, max) in [("", 0), ("ab", 2), ("abc", 2), ("é", 0)] {
            assert_eq!(cut_display(text, max), cut(text, max));
        }
    }
}

//! Texts of messages: entities instead of markup, lengths as Telegram counts them, long texts in parts.

use std::ops::Range;

use serde::Serialize;
use unicode_segmentation::GraphemeCursor;

/// The longest text of one message, in UTF-16 code units.
pub(crate) const PART_UNITS_MAX: usize = 4096;

/// A text with formatting, of any length.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Text {
    /// The text.
    pub(super) text: String,
    /// What is formatted, in bytes.
    ranges: Vec<(Range<usize>, EntityKind)>,
}

/// A text that fits into one message.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct TextPart {
    /// The text.
    pub(crate) text: String,
    /// The formatting.
    pub(crate) entities: Vec<Entity>,
}

/// A formatted range of a part, in UTF-16 code units.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct Entity {
    /// How it is formatted.
    #[serde(rename = "type")]
    pub(crate) kind: EntityKind,
    /// Where it begins.
    pub(crate) offset: usize,
    /// Its length.
    pub(crate) length: usize,
}

/// A kind of formatting.
#[derive(Copy, Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum EntityKind {
    /// Bold, for titles.
    Bold,
    /// Italic, for the hub's own notes beside an agent's text.
    Italic,
    /// A quotation, for the text of one notification among several.
    Blockquote,
}

impl Text {
    /// A text without formatting.
    pub(crate) fn plain(text: &str) -> Self {
        Self { text: text.to_owned(), ranges: Vec::new() }
    }

    /// Appends a text.
    pub(crate) fn push(&mut self, text: &str) {
        self.text.push_str(text);
    }

    /// Appends a formatted text.
    pub(crate) fn push_formatted(&mut self, text: &str, kind: EntityKind) {
        let start = self.text.len();
        self.text.push_str(text);
        if start < self.text.len() {
            self.ranges.push((start..self.text.len(), kind));
        }
    }

    /// Appends another text as a paragraph of its own, if both fit into one message. Otherwise returns it.
    pub(crate) fn append_paragraph(&mut self, other: Self) -> Result<(), Self> {
        const SEPARATOR: &str = "\n\n";
        if units(&self.text) + units(SEPARATOR) + units(&other.text) > PART_UNITS_MAX {
            return Err(other);
        }
        self.push(SEPARATOR);
        let start = self.text.len();
        self.push(&other.text);
        let moved = |(range, kind): (Range<usize>, EntityKind)| (range.start + start..range.end + start, kind);
        self.ranges.extend(other.ranges.into_iter().map(moved));
        Ok(())
    }

    /// Splits it into messages: at paragraphs, else lines, else words, else between two characters as people see them.
    /// White space at the edges of a part is removed; a blank text has no parts.
    pub(crate) fn split(&self) -> Vec<TextPart> {
        let mut parts = Vec::new();
        let mut start = 0;
        while start < self.text.len() {
            start += leading_space(&self.text[start..]);
            let length = part_length(&self.text[start..]);
            let end = start + self.text[start..start + length].trim_end().len();
            if start < end {
                parts.push(self.part(start..end));
            }
            start += length;
        }
        parts
    }

    fn part(&self, range: Range<usize>) -> TextPart {
        let units = |range: Range<usize>| units(&self.text[range]);
        let inside = self.ranges.iter().filter_map(|(formatted, kind)| {
            let (from, to) = (formatted.start.max(range.start), formatted.end.min(range.end));
            let entity = || Entity { kind: *kind, offset: units(range.start..from), length: units(from..to) };
            (from < to).then(entity)
        });
        TextPart { entities: inside.collect(), text: self.text[range.clone()].to_owned() }
    }
}

/// The length of a text as Telegram counts it.
pub(crate) fn units(text: &str) -> usize {
    text.chars().map(char::len_utf16).sum()
}

fn leading_space(text: &str) -> usize {
    text.len() - text.trim_start().len()
}

/// How many bytes of the text the next part takes, with the white space at its end.
fn part_length(text: &str) -> usize {
    let Some(longest) = longest_prefix(text) else { return text.len() };
    let window = &text[..longest];
    // A break in the first half would make more and shorter parts than needed.
    let is_late = |at: &usize| *at >= longest / 2;
    let paragraph = window.rfind("\n\n").filter(is_late);
    let line = || window.rfind('\n').filter(is_late);
    let word = || window.rfind(char::is_whitespace).filter(is_late);
    let at = paragraph.or_else(line).or_else(word);
    at.unwrap_or_else(|| character_boundary(text, longest))
}

/// The longest prefix in bytes that fits into a part; none if all of it does.
fn longest_prefix(text: &str) -> Option<usize> {
    let mut units = 0;
    let too_long = |(at, c): (usize, char)| {
        units += c.len_utf16();
        (units > PART_UNITS_MAX).then_some(at)
    };
    text.char_indices().find_map(too_long)
}

/// The last boundary between two characters as people see them, at or before `end`. A single one that is longer than a
/// part, such as a letter under thousands of accents, is cut between two code points.
fn character_boundary(text: &str, end: usize) -> usize {
    let mut cursor = GraphemeCursor::new(end, text.len(), true);
    if cursor.is_boundary(text, 0) == Ok(true) {
        return end;
    }
    cursor.prev_boundary(text, 0).ok().flatten().filter(|at| *at > 0).unwrap_or(end)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parts(text: &str) -> Vec<String> {
        Text::plain(text).split().into_iter().map(|part| part.text).collect()
    }

    #[test]
    fn a_text_that_fits_is_one_part() {
        let emoji = "🔔".repeat(2048);
        for text in ["x", "a\n\nb", emoji.as_str()] {
            assert_eq!(parts(text), [text]);
        }
        assert_eq!(parts(""), [] as [&str; 0]);
        assert_eq!(parts(" \n "), [] as [&str; 0]);
        assert_eq!(parts("  a \n"), ["a"]);
    }

    #[test]
    fn a_long_text_is_split_at_the_best_break_of_its_second_half() {
        let (half, rest) = ("x ".repeat(1500), "y".repeat(2000));
        let (paragraphs, lines) = (format!("{half}\n\n{rest}"), format!("{half}\nz {rest}"));
        assert_eq!(parts(&paragraphs), [half.trim_end(), &rest]);
        assert_eq!(parts(&lines), [half.trim_end().to_owned(), format!("z {rest}")]);
        let words = format!("{half}{rest}");
        assert_eq!(parts(&words), [half.trim_end(), &rest]);
        // A paragraph that ends early does not make a short part.
        let early = format!("a\n\n{}", "b ".repeat(3000));
        assert!(units(&parts(&early)[0]) > 4000);
    }

    #[test]
    fn no_surrogate_pair_and_no_visible_character_is_cut() {
        let odd = format!("x{}", "🔔".repeat(3000));
        let shown = parts(&odd);
        assert_eq!(units(&shown[0]), 4095);
        assert_eq!(shown.concat(), odd);
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        for part in parts(&family.repeat(1000)) {
            assert_eq!(part, family.repeat(part.len() / family.len()));
        }
        let accents = format!("a{}", "\u{301}".repeat(9000));
        assert_eq!(parts(&accents).concat(), accents);
    }

    #[test]
    fn a_title_is_bold_in_every_part_that_it_reaches() {
        let mut text = Text::default();
        text.push("🔔 ");
        text.push_formatted(&"t".repeat(5000), EntityKind::Bold);
        text.push(" end");
        let parts = text.split();
        let bold = |offset, length| Entity { kind: EntityKind::Bold, offset, length };
        assert_eq!(parts[0].entities, [bold(3, 4093)]);
        assert_eq!(parts[1].entities, [bold(0, 907)]);
        assert_eq!(
            serde_json::to_string(&parts[1].entities).expect("JSON"),
            r#"[{"type":"bold","offset":0,"length":907}]"#
        );
    }

    proptest! {
        /// Nothing but white space at the edges is lost, every part fits, and no entity leaves its part.
        #[test]
        fn parts_fit_and_hold_everything(
            words in prop::collection::vec(
                prop_oneof![Just("\n".to_owned()), Just("\n\n".to_owned()), Just(" ".to_owned()), "\\PC{0,900}"], 0..40),
        ) {
            let mut text = Text::default();
            for (index, word) in words.iter().enumerate() {
                match index % 3 {
                    0 => text.push_formatted(word, EntityKind::Bold),
                    _ => text.push(word),
                }
            }
            let parts = text.split();
            let squeeze = |text: &str| text.split_whitespace().collect::<String>();
            prop_assert_eq!(parts.iter().map(|part| squeeze(&part.text)).collect::<String>(), squeeze(&text.text));
            for part in &parts {
                let length = units(&part.text);
                prop_assert!((1..=PART_UNITS_MAX).contains(&length));
                prop_assert_eq!(part.text.trim(), &part.text);
                for entity in &part.entities {
                    prop_assert!(entity.length > 0 && entity.offset + entity.length <= length);
                }
            }
        }
    }
}

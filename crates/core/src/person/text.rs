use crate::render::guard::{is_hidden, is_line_break};

const BLACK_FLAG: char = '\u{1f3f4}';
const TAGS_END: char = '\u{e007f}';

/// Cleans text for a person: every Unicode line break becomes a line feed, and invisible or reordering characters are
/// removed, except those that scripts and emoji need.
pub fn clean(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut characters = text.chars().peekable();
    // Whether the text so far ends in a black flag with an unfinished tag sequence.
    let mut in_flag = false;
    while let Some(character) = characters.next() {
        match character {
            // A carriage return before a line feed is part of the same line break.
            '\r' if characters.peek() == Some(&'\n') => {}
            _ if is_line_break(character) => out.push('\n'),
            _ if is_tag(character) && !in_flag => {}
            _ if is_hidden(character) && !is_written(character) => {}
            _ => {
                out.push(character);
                in_flag = character == BLACK_FLAG || is_tag(character) && character != TAGS_END;
            }
        }
    }
    out.trim().to_owned()
}

/// [`clean`], joined into one line, for subjects and names.
pub fn one_line(text: &str) -> String {
    let clean = clean(text);
    let mut words = clean.split_whitespace();
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |line, word| line + " " + word)
}

/// A name without any invisible character, on one line. Two names that look alike because one contains an invisible
/// character become equal.
pub fn visible_name(text: &str) -> String {
    let seen = |character: &char| !is_hidden(*character) && !is_variation_selector(*character);
    one_line(&one_line(text).chars().filter(seen).collect::<String>())
}

/// Invisible characters that scripts and emoji need: joiners, selectors, the fillers of Old Hangul, the format controls
/// of hieroglyphs, and tags.
fn is_written(character: char) -> bool {
    is_variation_selector(character)
        || is_tag(character)
        || matches!(character, '\u{115f}' | '\u{1160}' | '\u{200c}' | '\u{200d}' | '\u{13430}'..='\u{1343f}')
}

fn is_variation_selector(character: char) -> bool {
    matches!(character, '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// Tags select the flag that a black flag shows. Elsewhere they would be hidden text that only programs read.
fn is_tag(character: char) -> bool {
    matches!(character, '\u{e0020}'..='\u{e007f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deceptive_characters_are_removed_and_others_stay() {
        assert_eq!(clean("  a\r\nb\0\u{1b}[31mc\u{202e}d\t "), "a\nb[31mcd");
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        assert_eq!(clean(family), family);
        let persian = "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}";
        assert_eq!(clean(persian), persian);
        assert_eq!(one_line(" a\r\nBcc: x@y \t z "), "a Bcc: x@y z");
        assert_eq!(one_line(""), "");
        let scotland = "\u{1f3f4}\u{e0067}\u{e0062}\u{e0073}\u{e0063}\u{e0074}\u{e007f}";
        assert_eq!(clean(&format!("{scotland}\u{e0041}a\u{e0042}")), format!("{scotland}a"));
    }

    #[test]
    fn every_invisible_character_of_the_unicode_tables_is_removed_unless_scripts_need_it() {
        use icu_properties::props::{
            BidiControl, DefaultIgnorableCodePoint, GeneralCategory, JoinControl, LineBreak, NoncharacterCodePoint,
            VariationSelector,
        };
        use icu_properties::{CodePointMapData, CodePointSetData};
        let line_break = CodePointMapData::<LineBreak>::new();
        let category = CodePointMapData::<GeneralCategory>::new();
        let [ignorable, bidi, nothing, join, selector] = [
            CodePointSetData::new::<DefaultIgnorableCodePoint>(),
            CodePointSetData::new::<BidiControl>(),
            CodePointSetData::new::<NoncharacterCodePoint>(),
            CodePointSetData::new::<JoinControl>(),
            CodePointSetData::new::<VariationSelector>(),
        ];
        let ends_line =
            [LineBreak::MandatoryBreak, LineBreak::CarriageReturn, LineBreak::LineFeed, LineBreak::NextLine];
        for character in '\0'..=char::MAX {
            let needed = join.contains(character)
                || selector.contains(character)
                || matches!(character, '\u{115f}' | '\u{1160}');
            let unwelcome = match category.get(character) {
                GeneralCategory::Control => character != '\t',
                _ => {
                    ignorable.contains(character) && !needed || bidi.contains(character) || nothing.contains(character)
                }
            };
            let shown = clean(&format!("a{character}b"));
            match ends_line.contains(&line_break.get(character)) {
                true => assert_eq!(shown, "a\nb", "{character:?}"),
                // A few deprecated format characters that are not default-ignorable are removed as well.
                false => assert!(!unwelcome || shown == "ab", "{character:?} becomes {shown:?}"),
            }
            if needed {
                assert_eq!(shown, format!("a{character}b"), "{character:?}");
                assert_eq!(visible_name(&format!("a{character}b")), "ab", "{character:?}");
            }
        }
    }
}

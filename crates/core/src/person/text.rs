use std::borrow::Cow;

/// Text for a person as it is kept: line ends are line feeds, and what is no character or reorders what others wrote is
/// gone. What scripts and emoji need to be written stays.
pub fn clean(text: &str) -> String {
    let lines: Cow<str> =
        if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n").into() } else { text.into() };
    lines.chars().filter(|character| !is_unwelcome(*character)).collect::<String>().trim().to_owned()
}

/// The same on one line, for subjects and names.
pub fn one_line(text: &str) -> String {
    let clean = clean(text);
    let mut words = clean.split_whitespace();
    let first = words.next().unwrap_or_default().to_owned();
    words.fold(first, |line, word| line + " " + word)
}

/// Controls, characters that turn the direction of what follows, invisible ones that no script needs, and code points
/// that are no characters. Joiners stay: Persian and family emoji are written with them.
fn is_unwelcome(character: char) -> bool {
    let is_noncharacter = u32::from(character) & 0xfffe == 0xfffe;
    is_noncharacter
        || matches!(character,
            '\0'..='\u{8}' | '\u{b}'..='\u{1f}' | '\u{7f}'..='\u{9f}' | '\u{200b}' | '\u{200e}' | '\u{200f}'
            | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fdd0}'..='\u{fdef}'
            | '\u{fff9}'..='\u{fffb}' | '\u{e0000}'..='\u{e001f}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_could_deceive_or_break_is_gone_and_what_is_written_stays() {
        assert_eq!(clean("  a\r\nb\0\u{1b}[31mc\u{202e}d\t "), "a\nb[31mcd");
        let family = "\u{1f468}\u{200d}\u{1f469}\u{200d}\u{1f467}";
        assert_eq!(clean(family), family);
        let persian = "\u{645}\u{6cc}\u{200c}\u{62e}\u{648}\u{627}\u{647}\u{645}";
        assert_eq!(clean(persian), persian);
        assert_eq!(one_line(" a\r\nBcc: x@y \t z "), "a Bcc: x@y z");
        assert_eq!(one_line(""), "");
    }
}

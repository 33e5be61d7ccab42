/// The longest line of an encoded body (RFC 2045, 6.7).
const LINE_MAX: usize = 76;

/// A text as lines of printable ASCII, each ended by CRLF. Ordinary words stay readable; nothing in it can look like a
/// boundary that has `=_` in it, because `=` is only ever followed by two hex digits or the end of the line.
pub(super) fn encode(text: &str) -> String {
    let mut encoded = String::with_capacity(text.len() * 5 / 4);
    for line in text.strip_suffix('\n').unwrap_or(text).split('\n') {
        encode_line(line.strip_suffix('\r').unwrap_or(line), &mut encoded);
        encoded.push_str("\r\n");
    }
    encoded
}

fn encode_line(line: &str, encoded: &mut String) {
    let bytes = line.as_bytes();
    let mut width = 0;
    for (at, byte) in bytes.iter().enumerate() {
        // Spaces at the end of a line are lost on the way unless they are encoded.
        let last = at + 1 == bytes.len();
        let plain = matches!(byte, b'!'..=b'<' | b'>'..=b'~') || (*byte == b' ' && !last);
        let needed = if plain { 1 } else { 3 };
        // A line that goes on needs room for the sign that it does.
        if width + needed > LINE_MAX - 1 {
            encoded.push_str("=\r\n");
            width = 0;
        }
        match plain {
            true => encoded.push(char::from(*byte)),
            false => encoded.push_str(&format!("={byte:02X}")),
        }
        width += needed;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_stay_and_the_rest_is_written_in_hex() {
        assert_eq!(encode("a = b\nZoë \n.\n"), "a =3D b\r\nZo=C3=AB=20\r\n.\r\n");
        assert_eq!(encode("a\r\nb\rc\0\td"), "a\r\nb=0Dc=00=09d\r\n");
    }

    #[test]
    fn long_lines_are_broken_softly() {
        for text in ["x".repeat(1000), "\u{1f600}".repeat(500), " ".repeat(400)] {
            let encoded = encode(&text);
            assert!(encoded.lines().all(|line| line.len() <= LINE_MAX), "{encoded}");
            assert!(encoded.matches("=\r\n").count() > 4);
        }
    }
}

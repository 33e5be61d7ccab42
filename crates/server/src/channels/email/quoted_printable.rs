/// The longest line of an encoded body (RFC 2045, 6.7).
const LINE_MAX: usize = 76;

/// Encodes a text as lines of printable ASCII, each ended by CRLF. ASCII text stays readable. The output cannot contain a
/// boundary with `=_`, because `=` is always followed by two hex digits or the end of the line.
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
        // Mail servers may strip trailing spaces unless they are encoded.
        let last = at + 1 == bytes.len();
        let plain = matches!(byte, b'!'..=b'<' | b'>'..=b'~') || (*byte == b' ' && !last);
        let needed = if plain { 1 } else { 3 };
        // A soft line break needs one byte for its `=`.
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
    fn ascii_stays_and_other_bytes_are_hex() {
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

//! Splits a stream of server-sent events without losing a byte, and finds the data in an event.

use super::lines::{MESSAGE_MAX, Piece};

/// Collects bytes and returns whole events, each with the blank line that ends it.
#[derive(Default)]
pub(super) struct EventSplitter {
    buffer: Vec<u8>,
    /// How far the buffer was searched for the end of an event.
    searched: usize,
    has_line: bool,
    /// The byte before was a carriage return: a newline that follows belongs to it.
    after_return: bool,
    is_inside_long_event: bool,
}

impl EventSplitter {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.buffer.extend_from_slice(bytes);
    }

    /// The next event ([`Piece::Line`]), or a part of one that is too long to be read; `None` until more bytes come.
    pub(super) fn next(&mut self) -> Option<Piece> {
        if let Some(end) = self.find_end() {
            let rest = self.buffer.split_off(end);
            let event = std::mem::replace(&mut self.buffer, rest);
            self.searched = 0;
            let is_part = std::mem::take(&mut self.is_inside_long_event);
            return Some(if is_part { Piece::Part(event) } else { Piece::Line(event) });
        }
        self.is_inside_long_event |= self.buffer.len() > MESSAGE_MAX;
        if !self.is_inside_long_event || self.buffer.is_empty() {
            return None;
        }
        self.searched = 0;
        Some(Piece::Part(std::mem::take(&mut self.buffer)))
    }

    /// What is left at the end of the stream: an event that was cut off.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.buffer)
    }

    /// The offset behind the next blank line.
    fn find_end(&mut self) -> Option<usize> {
        while let Some(byte) = self.buffer.get(self.searched).copied() {
            self.searched += 1;
            let continues_end = byte == b'\n' && self.after_return;
            self.after_return = byte == b'\r';
            match byte {
                _ if continues_end => {}
                b'\n' | b'\r' if self.has_line => self.has_line = false,
                b'\n' | b'\r' => {
                    // The newline of a CR LF that has not come yet will stand at the beginning of the next event.
                    if byte == b'\r' && self.buffer.get(self.searched) == Some(&b'\n') {
                        self.searched += 1;
                        self.after_return = false;
                    }
                    return Some(self.searched);
                }
                _ => self.has_line = true,
            }
        }
        None
    }
}

/// The fields of an event.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Event {
    /// The data, its lines joined by newlines.
    pub(super) data: String,
    pub(super) id: Option<String>,
    pub(super) retry_ms: Option<u64>,
    /// For each line of data, where it begins in `data` and in the raw event.
    lines: Vec<(usize, usize)>,
}

impl Event {
    /// Reads an event; one that is not UTF-8 has no data.
    pub(super) fn read(raw: &[u8]) -> Self {
        let mut event = Self::default();
        let Ok(text) = std::str::from_utf8(raw) else { return event };
        for line in text.split(['\n', '\r']) {
            let (name, value) = line.split_once(':').unwrap_or(line.split_at(line.len()));
            let value = value.strip_prefix(' ').unwrap_or(value);
            match name {
                "data" => event.add_line(value, super::message::offset(text, value)),
                "id" => event.id = Some(value.to_owned()),
                "retry" => event.retry_ms = value.parse().ok(),
                _ => {}
            }
        }
        event
    }

    fn add_line(&mut self, value: &str, at: usize) {
        if !self.lines.is_empty() {
            self.data.push('\n');
        }
        self.lines.push((self.data.len(), at));
        self.data.push_str(value);
    }

    /// Where a byte of `data` stands in the raw event.
    pub(super) fn raw_offset(&self, at: usize) -> usize {
        let line = self.lines.iter().rev().find(|(begin, _)| *begin <= at);
        line.map_or(at, |(begin, raw)| raw + (at - begin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn split(chunks: &[&[u8]]) -> (Vec<Vec<u8>>, Vec<u8>) {
        let (mut splitter, mut events) = (EventSplitter::default(), Vec::new());
        for chunk in chunks {
            splitter.push(chunk);
            while let Some(piece) = splitter.next() {
                events.push(piece.bytes().to_vec());
            }
        }
        (events, splitter.rest())
    }

    #[test]
    fn events_end_at_a_blank_line_of_any_kind() {
        for end in ["\n", "\r\n", "\r"] {
            let text = format!("id: 1{end}data: a{end}{end}: ping{end}{end}data: b");
            let (events, rest) = split(&[text.as_bytes()]);
            assert_eq!(
                events,
                [format!("id: 1{end}data: a{end}{end}").into_bytes(), format!(": ping{end}{end}").into_bytes()]
            );
            assert_eq!(rest, b"data: b");
        }
    }

    #[test]
    fn an_event_comes_as_soon_as_its_blank_line_also_before_the_second_half_of_the_line_end() {
        let mut splitter = EventSplitter::default();
        splitter.push(b"data: a\r\n\r");
        assert_eq!(splitter.next(), Some(Piece::Line(b"data: a\r\n\r".to_vec())));
        splitter.push(b"\ndata: b\r\n\r\n");
        let next = splitter.next().expect("an event");
        assert_eq!((next.bytes(), Event::read(next.bytes()).data.as_str()), (b"\ndata: b\r\n\r\n".as_slice(), "b"));
    }

    #[test]
    fn fields_are_read_and_offsets_lead_back_to_the_bytes() {
        let raw = b"event: message\nid:7\ndata: {\"a\":\ndata:[1]}\nretry: 250\n\n";
        let event = Event::read(raw);
        assert_eq!((event.data.as_str(), event.id.as_deref(), event.retry_ms), ("{\"a\":\n[1]}", Some("7"), Some(250)));
        for (at, byte) in event.data.bytes().enumerate().filter(|(_, byte)| *byte != b'\n') {
            assert_eq!(raw[event.raw_offset(at)], byte, "{at}");
        }
        assert_eq!(Event::read(b"data: \xff\n\n"), Event::default());
        assert_eq!(Event::read(b"data\n\n").data, "");
    }

    #[test]
    fn an_event_above_the_limit_passes_in_parts() {
        let mut splitter = EventSplitter::default();
        let (long, mut passed) = (vec![b'x'; MESSAGE_MAX / 2 + 1], 0);
        for _ in 0..3 {
            splitter.push(&long);
            while let Some(piece) = splitter.next() {
                assert!(matches!(piece, Piece::Part(_)));
                passed += piece.bytes().len();
            }
        }
        splitter.push(b"\n\ndata: next\n\n");
        assert!(matches!(splitter.next(), Some(Piece::Part(end)) if end == b"\n\n"));
        assert_eq!(passed, 3 * long.len());
        assert_eq!(splitter.next(), Some(Piece::Line(b"data: next\n\n".to_vec())));
    }

    proptest! {
        #[test]
        fn no_byte_is_lost_however_the_stream_is_cut(bytes in prop::collection::vec(prop::sample::select(b"\n\rda: \xff".to_vec()), 0..60), cut in 1_usize..9) {
            let chunks: Vec<&[u8]> = bytes.chunks(cut).collect();
            let (events, rest) = split(&chunks);
            let joined: Vec<u8> = events.into_iter().flatten().chain(rest).collect();
            prop_assert_eq!(joined, bytes);
        }
    }
}

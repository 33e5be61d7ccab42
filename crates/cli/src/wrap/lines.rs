//! Splits a byte stream into lines within a bound of memory.

use tokio::io::{AsyncBufRead, AsyncBufReadExt as _};

/// A longer message passes without being read, in parts, so that memory is bounded.
pub(super) const MESSAGE_MAX: usize = 32 * 1024 * 1024;

/// A piece of a stream, with its newline.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Piece {
    /// A whole line; at the end of the stream also one without a newline.
    Line(Vec<u8>),
    /// A part of a line that is longer than the bound.
    Part(Vec<u8>),
}

pub(super) struct Lines<R> {
    reader: R,
    line_max: usize,
    is_inside_long_line: bool,
}

impl<R: AsyncBufRead + Unpin> Lines<R> {
    pub(super) fn new(reader: R) -> Self {
        Self::within(MESSAGE_MAX, reader)
    }

    fn within(line_max: usize, reader: R) -> Self {
        Self { reader, line_max, is_inside_long_line: false }
    }

    /// The next piece; `None` at the end of the stream.
    pub(super) async fn next(&mut self) -> std::io::Result<Option<Piece>> {
        let mut line = Vec::new();
        loop {
            let part = self.reader.fill_buf().await?;
            if part.is_empty() {
                let is_long = std::mem::take(&mut self.is_inside_long_line);
                let piece = if is_long { Piece::Part(line) } else { Piece::Line(line) };
                return Ok(Some(piece).filter(|piece| !piece.bytes().is_empty()));
            }
            let end = part.iter().position(|byte| *byte == b'\n').map(|at| at + 1);
            let taken = end.unwrap_or(part.len());
            line.extend_from_slice(&part[..taken]);
            self.reader.consume(taken);
            let was_long = self.is_inside_long_line;
            self.is_inside_long_line = end.is_none() && (was_long || line.len() > self.line_max);
            match (was_long || self.is_inside_long_line, end) {
                (true, _) => return Ok(Some(Piece::Part(line))),
                (false, Some(_)) => return Ok(Some(Piece::Line(line))),
                (false, None) => {}
            }
        }
    }
}

impl Piece {
    pub(super) fn bytes(&self) -> &[u8] {
        match self {
            Self::Line(bytes) | Self::Part(bytes) => bytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::BufReader;

    #[tokio::test]
    async fn lines_are_whole_and_long_ones_come_in_parts() {
        let input: &[u8] = b"one\n\ntwo is long and longer\nsix\nend";
        let mut lines = Lines::within(6, BufReader::with_capacity(4, input));
        let (mut whole, mut shown) = (Vec::new(), Vec::new());
        while let Some(piece) = lines.next().await.expect("it can be read") {
            whole.extend_from_slice(piece.bytes());
            shown.push(match piece {
                Piece::Line(line) => format!("line {:?}", String::from_utf8_lossy(&line)),
                Piece::Part(_) => "part".to_owned(),
            });
        }
        assert_eq!(whole, input, "nothing is lost");
        shown.dedup();
        assert_eq!(shown, ["line \"one\\n\"", "line \"\\n\"", "part", "line \"six\\n\"", "line \"end\""]);
    }
}

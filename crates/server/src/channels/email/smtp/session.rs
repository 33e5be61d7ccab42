use std::future::Future;
use std::io::{self, ErrorKind};
use std::time::Duration;

use futures_util::FutureExt;
use tokio::io::{AsyncBufReadExt, AsyncRead, AsyncWrite, AsyncWriteExt, BufReader};

use super::super::SmtpStep;
use super::reply::{ReplyLine, SmtpReply};

/// How many bytes of a line are kept, and how many a whole reply may have. Real servers stay far below.
const LINE_KEPT: usize = 1024;
const REPLY_MAX: usize = 64 * 1024;

/// A connection, encrypted or not.
pub(super) trait SmtpStream: AsyncRead + AsyncWrite + Unpin + Send {}
impl<S: AsyncRead + AsyncWrite + Unpin + Send> SmtpStream for S {}

/// An SMTP session: one command and one reply at a time.
pub(super) struct SmtpSession {
    stream: BufReader<Box<dyn SmtpStream>>,
    step_max: Duration,
}

/// Why a session ended early, and in which step.
#[derive(Debug)]
pub(in super::super) struct SmtpError {
    pub(in super::super) step: SmtpStep,
    pub(in super::super) cause: SmtpErrorCause,
}

/// Why a session ended early.
#[derive(Debug)]
pub(in super::super) enum SmtpErrorCause {
    /// The server sent another reply than the expected one.
    Answered(SmtpReply),
    /// No reply within this time.
    TimedOut(Duration),
    /// The connection broke, or the server does not speak SMTP.
    Lost(io::Error),
    /// The settings do not match the server.
    Setup(String),
}

impl SmtpError {
    pub(in super::super) fn at(step: SmtpStep, cause: SmtpErrorCause) -> Self {
        Self { step, cause }
    }
}

/// Runs one step with a timeout.
pub(super) async fn within<T>(
    limit: Duration,
    step: SmtpStep,
    doing: impl Future<Output = io::Result<T>>,
) -> Result<T, SmtpError> {
    match tokio::time::timeout(limit, doing).await {
        Ok(Ok(done)) => Ok(done),
        Ok(Err(error)) => Err(SmtpError::at(step, SmtpErrorCause::Lost(error))),
        Err(_) => Err(SmtpError::at(step, SmtpErrorCause::TimedOut(limit))),
    }
}

impl SmtpSession {
    pub(super) fn new(stream: impl SmtpStream + 'static, step_max: Duration) -> Self {
        Self { stream: BufReader::new(Box::new(stream)), step_max }
    }

    pub(super) fn step_max(&self) -> Duration {
        self.step_max
    }

    pub(super) fn stream(&mut self) -> &mut BufReader<Box<dyn SmtpStream>> {
        &mut self.stream
    }

    /// The connection and the bytes read ahead, which must be checked before TLS starts.
    pub(super) fn into_parts(self) -> (Box<dyn SmtpStream>, Vec<u8>) {
        let ahead = self.stream.buffer().to_vec();
        (self.stream.into_inner(), ahead)
    }

    /// Sends a command and reads the reply.
    pub(super) async fn command(&mut self, step: SmtpStep, line: &str) -> Result<SmtpReply, SmtpError> {
        let (limit, text) = (self.step_max, format!("{line}\r\n"));
        within(limit, step, async {
            self.stream.write_all(text.as_bytes()).await?;
            self.stream.flush().await?;
            self.reply().await
        })
        .await
    }

    /// Reads a reply without sending a command.
    pub(super) async fn answer(&mut self, step: SmtpStep) -> Result<SmtpReply, SmtpError> {
        within(self.step_max, step, self.reply()).await
    }

    /// Sends EHLO and returns the server's extensions, one per line, in upper case.
    pub(super) async fn hello(&mut self, name: &str) -> Result<Vec<String>, SmtpError> {
        let text = format!("EHLO {name}\r\n");
        let lines = within(self.step_max, SmtpStep::Hello, async {
            self.stream.write_all(text.as_bytes()).await?;
            self.stream.flush().await?;
            self.reply_lines().await
        });
        let (code, lines) = lines.await?;
        SmtpReply::new(code, &lines).expect(SmtpStep::Hello, 250)?;
        Ok(lines.iter().skip(1).map(|line| line.trim().to_ascii_uppercase()).collect())
    }

    /// Writes the message without the final dot.
    pub(super) async fn body(&mut self, message: &[u8]) -> Result<(), SmtpError> {
        let dot_stuffed = dot_stuffed(message);
        within(self.step_max, SmtpStep::Body, async {
            self.stream.write_all(&dot_stuffed).await?;
            self.stream.flush().await
        })
        .await?;
        self.check_still_open().await
    }

    /// Writes the final dot and reads the reply. If this fails, the outcome is unknown.
    pub(super) async fn end_of_body(&mut self, answer_max: Duration) -> Result<SmtpReply, SmtpError> {
        within(answer_max, SmtpStep::Answer, async {
            self.stream.write_all(b".\r\n").await?;
            self.stream.flush().await?;
            self.reply().await
        })
        .await
    }

    /// Reads one reply and ignores it, after QUIT.
    pub(super) async fn skip_reply(&mut self) {
        drop(self.reply_lines().await);
    }

    /// Fails if the server has closed the connection or has replied before the final dot. As long as the dot is not written,
    /// nothing was sent.
    async fn check_still_open(&mut self) -> Result<(), SmtpError> {
        match self.stream.fill_buf().now_or_never().map(|read| read.map(<[u8]>::is_empty)) {
            None => Ok(()),
            Some(Ok(true)) => Err(SmtpError::at(SmtpStep::Body, SmtpErrorCause::Lost(ErrorKind::UnexpectedEof.into()))),
            Some(Err(error)) => Err(SmtpError::at(SmtpStep::Body, SmtpErrorCause::Lost(error))),
            Some(Ok(false)) => {
                let reply = self.answer(SmtpStep::Body).await?;
                Err(SmtpError::at(SmtpStep::Body, SmtpErrorCause::Answered(reply)))
            }
        }
    }

    async fn reply(&mut self) -> io::Result<SmtpReply> {
        let (code, lines) = self.reply_lines().await?;
        Ok(SmtpReply::new(code, &lines))
    }

    async fn reply_lines(&mut self) -> io::Result<(u16, Vec<String>)> {
        let mut left = REPLY_MAX;
        let mut lines: Vec<String> = Vec::new();
        let mut first = None;
        loop {
            let bytes = self.line(&mut left).await?;
            let line = ReplyLine::parse(&bytes).ok_or_else(|| not_smtp(&bytes))?;
            if *first.get_or_insert(line.code) != line.code {
                return Err(not_smtp(&bytes));
            }
            lines.push(line.text);
            if line.last {
                return Ok((line.code, lines));
            }
        }
    }

    /// Reads a line without its line end. A long line is truncated; a reply beyond `left` bytes is an error.
    async fn line(&mut self, left: &mut usize) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        loop {
            let read = self.stream.fill_buf().await?;
            if read.is_empty() {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            let end = read.iter().position(|byte| *byte == b'\n');
            let taken = end.map_or(read.len(), |end| end + 1);
            let kept = (LINE_KEPT - line.len()).min(taken);
            line.extend_from_slice(&read[..kept]);
            self.stream.consume(taken);
            *left =
                left.checked_sub(taken).ok_or_else(|| io::Error::new(ErrorKind::InvalidData, "a reply without end"))?;
            if end.is_some() {
                let text = line.trim_ascii_end().len();
                line.truncate(text);
                return Ok(line);
            }
        }
    }
}

fn not_smtp(line: &[u8]) -> io::Error {
    let said = bellwire_core::person::one_line(&String::from_utf8_lossy(line));
    io::Error::new(ErrorKind::InvalidData, format!("'{}' is no SMTP", said.chars().take(60).collect::<String>()))
}

/// The message with every line ended by CRLF and a second dot where a line begins with one (RFC 5321, 4.5.2).
fn dot_stuffed(message: &[u8]) -> Vec<u8> {
    let mut dot_stuffed = Vec::with_capacity(message.len() + 64);
    let text = message.strip_suffix(b"\n").unwrap_or(message);
    for line in text.split(|byte| *byte == b'\n') {
        if line.first() == Some(&b'.') {
            dot_stuffed.push(b'.');
        }
        dot_stuffed.extend_from_slice(line.strip_suffix(b"\r").unwrap_or(line));
        dot_stuffed.extend_from_slice(b"\r\n");
    }
    dot_stuffed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_dot_at_the_start_of_a_line_cannot_end_the_message() {
        assert_eq!(dot_stuffed(b"a\r\n.\r\n..b\nc"), b"a\r\n..\r\n...b\r\nc\r\n");
        assert_eq!(dot_stuffed(b"a\r\n"), b"a\r\n");
    }
}

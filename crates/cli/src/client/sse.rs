use anyhow::Result;
use serde_json::Value;

/// Reads server-sent events from a response.
pub(crate) struct SseReader {
    response: reqwest::Response,
    buffer: Vec<u8>,
}

/// The largest event accepted, in bytes; it bounds the buffer.
const EVENT_MAX: usize = 1024 * 1024;

impl SseReader {
    pub(super) fn new(response: reqwest::Response) -> Self {
        Self { response, buffer: Vec::new() }
    }

    /// The next event's name and data; `None` when the hub closes the stream.
    pub(crate) async fn next(&mut self) -> Result<Option<(String, Value)>> {
        loop {
            while let Some(event) = self.take_event() {
                if let Some(parsed) = parse(&event) {
                    return Ok(Some(parsed));
                }
            }
            match self.response.chunk().await? {
                Some(bytes) if self.buffer.len() + bytes.len() <= EVENT_MAX => self.buffer.extend_from_slice(&bytes),
                Some(_) => anyhow::bail!("the stream sent an event of more than {EVENT_MAX} bytes"),
                None => return Ok(None),
            }
        }
    }

    /// Removes the bytes up to the next blank line from the buffer.
    fn take_event(&mut self) -> Option<String> {
        let end = self.buffer.windows(2).position(|pair| pair == b"\n\n")?;
        let event: Vec<u8> = self.buffer.drain(..end + 2).collect();
        Some(String::from_utf8_lossy(&event).into_owned())
    }
}

/// The name and data of an event; `None` for a comment, which the hub sends as keep-alive.
fn parse(event: &str) -> Option<(String, Value)> {
    let field = |name: &str| event.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    let data = serde_json::from_str(field("data:")?).ok()?;
    Some((field("event:").unwrap_or("message").to_owned(), data))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn comments_are_skipped() {
        assert_eq!(
            parse("event: wake\ndata: {\"count\":1}\n\n"),
            Some(("wake".into(), serde_json::json!({"count": 1})))
        );
        assert_eq!(parse(": keep-alive\n\n"), None);
        assert_eq!(parse(":\n\n"), None);
    }
}

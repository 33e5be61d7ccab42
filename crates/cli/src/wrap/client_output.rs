//! What is written to a client on standard output, in the order in which the server said it.
//!
//! A result that waits for the hub holds up what follows it, for at most the time that a result may wait. Meanwhile the
//! server is still read, up to a bound.

use std::io;
use std::sync::Arc;
use std::time::Instant;

use tokio::io::{AsyncWrite, AsyncWriteExt as _};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio::task::JoinHandle;

use super::calls::Calls;
use super::lines::MESSAGE_MAX;
use super::proxy::{Insertions, Proxy};
use super::splice::insert;

/// At most so many bytes wait to be written; then the server is not read any further.
const WAITING_MAX: usize = 2 * MESSAGE_MAX;

#[derive(Clone)]
pub(super) struct ClientOutput {
    queue: mpsc::UnboundedSender<Entry>,
    room: Arc<Semaphore>,
}

/// The end of the queue that writes.
pub(super) struct ClientWriter {
    queue: mpsc::UnboundedReceiver<Entry>,
}

struct Entry {
    content: Content,
    /// Gives the room back.
    _room: OwnedSemaphorePermit,
}

enum Content {
    Bytes(Vec<u8>),
    /// Begins on a new line, whatever the server has left.
    OwnLine(Vec<u8>),
    Waiting(JoinHandle<(Vec<u8>, Insertions)>),
}

impl ClientOutput {
    pub(super) fn new() -> (Self, ClientWriter) {
        let (queue, entries) = mpsc::unbounded_channel();
        (Self { queue, room: Arc::new(Semaphore::new(WAITING_MAX)) }, ClientWriter { queue: entries })
    }

    /// A message of the server, with its newline.
    pub(super) async fn message(&self, bytes: Vec<u8>, proxy: &Arc<Proxy>, calls: &Calls) {
        let (received, length) = (Instant::now(), bytes.len());
        let ended = proxy.server_said(calls, &bytes);
        if ended.is_empty() {
            return self.push(Content::Bytes(bytes), length).await;
        }
        let (proxy, mut bytes) = (proxy.clone(), bytes);
        let waiting = tokio::spawn(async move {
            let insertions = proxy.insertions(ended, received).await;
            insert(&mut bytes, &insertions.texts);
            (bytes, insertions)
        });
        self.push(Content::Waiting(waiting), length).await;
    }

    /// Bytes of the server that are no whole message.
    pub(super) async fn part(&self, bytes: Vec<u8>) {
        let length = bytes.len();
        self.push(Content::Bytes(bytes), length).await;
    }

    /// A line of our own.
    pub(super) async fn own_line(&self, line: Vec<u8>) {
        let length = line.len();
        self.push(Content::OwnLine(line), length).await;
    }

    /// Completes when everything was written that was sent before.
    pub(super) async fn drained(&self) {
        // Fails only if the semaphore is closed, which it never is.
        let _ = self.room.acquire_many(u32::try_from(WAITING_MAX).unwrap_or(u32::MAX)).await;
    }

    async fn push(&self, content: Content, length: usize) {
        let length = u32::try_from(length.min(WAITING_MAX)).unwrap_or(u32::MAX);
        let room = self.room.clone().acquire_many_owned(length).await;
        let Ok(room) = room else { return };
        // The writer ends only with the client.
        let _ = self.queue.send(Entry { content, _room: room });
    }
}

impl ClientWriter {
    /// Writes until all senders are gone; fails if the client is gone.
    pub(super) async fn run(mut self, mut out: impl AsyncWrite + Unpin) -> io::Result<()> {
        let mut is_line_open = false;
        while let Some(entry) = self.queue.recv().await {
            let (bytes, insertions) = match entry.content {
                Content::Bytes(bytes) => (bytes, None),
                Content::OwnLine(line) if is_line_open => ([b"\n".as_slice(), &line].concat(), None),
                Content::OwnLine(line) => (line, None),
                Content::Waiting(waiting) => {
                    let (bytes, insertions) = waiting.await.map_err(io::Error::other)?;
                    (bytes, Some(insertions))
                }
            };
            out.write_all(&bytes).await?;
            out.flush().await?;
            is_line_open = bytes.last().is_some_and(|byte| *byte != b'\n');
            insertions.into_iter().for_each(Insertions::written);
        }
        Ok(())
    }
}

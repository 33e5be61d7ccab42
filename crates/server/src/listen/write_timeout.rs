//! Ends a connection whose client does not read what it asked for.

use std::future::Future as _;
use std::io::{Error, ErrorKind, IoSlice, Result};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};

/// How long a write may wait for the client to read something. Beyond it the connection fails.
pub(super) const WRITE_WITHIN: Duration = Duration::from_secs(30);

/// Since when the writes of a connection wait for its client.
#[derive(Clone, Default)]
pub(super) struct Stall(Arc<Mutex<Option<Instant>>>);

impl Stall {
    /// How long the client has read nothing while there is something to write.
    pub(super) fn lasts(&self) -> Duration {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).map_or(Duration::ZERO, |since| since.elapsed())
    }

    fn set(&self, since: Option<Instant>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = since;
    }
}

/// A stream whose writes fail when they make no progress for [`WRITE_WITHIN`].
pub(super) struct WriteTimeout<S> {
    stream: S,
    stall: Stall,
    is_waiting: bool,
    due: Pin<Box<Sleep>>,
}

impl<S> WriteTimeout<S> {
    pub(super) fn new(stream: S, stall: Stall) -> Self {
        Self { stream, stall, is_waiting: false, due: Box::pin(sleep(WRITE_WITHIN)) }
    }

    /// Starts the time when a write begins to wait, and fails it when the time is over.
    fn check<T>(&mut self, context: &mut Context<'_>, written: Poll<Result<T>>) -> Poll<Result<T>> {
        if written.is_ready() {
            if self.is_waiting {
                self.is_waiting = false;
                self.stall.set(None);
            }
            return written;
        }
        if !self.is_waiting {
            self.is_waiting = true;
            let now = Instant::now();
            self.stall.set(Some(now));
            self.due.as_mut().reset(now + WRITE_WITHIN);
        }
        ready!(self.due.as_mut().poll(context));
        Poll::Ready(Err(Error::new(ErrorKind::TimedOut, "the client does not read")))
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for WriteTimeout<S> {
    fn poll_read(mut self: Pin<&mut Self>, context: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for WriteTimeout<S> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.check(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, parts);
        self.check(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    #[tokio::test(start_paused = true)]
    async fn a_write_fails_only_when_the_client_reads_nothing_for_long() {
        let (ours, mut client) = tokio::io::duplex(10);
        let stall = Stall::default();
        let mut ours = WriteTimeout::new(ours, stall.clone());
        let writing = tokio::spawn(async move { ours.write_all(&[0; 100]).await.map_err(|error| error.kind()) });
        let mut read = [0; 10];
        for _ in 0..8 {
            sleep(WRITE_WITHIN - Duration::from_secs(1)).await;
            assert!(stall.lasts() > Duration::ZERO);
            client.read_exact(&mut read).await.expect("a slow reader is served");
        }
        sleep(WRITE_WITHIN - Duration::from_secs(1)).await;
        assert!(!writing.is_finished());
        sleep(Duration::from_secs(2)).await;
        assert_eq!(writing.await.expect("it does not panic"), Err(ErrorKind::TimedOut));
    }
}

//! A bounded queue in front of standard error, and the thread that writes it.
//!
//! The hub must not depend on the program that reads its log: that program may close the pipe, or stop reading. So the
//! hub queues a line and never waits for it. If the queue is full or a write fails, the line is dropped and counted; the
//! next line that can be written is followed by a line with the count.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// How many bytes the queue holds. The thread may hold as many again while it writes them.
const QUEUE_BYTES_MAX: usize = 1024 * 1024;

/// The sending end. Copies share one queue and one thread.
#[derive(Clone)]
pub(super) struct LogQueue(Arc<Shared>);

struct Shared {
    state: Mutex<QueueState>,
    /// Signalled when a line is queued.
    queued: Condvar,
    /// Signalled when everything queued has been written or dropped.
    idle: Condvar,
}

#[derive(Default)]
struct QueueState {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Lines dropped since the last line that gave a count.
    dropped: u64,
    writing: bool,
}

impl LogQueue {
    /// Starts the thread that writes to `out`. It ends with the process. `dropped_line` formats the number of dropped lines.
    pub(super) fn start(
        out: impl Write + Send + 'static,
        dropped_line: impl Fn(u64) -> String + Send + 'static,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared { state: Mutex::default(), queued: Condvar::new(), idle: Condvar::new() });
        let writer = shared.clone();
        std::thread::Builder::new().name("log".to_owned()).spawn(move || writer.write(out, dropped_line))?;
        Ok(Self(shared))
    }

    /// Queues one line, or drops it if the queue is full.
    pub(super) fn push(&self, line: &[u8]) {
        let mut state = self.0.lock();
        if state.bytes.saturating_add(line.len()) > QUEUE_BYTES_MAX {
            state.dropped += 1;
            return;
        }
        state.bytes += line.len();
        state.lines.push_back(line.to_vec());
        self.0.queued.notify_one();
    }

    /// Waits until all queued lines are written or dropped, at most this long.
    pub(super) fn flush(&self, at_most: Duration) {
        let unwritten = |state: &mut QueueState| state.writing || !state.lines.is_empty();
        drop(self.0.idle.wait_timeout_while(self.0.lock(), at_most, unwritten));
    }
}

impl Shared {
    fn write(&self, mut out: impl Write, dropped_line: impl Fn(u64) -> String) {
        loop {
            let (lines, dropped) = self.next();
            let lost = lines.iter().filter(|line| out.write_all(line).is_err()).count() as u64;
            let dropped = dropped + lost;
            let reported = dropped == 0 || out.write_all(dropped_line(dropped).as_bytes()).is_ok();
            let mut state = self.lock();
            state.dropped += if reported { 0 } else { dropped };
            state.writing = false;
            self.idle.notify_all();
        }
    }

    /// Waits for lines and takes all of them, with the count of lines dropped since the last call.
    fn next(&self) -> (VecDeque<Vec<u8>>, u64) {
        let nothing = |state: &mut QueueState| state.lines.is_empty();
        let mut state = self.queued.wait_while(self.lock(), nothing).unwrap_or_else(PoisonError::into_inner);
        state.writing = true;
        state.bytes = 0;
        (std::mem::take(&mut state.lines), std::mem::take(&mut state.dropped))
    }

    /// No code panics while it holds the lock, so the state is consistent even if the lock is poisoned.
    fn lock(&self) -> MutexGuard<'_, QueueState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Write for LogQueue {
    /// `tracing_subscriber` writes a whole line at once.
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        self.push(line);
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

    use super::*;

    const LONG: Duration = Duration::from_secs(30);

    /// Writes each line into a channel with a capacity of one: it blocks until the line before was received, and fails once the
    /// receiver is gone.
    struct Pipe(SyncSender<String>);

    impl Write for Pipe {
        fn write(&mut self, line: &[u8]) -> io::Result<usize> {
            let text = String::from_utf8_lossy(line).into_owned();
            self.0.send(text).map_err(|_| io::ErrorKind::BrokenPipe)?;
            Ok(line.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn start() -> (LogQueue, Receiver<String>) {
        let (sender, receiver) = sync_channel(1);
        (LogQueue::start(Pipe(sender), |lines| format!("dropped {lines}")).expect("a thread"), receiver)
    }

    #[test]
    fn lines_arrive_in_order() {
        let (queue, read) = start();
        (0..5).for_each(|number| queue.push(format!("line {number}").as_bytes()));
        (0..5).for_each(|number| assert_eq!(read.recv_timeout(LONG).expect("a line"), format!("line {number}")));
    }

    #[test]
    fn a_stalled_reader_loses_lines_and_gets_their_count() {
        let (queue, read) = start();
        let line = vec![b'x'; 1024];
        // The thread holds at most as many lines as the queue, so at least two thirds of these are dropped.
        let pushed = 6 * QUEUE_BYTES_MAX / line.len();
        (0..pushed).for_each(|_| queue.push(&line));
        let (mut written, mut dropped) = (0, 0);
        while written + dropped < pushed {
            let line = read.recv_timeout(LONG).expect("a line");
            match line.strip_prefix("dropped ") {
                Some(count) => dropped += count.parse::<usize>().expect("a count"),
                None => written += 1,
            }
        }
        assert_eq!(written + dropped, pushed);
        assert!(dropped > 0 && written > 0, "{written} written, {dropped} dropped");
    }

    #[test]
    fn a_reader_that_went_away_does_not_end_the_thread() {
        let (queue, read) = start();
        drop(read);
        queue.push(b"lost");
        queue.flush(LONG);
        queue.push(b"lost too");
        queue.flush(LONG);
        assert_eq!(queue.0.lock().dropped, 2);
    }
}

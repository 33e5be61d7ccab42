//! Passes a command's output on, byte for byte, and keeps the end of it.

use std::collections::VecDeque;
use std::io::{IsTerminal, PipeReader, Read as _, Write};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// How much of the output is kept, in bytes.
const KEPT_MAX: usize = 2_000;
/// Of these lines at most so many are told.
const LINES_MAX: usize = 5;
/// How long an open output may stay silent after the command has ended: a program that it left behind may keep the pipe open.
const SILENCE_MAX: Duration = Duration::from_secs(1);

/// The end of a command's output.
#[derive(Default)]
pub(super) struct LastLines {
    kept: Arc<Mutex<VecDeque<u8>>>,
}

/// An output of the command that passes through here.
pub(super) struct Output {
    end: Receiver<()>,
    progress: Arc<Progress>,
}

/// How far an output is copied.
#[derive(Default)]
struct Progress {
    bytes: AtomicU64,
    /// Whether bytes wait for the reader of our own output.
    is_writing: AtomicBool,
}

impl LastLines {
    /// Connects a command's output. A terminal stays the command's own; what goes elsewhere passes through here.
    pub(super) fn connect(&mut self, command: &mut Command) -> std::io::Result<Vec<Output>> {
        let mut outputs = Vec::new();
        let is_terminal = (std::io::stdout().is_terminal(), std::io::stderr().is_terminal());
        command.stdout(if is_terminal.0 { Stdio::inherit() } else { self.pass(std::io::stdout(), &mut outputs)? });
        command.stderr(if is_terminal.1 { Stdio::inherit() } else { self.pass(std::io::stderr(), &mut outputs)? });
        Ok(outputs)
    }

    fn pass(&self, to: impl Write + Send + 'static, outputs: &mut Vec<Output>) -> std::io::Result<Stdio> {
        let (reader, writer) = std::io::pipe()?;
        let (ended, end) = channel();
        let progress = Arc::new(Progress::default());
        outputs.push(Output { end, progress: progress.clone() });
        let kept = self.kept.clone();
        std::thread::spawn(move || {
            copy(reader, to, &kept, &progress);
            // The receiver may have stopped waiting.
            let _ = ended.send(());
        });
        Ok(writer.into())
    }

    /// The last lines, after the command has ended.
    pub(super) fn finish(self, outputs: &[Output]) -> String {
        outputs.iter().for_each(Output::wait);
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let bytes: Vec<u8> = kept.iter().copied().collect();
        last_lines(&bytes)
    }
}

impl Output {
    /// Waits until everything is copied, however slow the reader of our output is, or until the output stays open and silent.
    fn wait(&self) {
        let copied = || self.progress.bytes.load(Ordering::Relaxed);
        let mut before = copied();
        while let Err(RecvTimeoutError::Timeout) = self.end.recv_timeout(SILENCE_MAX) {
            let bytes = copied();
            if bytes == before && !self.progress.is_writing.load(Ordering::Relaxed) {
                return;
            }
            before = bytes;
        }
    }
}

fn copy(mut from: PipeReader, mut to: impl Write, kept: &Mutex<VecDeque<u8>>, progress: &Progress) {
    let mut buffer = [0; 8192];
    // If the reader of our output has gone, close the pipe: the command's next write then fails as it would without us.
    while let Ok(length @ 1..) = from.read(&mut buffer) {
        progress.is_writing.store(true, Ordering::Relaxed);
        if to.write_all(&buffer[..length]).and_then(|()| to.flush()).is_err() {
            return;
        }
        progress.bytes.fetch_add(length as u64, Ordering::Relaxed);
        progress.is_writing.store(false, Ordering::Relaxed);
        let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
        kept.extend(&buffer[..length]);
        let excess = kept.len().saturating_sub(KEPT_MAX);
        kept.drain(..excess);
    }
}

fn last_lines(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(bytes);
    // The first line may have lost its beginning.
    let whole = if bytes.len() == KEPT_MAX { text.split_once('\n').map_or(&*text, |(_, rest)| rest) } else { &*text };
    let lines: Vec<&str> = whole.lines().map(str::trim_end).filter(|line| !line.is_empty()).collect();
    lines[lines.len().saturating_sub(LINES_MAX)..].join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_are_whole_and_few() {
        assert_eq!(last_lines(b"1\n2\n3\n4\n5\n6\n\n7"), "3\n4\n5\n6\n7");
        let mut long = vec![b'x'; KEPT_MAX - 4];
        long.extend(b"\nend");
        assert_eq!(last_lines(&long), "end");
        assert_eq!(last_lines(b"\xff\n"), "\u{fffd}");
        assert_eq!(last_lines(b""), "");
    }
}

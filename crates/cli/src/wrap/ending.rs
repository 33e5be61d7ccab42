//! Signals, and how a server is ended: first by closing its input, as MCP says, then by signals.

use std::io;
use std::time::Duration;

use tokio::process::Child;
use tokio::time::{Instant, sleep_until};

/// How long the server may take to end after its input was closed.
const CLOSE_GRACE: Duration = Duration::from_secs(5);
/// How long it may take after SIGTERM.
const TERMINATE_GRACE: Duration = Duration::from_secs(2);

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Signal {
    Interrupt,
    Hangup,
    Terminate,
    Kill,
}

impl Signal {
    /// The code with which a shell would report a process that it has ended.
    pub(super) fn exit_code(self) -> i32 {
        match self {
            Self::Hangup => 128 + 1,
            Self::Interrupt => 128 + 2,
            Self::Kill => 128 + 9,
            Self::Terminate => 128 + 15,
        }
    }
}

/// What is sent next, and when.
#[derive(Default)]
pub(super) struct Ending {
    next: Option<(Instant, Signal)>,
}

impl Ending {
    /// The server's input was closed.
    pub(super) fn closed(&mut self) {
        self.next.get_or_insert((Instant::now() + CLOSE_GRACE, Signal::Terminate));
    }

    /// A signal was passed on. After one that asks to end, the server has little time.
    pub(super) fn signalled(&mut self, signal: Signal) {
        if matches!(signal, Signal::Terminate | Signal::Hangup) {
            self.next = Some((Instant::now() + TERMINATE_GRACE, Signal::Kill));
        }
    }

    /// Waits until it is time for the next signal.
    pub(super) async fn due(&mut self) -> Signal {
        let Some((at, signal)) = self.next else { return std::future::pending().await };
        sleep_until(at).await;
        self.next = Some((Instant::now() + TERMINATE_GRACE, Signal::Kill));
        signal
    }
}

/// The server and what it has started.
pub(super) struct ServerGroup {
    #[cfg(unix)]
    id: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl ServerGroup {
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self { id: id.and_then(rustix::process::Pid::from_raw) }
    }

    /// Fails if all of them have ended.
    pub(super) fn send(&self, _: &mut Child, signal: Signal) {
        use rustix::process::{Signal as Unix, kill_process_group};
        let signal = match signal {
            Signal::Interrupt => Unix::INT,
            Signal::Hangup => Unix::HUP,
            Signal::Terminate => Unix::TERM,
            Signal::Kill => Unix::KILL,
        };
        let _ = self.id.map(|id| kill_process_group(id, signal));
    }
}

#[cfg(not(unix))]
impl ServerGroup {
    pub(super) fn of(_: &Child) -> Self {
        Self {}
    }

    pub(super) fn send(&self, child: &mut Child, _: Signal) {
        let _ = child.start_kill();
    }
}

/// The signals that would end this process.
#[cfg(unix)]
pub(super) struct Signals {
    interrupt: tokio::signal::unix::Signal,
    hangup: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            hangup: signal(SignalKind::hangup())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::Interrupt,
            _ = self.hangup.recv() => Signal::Hangup,
            _ = self.terminate.recv() => Signal::Terminate,
        }
    }
}

#[cfg(not(unix))]
pub(super) struct Signals;

#[cfg(not(unix))]
impl Signals {
    pub(super) fn new() -> io::Result<Self> {
        Ok(Self)
    }

    pub(super) async fn next(&mut self) -> Signal {
        let _ = tokio::signal::ctrl_c().await;
        Signal::Terminate
    }
}

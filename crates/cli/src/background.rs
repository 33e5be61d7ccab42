//! The hub in the background of this user: which process it is, how it is started and ended, by whom.

pub(crate) mod detached;
pub(crate) mod hub_process;
pub(crate) mod service;

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};

use crate::hook::processes::Process;

/// How long a process may take to become ready, or to end.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
pub(crate) const PAUSE: Duration = Duration::from_millis(20);

/// Excludes other `start`s and `stop`s on this data folder until it is dropped. The system releases it with the process, so it
/// is never stale.
pub(crate) struct FolderLock {
    _file: std::fs::File,
}

impl FolderLock {
    pub(crate) fn take(dir: &Path) -> Result<Self> {
        let path = dir.join("start.lock");
        let mut options = std::fs::OpenOptions::new();
        options.append(true).create(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let file = options.open(&path).with_context(|| format!("cannot write {}", path.display()))?;
        let begun = Instant::now();
        while let Err(error) = file.try_lock() {
            match error {
                std::fs::TryLockError::Error(error) => {
                    return Err(error).with_context(|| format!("cannot lock {}", path.display()));
                }
                std::fs::TryLockError::WouldBlock if begun.elapsed() > 2 * PATIENCE => {
                    bail!("another bellwire start or stop works on this data folder since {} s", 2 * PATIENCE.as_secs())
                }
                std::fs::TryLockError::WouldBlock => std::thread::sleep(PAUSE),
            }
        }
        Ok(Self { _file: file })
    }
}

/// Asks a process to end, and waits for it.
pub(crate) fn end(process: &Process) -> Result<()> {
    // Between the check and the signal the id could become another process's, but ids are used again only after a whole round.
    if process.is_running() {
        terminate(process.id)?;
    }
    let begun = Instant::now();
    while process.is_running() {
        if begun.elapsed() > PATIENCE {
            bail!(
                "process {id} was asked to end and still runs after {} s; kill -KILL {id} ends it at once, and everything \
                 that the hub accepted is kept",
                PATIENCE.as_secs(),
                id = process.id
            );
        }
        std::thread::sleep(PAUSE);
    }
    Ok(())
}

/// Asks a process to end.
#[cfg(unix)]
pub(crate) fn terminate(pid: u32) -> Result<()> {
    let process = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).context("not a process")?;
    rustix::process::kill_process(process, rustix::process::Signal::TERM)
        .with_context(|| format!("process {pid} cannot be ended"))
}

#[cfg(not(unix))]
pub(crate) fn terminate(_pid: u32) -> Result<()> {
    bail!("a process cannot be asked to end on this system")
}

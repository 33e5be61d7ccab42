//! Processes that `bellwire start` detaches from its terminal where no service manager runs them.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use anyhow::{Context as _, Result};
use serde_json::{Value, json};

use crate::data_dir;
use crate::hook::processes::Process;
use crate::log::rotating_file;
use crate::output::printable;

/// How much of the log is shown when a process does not start, in bytes.
const SHOWN_MAX: i64 = 2_000;

/// Starts this program in the background, with these arguments.
pub(crate) fn spawn(arguments: &[String], log: &Path) -> Result<Child> {
    let program = std::env::current_exe().context("this program cannot find itself")?;
    let log = rotating_file::open(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    // A signal from the terminal goes to the group of its foreground process.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    // A folder that is removed later must not be in use.
    command.current_dir(std::env::home_dir().filter(|home| home.is_dir()).unwrap_or_else(std::env::temp_dir));
    command.spawn().context("it cannot be started")
}

/// The last lines of a log.
pub(crate) fn tail(log: &Path) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(log)?;
        let length = i64::try_from(file.metadata()?.len()).unwrap_or(i64::MAX);
        file.seek(SeekFrom::End(-length.min(SHOWN_MAX)))?;
        let mut bytes = Vec::new();
        file.take(SHOWN_MAX.unsigned_abs()).read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    read().unwrap_or_default().lines().map(|line| printable(line) + "\n").collect()
}

/// `bellwire wake`, started beside the hub. Its note is wake.json in the data folder.
pub(crate) struct Waker<'a> {
    dir: &'a Path,
}

impl<'a> Waker<'a> {
    pub(crate) const fn of(dir: &'a Path) -> Self {
        Self { dir }
    }

    fn note(&self) -> PathBuf {
        self.dir.join("wake.json")
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.dir.join("wake.log")
    }

    pub(crate) fn process(&self) -> Option<Process> {
        let note: Value = serde_json::from_str(&std::fs::read_to_string(self.note()).ok()?).ok()?;
        let id = note["pid"].as_u64().and_then(|id| u32::try_from(id).ok())?;
        Some(Process { id, started: note["started"].as_u64()? }).filter(Process::is_running)
    }

    /// Starts it if it does not run.
    pub(crate) fn start(&self) -> Result<()> {
        if self.process().is_some() {
            return Ok(());
        }
        let child = spawn(&["wake".to_owned()], &self.log())?;
        let process = Process::of(child.id()).context("this system does not say when a process started")?;
        data_dir::private(&self.note(), &json!({ "pid": process.id, "started": process.started }).to_string())
            .with_context(|| format!("cannot write {}", self.note().display()))
    }

    pub(crate) fn stop(&self) -> Result<()> {
        if let Some(process) = self.process() {
            super::end(&process)?;
        }
        let _ = std::fs::remove_file(self.note());
        Ok(())
    }
}

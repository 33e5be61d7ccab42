use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::json;

use crate::client::Client;
use crate::data_dir;
use crate::output::{MUTED, SAID, paint, print_json, printable};
use crate::settings::{Settings, absolute};

/// Run the hub in the background
///
/// Starts `bellwire serve` on the data folder, detached from this terminal, and returns when the hub is ready. Its log is
/// hub.log in the data folder. If the hub runs already, nothing changes.
#[derive(Args)]
pub(crate) struct StartArgs {
    #[command(flatten)]
    settings: Settings,
}

/// Stop the hub of the data folder, and wait until it has ended
#[derive(Args)]
pub(crate) struct StopArgs {
    #[command(flatten)]
    settings: Settings,
}

/// Say whether the hub of the data folder runs; exits with 1 if it does not
#[derive(Args)]
pub(crate) struct StatusArgs {
    /// Print JSON: {"running": BOOL, "url"?, "pid"?, "version"?, "log"}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
}

const LOG_FILE: &str = "hub.log";
/// How long a hub may take to become ready, or to end.
const PATIENCE: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(20);
/// How much of the log is shown when the hub does not start, in bytes.
const SHOWN_MAX: i64 = 2_000;

/// A hub that answers.
struct RunningHub {
    url: String,
    pid: Option<u32>,
    version: String,
}

pub(crate) fn run_start(arguments: &StartArgs) -> Result<bool> {
    let dir = folder(&arguments.settings)?;
    if let Some(hub) = running(&dir) {
        anstream::eprintln!("{}", paint(SAID, format!("the hub runs already at {}", hub.url)));
        return Ok(true);
    }
    data_dir::create(&dir)?;
    let log = dir.join(LOG_FILE);
    let mut child = spawn(&arguments.settings, &log)?;
    let hub =
        wait_until_ready(&dir, &mut child).with_context(|| format!("{}\nThe log is {}", tail(&log), log.display()))?;
    anstream::eprintln!("{}", paint(SAID, format!("the hub runs at {}", hub.url)));
    anstream::eprintln!("{}", paint(MUTED, format!("its log: {}", printable(&log.display().to_string()))));
    Ok(true)
}

pub(crate) fn run_stop(arguments: &StopArgs) -> Result<bool> {
    let Some(hub) = running(&folder(&arguments.settings)?) else {
        anstream::eprintln!("no hub runs on this data folder");
        return Ok(true);
    };
    let pid = hub.pid.context("the hub does not say which process it is; end it where you started it")?;
    terminate(pid)?;
    let begun = Instant::now();
    while is_alive(pid) {
        if begun.elapsed() > PATIENCE {
            bail!("process {pid} was asked to end and still runs after {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(PAUSE);
    }
    anstream::eprintln!("{}", paint(SAID, "the hub has stopped; everything it accepted is kept"));
    Ok(true)
}

pub(crate) fn run_status(arguments: &StatusArgs) -> Result<bool> {
    let dir = folder(&arguments.settings)?;
    let (hub, log) = (running(&dir), dir.join(LOG_FILE));
    let is_running = hub.is_some();
    if arguments.json {
        let mut status = json!({ "running": is_running, "log": log });
        if let Some(hub) = hub {
            (status["url"], status["pid"], status["version"]) = (json!(hub.url), json!(hub.pid), json!(hub.version));
        }
        print_json(&status)?;
        return Ok(is_running);
    }
    match hub {
        Some(hub) => {
            let pid = hub.pid.map(|pid| format!(" (process {pid})")).unwrap_or_default();
            anstream::println!("the hub {} runs at {}{pid}", printable(&hub.version), printable(&hub.url));
        }
        None => {
            anstream::println!("no hub runs on {}; bellwire start starts one", printable(&dir.display().to_string()))
        }
    }
    Ok(is_running)
}

fn folder(settings: &Settings) -> Result<PathBuf> {
    settings.load(Vec::new())?.config.data_dir.context("there is no data folder; say --data-dir")
}

/// The hub of this data folder, if it is ready. Its note alone proves nothing: a killed hub leaves it.
fn running(dir: &Path) -> Option<RunningHub> {
    let note = data_dir::note(dir)?;
    let url = note["url"].as_str()?.to_owned();
    Client::open(url.clone(), None).ok()?.get("/readyz").ok()?;
    let pid = note["pid"].as_u64().and_then(|pid| u32::try_from(pid).ok());
    let version = note["version"].as_str().unwrap_or_default().to_owned();
    Some(RunningHub { url, pid: pid.filter(|pid| is_alive(*pid)), version })
}

fn spawn(settings: &Settings, log: &Path) -> Result<Child> {
    let program = std::env::current_exe().context("this program cannot find itself")?;
    let mut options = std::fs::OpenOptions::new();
    options.append(true).create(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let log = options.open(log).with_context(|| format!("cannot write {}", log.display()))?;
    let mut command = Command::new(program);
    command.arg("serve");
    for (flag, value) in [("--config", &settings.file), ("--data-dir", &settings.data_dir)] {
        if let Some(value) = value {
            command.arg(flag).arg(absolute(value)?);
        }
    }
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    // A signal from the terminal goes to the group of its foreground process.
    #[cfg(unix)]
    std::os::unix::process::CommandExt::process_group(&mut command, 0);
    // A folder that is removed later must not be in use.
    command.current_dir(std::env::home_dir().filter(|home| home.is_dir()).unwrap_or_else(std::env::temp_dir));
    command.spawn().context("the hub cannot be started")
}

fn wait_until_ready(dir: &Path, child: &mut Child) -> Result<RunningHub> {
    let begun = Instant::now();
    loop {
        // Another hub's note may still be there: only that of the new process counts.
        if let Some(hub) = running(dir).filter(|hub| hub.pid == Some(child.id())) {
            return Ok(hub);
        }
        if let Some(status) = child.try_wait()? {
            bail!("the hub has ended ({status})");
        }
        if begun.elapsed() > PATIENCE {
            // Otherwise the hub could still become ready after this command has reported a failure.
            let _ = child.kill();
            bail!("the hub is not ready after {} s and was ended", PATIENCE.as_secs());
        }
        std::thread::sleep(PAUSE);
    }
}

/// The last lines of the log.
fn tail(log: &Path) -> String {
    let read = || -> std::io::Result<String> {
        let mut file = File::open(log)?;
        let length = i64::try_from(file.metadata()?.len()).unwrap_or(i64::MAX);
        file.seek(SeekFrom::End(-length.min(SHOWN_MAX)))?;
        let mut bytes = Vec::new();
        file.read_to_end(&mut bytes)?;
        Ok(String::from_utf8_lossy(&bytes).trim().to_owned())
    };
    read().unwrap_or_default().lines().map(|line| printable(line).to_string() + "\n").collect()
}

/// Asks a process to end.
#[cfg(unix)]
pub(super) fn terminate(pid: u32) -> Result<()> {
    let process = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw).context("not a process")?;
    rustix::process::kill_process(process, rustix::process::Signal::TERM)
        .with_context(|| format!("process {pid} cannot be ended"))
}

#[cfg(not(unix))]
pub(super) fn terminate(_pid: u32) -> Result<()> {
    bail!("a process cannot be asked to end on this system")
}

#[cfg(unix)]
fn is_alive(pid: u32) -> bool {
    let process = i32::try_from(pid).ok().and_then(rustix::process::Pid::from_raw);
    process.is_some_and(|process| rustix::process::test_kill_process(process).is_ok()) && !is_zombie(pid)
}

/// Whether the process is a zombie: it has ended, and its parent has not read its exit status. Containers often have no
/// init process that does.
#[cfg(unix)]
fn is_zombie(pid: u32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with(['Z', 'X']))
}

#[cfg(not(unix))]
fn is_alive(_pid: u32) -> bool {
    true
}

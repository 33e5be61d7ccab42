use std::path::{Path, PathBuf};
use std::process::Child;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use serde_json::json;

use super::wake;
use crate::background::detached::{self, Waker};
use crate::background::hub_process::{self, HubProcess};
use crate::background::service::Service;
use crate::background::{FolderLock, PATIENCE, PAUSE, end};
use crate::data_dir;
use crate::output::{MUTED, SAID, paint, print_json, printable};
use crate::settings::{Settings, absolute};

/// Run the hub in the background
///
/// Starts the hub of the data folder and returns when it is ready: by systemd or launchd if `bellwire install --service` has set
/// that up, otherwise as a process that is detached from this terminal. In that case it also starts `bellwire wake` if a
/// harness may be woken. The log is hub.log in the data folder. If the hub runs already, nothing changes.
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

/// Say whether the hub of the data folder runs; exits with 1 if it does not, or does not answer
#[derive(Args)]
pub(crate) struct StatusArgs {
    /// Print JSON: {"running": BOOL, "ready": BOOL, "url"?, "pid"?, "version"?, "log", "service"?, "wake": BOOL}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
}

pub(crate) fn run_start(arguments: &StartArgs) -> Result<bool> {
    start(&arguments.settings)?;
    Ok(true)
}

/// Starts the hub of the data folder, unless it runs.
pub(super) fn start(settings: &Settings) -> Result<()> {
    let dir = folder(settings)?;
    data_dir::create(&dir)?;
    let _lock = FolderLock::take(&dir)?;
    if let Some(hub) = running(&dir)? {
        anstream::eprintln!("{}", paint(SAID, format!("the hub runs already at {}", printable(&hub.url))));
        return start_waker(&dir);
    }
    if let Some(service) = Service::installed(&dir) {
        service.start()?;
        return wait_for_service(&service, &dir);
    }
    let log = log_path(&dir);
    let mut child = detached::spawn(&serve_arguments(settings, &dir)?, &log)?;
    let hub = wait_until_ready(&dir, |ready| match (ready, child.try_wait()?) {
        (Some(hub), _) => Ok(hub.process.as_ref().is_some_and(|process| process.id == child.id())),
        (None, Some(status)) => bail!("the hub has ended ({status})"),
        (None, None) => Ok(false),
    });
    let hub = hub.inspect_err(|_| end_child(&mut child)).with_context(|| with_log(&log))?;
    say_running(&hub, &log);
    start_waker(&dir)
}

/// Waits for the hub that a service manager has started.
pub(super) fn wait_for_service(service: &Service, dir: &Path) -> Result<()> {
    let log = log_path(dir);
    let is_ready = |ready: Option<&HubProcess>| match ready {
        None if service.has_failed() => bail!("{} could not start the hub", service.title()),
        hub => Ok(hub.is_some_and(|hub| hub.process.is_some())),
    };
    let hub = wait_until_ready(dir, is_ready).with_context(|| with_log(&log))?;
    say_running(&hub, &log);
    Ok(())
}

fn with_log(log: &Path) -> String {
    format!("{}\nThe log is {}", detached::tail(log), log.display())
}

fn say_running(hub: &HubProcess, log: &Path) {
    anstream::eprintln!("{}", paint(SAID, format!("the hub runs at {}", printable(&hub.url))));
    anstream::eprintln!("{}", paint(MUTED, format!("its log: {}", printable(&log.display().to_string()))));
}

/// Starts `bellwire wake` beside a hub that no service manager runs, if a harness may be woken.
pub(super) fn start_waker(dir: &Path) -> Result<()> {
    match wake::is_allowed() && Service::installed(dir).is_none() {
        true => Waker::of(dir).start(),
        false => Ok(()),
    }
}

pub(crate) fn run_stop(arguments: &StopArgs) -> Result<bool> {
    let dir = folder(&arguments.settings)?;
    // A folder that cannot be written to has no start in progress.
    let _lock = FolderLock::take(&dir).ok();
    let before = hub_process::find(&dir);
    Waker::of(&dir).stop()?;
    if let Some(service) = Service::installed(&dir) {
        service.stop()?;
    }
    let Some(hub) = before else {
        anstream::eprintln!("no hub runs on this data folder");
        return Ok(true);
    };
    let Some(process) = hub.process else {
        bail!(
            "a hub answers at {}, but it is not the process that this data folder knows; end it where you started it",
            printable(&hub.url)
        );
    };
    end(&process)?;
    anstream::eprintln!("{}", paint(SAID, "the hub has stopped; everything it accepted is kept"));
    Ok(true)
}

pub(crate) fn run_status(arguments: &StatusArgs) -> Result<bool> {
    let dir = folder(&arguments.settings)?;
    let (hub, service) = (hub_process::find(&dir), Service::installed(&dir));
    let is_ready = hub.as_ref().is_some_and(|hub| hub.is_ready);
    if arguments.json {
        let wakes = Waker::of(&dir).process().is_some() || service.as_ref().is_some_and(Service::wakes);
        let mut status = json!({ "running": hub.is_some(), "ready": is_ready, "log": log_path(&dir), "wake": wakes });
        if let Some(service) = service {
            status["service"] = json!(service.title());
        }
        if let Some(hub) = hub {
            let pid = hub.process.map(|process| process.id);
            (status["url"], status["pid"], status["version"]) = (json!(hub.url), json!(pid), json!(hub.version));
        }
        print_json(&status)?;
        return Ok(is_ready);
    }
    match hub {
        Some(hub) => anstream::println!("{}", status_line(&hub, service.as_ref(), &dir)),
        None => {
            anstream::println!("no hub runs on {}; bellwire start starts one", printable(&dir.display().to_string()))
        }
    }
    Ok(is_ready)
}

fn status_line(hub: &HubProcess, service: Option<&Service>, dir: &Path) -> String {
    let process = hub.process.as_ref().map(|process| format!("process {}", process.id));
    let by = service.map(|service| format!("by {}", service.title()));
    let more: Vec<String> = process.into_iter().chain(by).collect();
    let more = if more.is_empty() { String::new() } else { format!(" ({})", more.join(", ")) };
    let (version, url) = (printable(&hub.version), printable(&hub.url));
    match hub.is_ready {
        true => format!("the hub {version} runs at {url}{more}"),
        false => format!(
            "the hub {version} at {url}{more} does not answer; its log is {}, and bellwire stop ends it",
            printable(&log_path(dir).display().to_string())
        ),
    }
}

pub(super) fn folder(settings: &Settings) -> Result<PathBuf> {
    settings.load(Vec::new())?.config.data_dir.context("there is no data folder; say --data-dir")
}

pub(super) fn log_path(dir: &Path) -> PathBuf {
    dir.join("hub.log")
}

/// The arguments with which a hub in the background is started.
pub(super) fn serve_arguments(settings: &Settings, dir: &Path) -> Result<Vec<String>> {
    let text =
        |path: &Path| path.to_str().map(str::to_owned).with_context(|| format!("{} is not text", path.display()));
    let mut words = vec!["serve".to_owned(), "--data-dir".to_owned(), text(dir)?];
    words.extend(["--log-file".to_owned(), text(&log_path(dir))?]);
    if let Some(file) = &settings.file {
        words.extend(["--config".to_owned(), text(&absolute(file)?)?]);
    }
    Ok(words)
}

/// The hub that runs on this data folder. One that does not answer is an error: another cannot start beside it.
fn running(dir: &Path) -> Result<Option<HubProcess>> {
    match hub_process::find(dir) {
        Some(hub) if hub.is_ready && !hub.is_gone => Ok(Some(hub)),
        Some(HubProcess { process: Some(process), .. }) => {
            bail!("process {} is the hub of this data folder and does not answer; bellwire stop ends it", process.id)
        }
        _ => Ok(None),
    }
}

/// Waits until a hub is ready and `is_it` says that it is the new one.
fn wait_until_ready(dir: &Path, mut is_it: impl FnMut(Option<&HubProcess>) -> Result<bool>) -> Result<HubProcess> {
    let begun = Instant::now();
    loop {
        let ready = hub_process::find(dir).filter(|hub| hub.is_ready);
        let is_it = is_it(ready.as_ref())?;
        if let Some(hub) = ready.filter(|_| is_it) {
            return Ok(hub);
        }
        if begun.elapsed() > PATIENCE {
            bail!("the hub is not ready after {} s", PATIENCE.as_secs());
        }
        std::thread::sleep(PAUSE);
    }
}

/// Ends a hub that did not become ready. Otherwise it could do so after this command has reported a failure.
fn end_child(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

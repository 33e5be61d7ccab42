//! `bellwire install --service`: lets systemd or launchd run the hub, after the user has said so.

use std::io::{IsTerminal as _, Write as _};
use std::path::Path;

use anyhow::{Result, bail};

use super::InstallArgs;
use crate::background::detached::Waker;
use crate::background::hub_process;
use crate::background::service::{Service, Unit, UnitKind};
use crate::commands::{background, wake};
use crate::hosts::{Host, HostFile};
use crate::install::FileChange;
use crate::output::{printable, warn};
use crate::settings::Settings;

/// Whether the hub is to run in the background: the user said `--service`, or yes on a terminal.
pub(super) fn is_wanted(arguments: &InstallArgs) -> Result<bool> {
    let names_hub = arguments.connection.url.as_ref().is_some_and(|url| !url.is_empty());
    if arguments.service && names_hub {
        bail!("--service runs the hub of this machine, but --url or BELLWIRE_URL names another one");
    }
    let can_ask = std::io::stdin().is_terminal();
    if arguments.service || arguments.place.dry_run || names_hub || !can_ask {
        return Ok(arguments.service);
    }
    let dir = background::folder(&arguments.connection.settings)?;
    if Service::installed(&dir).is_some() || hub_process::find(&dir).is_some() {
        return Ok(false);
    }
    let when = if Service::available().is_some() { "now and whenever you log in" } else { "now" };
    ask(&format!("No hub runs. Run it in the background, {when}? [y/N] "))
}

fn ask(question: &str) -> Result<bool> {
    anstream::eprint!("{question}");
    std::io::stderr().flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim().to_lowercase().as_str(), "y" | "yes"))
}

/// What would be written.
pub(super) fn difference(arguments: &InstallArgs, binary: &str) -> Result<String> {
    let Some(service) = Service::available() else { return Ok(String::new()) };
    let changes = service.additions(&units(arguments, binary)?)?;
    Ok(changes.iter().filter(|change| change.is_change()).map(FileChange::difference).collect())
}

/// Writes the units and starts the hub. Where there is no service manager, the hub is started until the machine restarts.
pub(super) fn set_up(arguments: &InstallArgs, binary: &str) -> Result<()> {
    let settings = &arguments.connection.settings;
    let Some(service) = Service::available() else {
        anstream::eprintln!(
            "note     this user has no systemd or launchd: the hub runs until it is stopped, and you start it again"
        );
        return background::start(settings);
    };
    let dir = background::folder(settings)?;
    if Service::installed(&dir).is_none()
        && let Some(hub) = hub_process::find(&dir)
    {
        bail!(
            "a hub runs already at {}; end it first (bellwire stop), so that {} can run it",
            hub.url,
            service.title()
        );
    }
    crate::data_dir::create(&dir)?;
    let units = units(arguments, binary)?;
    let changes = service.additions(&units)?;
    let is_changed = changes.iter().any(FileChange::is_change);
    if is_changed {
        // One that runs would keep its former command.
        service.stop()?;
    }
    for change in changes.iter().filter(|change| change.is_change()) {
        change.apply()?;
        anstream::eprintln!("changed  {}", printable(&change.path.display().to_string()));
    }
    service.enable(&units)?;
    background::wait_for_service(&service, &dir)
}

fn units(arguments: &InstallArgs, binary: &str) -> Result<Vec<Unit>> {
    let settings = &arguments.connection.settings;
    let dir = background::folder(settings)?;
    let command = |words: Vec<String>| std::iter::once(binary.to_owned()).chain(words).collect();
    let hub = background::serve_arguments(settings, &dir)?;
    let mut units = vec![Unit { kind: UnitKind::Hub, command: command(hub), log: background::log_path(&dir) }];
    if arguments.wakes() {
        let log = Waker::of(&dir).log();
        units.push(Unit { kind: UnitKind::Wake, command: command(vec!["wake".to_owned()]), log });
    }
    Ok(units)
}

/// After a harness was removed: the service goes with the last one, or if the user says so.
pub(super) fn remove(settings: &Settings, is_said: bool) -> Result<()> {
    let dir = background::folder(settings)?;
    if !wake::is_allowed() {
        Waker::of(&dir).stop()?;
    }
    let is_last = Host::ALL.into_iter().all(|host| HostFile::path(host).is_ok_and(|path| !path.exists()));
    let Some(service) = Service::installed(&dir).filter(|_| is_last || is_said) else { return Ok(()) };
    for path in service.remove()? {
        anstream::eprintln!("removed  {}", printable(&path.display().to_string()));
    }
    anstream::eprintln!("the hub no longer runs in the background; its data stays in {}", printable(&shown(&dir)));
    if is_said && !is_last {
        warn("other harnesses are still connected to it; bellwire start or bellwire serve runs it again");
    }
    Ok(())
}

fn shown(dir: &Path) -> String {
    dir.display().to_string()
}

//! The service manager of this user's session: systemd or launchd. It starts the hub when the user logs in.

mod launchd;
mod systemd;

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};

use super::PAUSE;
use crate::install::FileChange;

/// The first line of every file of ours. A file without it is the user's own.
// Without two hyphens, which a comment of XML cannot have.
const MARK: &str = "Written by bellwire install, removed by bellwire uninstall.";
/// Longer than systemd gives a service to end.
const CALL_MAX: Duration = Duration::from_secs(120);

/// A program that the manager runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    pub(crate) kind: UnitKind,
    /// The program and its arguments.
    pub(crate) command: Vec<String>,
    /// Where launchd writes what the program prints. systemd has a journal.
    pub(crate) log: PathBuf,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) enum UnitKind {
    Hub,
    Wake,
}

impl UnitKind {
    pub(crate) const ALL: [Self; 2] = [Self::Hub, Self::Wake];
}

/// The manager, and the folder of its files.
#[derive(Clone, Debug)]
pub(crate) struct Service {
    manager: Manager,
    folder: PathBuf,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
enum Manager {
    Systemd,
    Launchd,
}

impl Service {
    /// The manager of this system; `None` if it has none that Bellwire knows.
    fn of_system() -> Option<Self> {
        use crate::data_dir::variable;
        let home = variable("HOME").filter(|home| home.is_absolute())?;
        if cfg!(target_os = "macos") {
            return Some(Self { manager: Manager::Launchd, folder: home.join("Library/LaunchAgents") });
        }
        let config = variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        let config = config.unwrap_or_else(|| home.join(".config"));
        cfg!(target_os = "linux").then(|| Self { manager: Manager::Systemd, folder: config.join("systemd/user") })
    }

    /// The manager, if it answers. In a container there often is none.
    pub(crate) fn available() -> Option<Self> {
        let service = Self::of_system()?;
        let asks = match service.manager {
            Manager::Systemd => run("systemctl", &["--user", "show", "--property=Version"]),
            Manager::Launchd => run("launchctl", &["print", &launchd::domain()]),
        };
        asks.is_ok().then_some(service)
    }

    /// The manager, if it runs the hub of this data folder.
    pub(crate) fn installed(dir: &Path) -> Option<Self> {
        let service = Self::of_system()?;
        let text = std::fs::read_to_string(service.path(UnitKind::Hub)).ok()?;
        (text.contains(MARK) && text.contains(&service.quoted(&dir.to_string_lossy()))).then_some(service)
    }

    /// Whether it also runs `bellwire wake`.
    pub(crate) fn wakes(&self) -> bool {
        self.is_ours(UnitKind::Wake)
    }

    pub(crate) const fn title(&self) -> &'static str {
        match self.manager {
            Manager::Systemd => "systemd",
            Manager::Launchd => "launchd",
        }
    }

    /// What `install` writes for these units.
    pub(crate) fn additions(&self, units: &[Unit]) -> Result<Vec<FileChange>> {
        let change = |unit: &Unit| {
            let has_control = unit.command.iter().any(|word| word.chars().any(char::is_control));
            ensure!(!has_control, "a path has a control character, which a unit cannot have");
            let is_refused = self.manager == Manager::Systemd && unit.command[0].contains(['"', '\'', '\\']);
            ensure!(!is_refused, "{} has a character that systemd refuses; put the program elsewhere", unit.command[0]);
            let after = match self.manager {
                Manager::Systemd => systemd::unit(unit),
                Manager::Launchd => launchd::agent(unit),
            };
            FileChange::of(self.path(unit.kind), |before| match before {
                Some(text) if !text.contains(MARK) => bail!("it is not one of Bellwire's; rename it first"),
                _ => Ok(Some(after)),
            })
        };
        units.iter().map(change).collect()
    }

    /// Starts these units now, and whenever the user logs in.
    pub(crate) fn enable(&self, units: &[Unit]) -> Result<()> {
        if self.manager == Manager::Systemd {
            run("systemctl", &["--user", "daemon-reload"])?;
        }
        for unit in units {
            match self.manager {
                Manager::Systemd => run("systemctl", &["--user", "enable", "--now", systemd::name(unit.kind)])?,
                Manager::Launchd => {
                    // One that is loaded would keep its former file.
                    let _ = run("launchctl", &["bootout", &launchd::target(unit.kind)]);
                    run("launchctl", &["bootstrap", &launchd::domain(), &self.path(unit.kind).to_string_lossy()])?;
                }
            }
        }
        Ok(())
    }

    /// Whether the manager has given up starting the hub.
    pub(crate) fn has_failed(&self) -> bool {
        self.manager == Manager::Systemd
            && run("systemctl", &["--user", "is-failed", systemd::name(UnitKind::Hub)]).is_ok()
    }

    pub(crate) fn start(&self) -> Result<()> {
        self.each(|kind| match self.manager {
            Manager::Systemd => run("systemctl", &["--user", "start", systemd::name(kind)]),
            Manager::Launchd if run("launchctl", &["print", &launchd::target(kind)]).is_ok() => {
                run("launchctl", &["kickstart", &launchd::target(kind)])
            }
            Manager::Launchd => {
                run("launchctl", &["bootstrap", &launchd::domain(), &self.path(kind).to_string_lossy()])
            }
        })
    }

    /// Ends the programs. The next login starts them again.
    pub(crate) fn stop(&self) -> Result<()> {
        self.each(|kind| match self.manager {
            Manager::Systemd => run("systemctl", &["--user", "stop", systemd::name(kind)]),
            Manager::Launchd => run("launchctl", &["bootout", &launchd::target(kind)]),
        })
    }

    /// Ends the programs and removes our files; returns their paths.
    pub(crate) fn remove(&self) -> Result<Vec<PathBuf>> {
        let mut removed = Vec::new();
        self.each(|kind| {
            let ended = match self.manager {
                Manager::Systemd => run("systemctl", &["--user", "disable", "--now", systemd::name(kind)]),
                Manager::Launchd => run("launchctl", &["bootout", &launchd::target(kind)]),
            };
            // The file is removed all the same: without it, the next login starts nothing.
            if let Err(error) = ended {
                crate::output::warn(&format!("{error:#}"));
            }
            let path = self.path(kind);
            std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
            removed.push(path);
            Ok(())
        })?;
        if self.manager == Manager::Systemd {
            let _ = run("systemctl", &["--user", "daemon-reload"]);
        }
        Ok(removed)
    }

    /// Every unit of ours that is there, the hub first.
    fn each(&self, mut act: impl FnMut(UnitKind) -> Result<()>) -> Result<()> {
        UnitKind::ALL.into_iter().filter(|kind| self.is_ours(*kind)).try_for_each(&mut act)
    }

    fn is_ours(&self, kind: UnitKind) -> bool {
        std::fs::read_to_string(self.path(kind)).is_ok_and(|text| text.contains(MARK))
    }

    fn path(&self, kind: UnitKind) -> PathBuf {
        self.folder.join(match self.manager {
            Manager::Systemd => systemd::name(kind).to_owned(),
            Manager::Launchd => format!("{}.plist", launchd::label(kind)),
        })
    }

    fn quoted(&self, text: &str) -> String {
        match self.manager {
            Manager::Systemd => systemd::quoted(text),
            Manager::Launchd => launchd::escaped(text),
        }
    }
}

/// Runs a command of the manager. An error has what it said.
fn run(program: &str, arguments: &[&str]) -> Result<()> {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped());
    let mut child = command.spawn().with_context(|| format!("{program} cannot be started"))?;
    let begun = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            let mut said = String::new();
            if let Some(stderr) = child.stderr.take() {
                let _ = std::io::Read::read_to_string(&mut std::io::Read::take(stderr, 2_000), &mut said);
            }
            ensure!(status.success(), "{program} {} has failed: {}", arguments.join(" "), said.trim());
            return Ok(());
        }
        if begun.elapsed() > CALL_MAX {
            let _ = child.kill();
            bail!("{program} {} still ran after {} s", arguments.join(" "), CALL_MAX.as_secs());
        }
        std::thread::sleep(PAUSE);
    }
}

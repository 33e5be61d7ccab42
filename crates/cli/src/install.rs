//! Connects a harness to a hub: hooks or a plugin, the MCP server, and the token.

mod changes;
mod codex_trust;
mod edit;
mod json_text;
mod places;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use crate::hosts::{Host, HostFile, make_private_folder};
pub(crate) use changes::FileChange;
use places::{Place, Scope, Site};

/// What to install, and where.
pub(crate) struct Installation {
    pub(crate) host: Host,
    /// The folder of the project, for project scope.
    pub(crate) project: Option<PathBuf>,
    /// The absolute path of the program that the harness runs.
    pub(crate) binary: String,
    home: PathBuf,
}

/// The files that an installation changes.
pub(crate) struct Changes(Vec<FileChange>);

impl Installation {
    pub(crate) fn new(host: Host, project: Option<PathBuf>, binary: String) -> Result<Self> {
        let home = crate::data_dir::variable("HOME").or_else(|| crate::data_dir::variable("USERPROFILE"));
        let home = home.filter(|home| home.is_absolute()).context("there is no home folder")?;
        Ok(Self { host, project, binary, home })
    }

    fn site(&self) -> Site<'_> {
        let scope = if self.project.is_some() { Scope::Project } else { Scope::User };
        let project = self.project.as_deref().unwrap_or(&self.home);
        Site { host: self.host, scope, home: &self.home, project, binary: &self.binary }
    }

    /// The changes that install the harness.
    pub(crate) fn additions(&self) -> Result<Changes> {
        let site = self.site();
        let mut changes = Vec::new();
        for place in site.places() {
            if let Some(project) = &self.project {
                check_untracked(project, &place.path)?;
            }
            let change = FileChange::of(place.path.clone(), |before| edit::add(&site, &place, before))?;
            // A file with entries of ours is not what was there before.
            let bare = edit::remove(self.host, &place, change.before.as_deref(), false)?;
            let keeps_former = bare == change.before;
            changes.push(FileChange { keeps_former, ..change });
        }
        if let Some(project) = &self.project {
            changes.extend(exclusion(self.host, project, &site.places(), true)?);
        }
        Ok(Changes::of(changes))
    }

    /// The changes that remove it.
    pub(crate) fn removals(&self) -> Result<Changes> {
        let site = self.site();
        let change = |place: Place| {
            // A file with a backup was there before.
            let is_ours = !changes::backup(&place.path).exists();
            FileChange::of(place.path.clone(), |before| edit::remove(self.host, &place, before, is_ours))
        };
        let mut changes = site.places().into_iter().map(change).collect::<Result<Vec<FileChange>>>()?;
        if let Some(project) = &self.project {
            changes.extend(exclusion(self.host, project, &site.places(), false)?);
        }
        Ok(Changes::of(changes))
    }

    /// Whether all entries are there and name this program; `None` if there is none.
    pub(crate) fn entries(&self) -> Option<bool> {
        let site = self.site();
        let places = site.places();
        let read = |place: &Place| fs::read_to_string(&place.path).ok();
        let removes = |place: &Place| {
            let text = read(place);
            edit::remove(self.host, place, text.as_deref(), true).is_ok_and(|after| after != text)
        };
        if !places.iter().any(removes) {
            return None;
        }
        Some(places.iter().all(|place| edit::is_complete(&site, place, read(place).as_deref())))
    }
}

/// The events of our hooks that Codex skips, because the user does not trust them.
pub(crate) fn untrusted_by_codex() -> Vec<String> {
    let Ok(installation) = Installation::new(Host::Codex, None, String::new()) else { return Vec::new() };
    let places = installation.site().places();
    let path = |name: &str| places.iter().map(|place| &place.path).find(|path| path.ends_with(name));
    let Some((hooks, config)) = path("hooks.json").zip(path("config.toml")) else { return Vec::new() };
    codex_trust::untrusted(hooks, &fs::read_to_string(config).unwrap_or_default())
}

impl Changes {
    fn of(changes: Vec<FileChange>) -> Self {
        Self(changes.into_iter().filter(FileChange::is_change).collect())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn difference(&self) -> String {
        self.0.iter().map(FileChange::difference).collect()
    }

    /// Writes all files; returns their paths.
    pub(crate) fn apply(&self) -> Result<Vec<PathBuf>> {
        self.0.iter().map(|change| change.apply().map(|()| change.path.clone())).collect()
    }
}

/// The path of the program for the files of a harness: `named`, or this program. One in a build folder would be gone after
/// the next clean build.
pub(crate) fn binary(named: Option<&Path>) -> Result<String> {
    let path = match named {
        Some(path) => path.to_owned(),
        None => std::env::current_exe().context("this program cannot find itself; say --binary")?,
    };
    ensure!(path.is_absolute(), "--binary must be an absolute path, not {}", path.display());
    ensure!(path.is_file(), "{} is not a file", path.display());
    let is_build = |folder: &Path| folder.join("CACHEDIR.TAG").exists() && folder.join(".rustc_info.json").exists();
    if named.is_none() && path.ancestors().any(is_build) {
        bail!(
            "{} lies in a build folder, from which it may vanish; copy it to a folder such as ~/.local/bin and run that, \
             or name it with --binary",
            path.display()
        );
    }
    path.to_str().map(str::to_owned).with_context(|| format!("{} is not text", path.display()))
}

/// Writes the file with the hub's address and the token.
pub(crate) fn write_host_file(host: Host, file: &HostFile) -> Result<PathBuf> {
    let path = HostFile::path(host)?;
    let folder = path.parent().context("it has a folder")?;
    make_private_folder(folder).with_context(|| format!("cannot make {}", folder.display()))?;
    crate::data_dir::private(&path, file.text().trim_end())
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Files of a project that are shared must not name a program of one person's machine.
fn check_untracked(project: &Path, path: &Path) -> Result<()> {
    let Ok(inside) = path.strip_prefix(project) else { return Ok(()) };
    let git = std::process::Command::new("git");
    let listed = { git }.arg("-C").arg(project).args(["ls-files", "--error-unmatch", "--"]).arg(inside).output();
    if listed.is_ok_and(|output| output.status.success()) {
        bail!(
            "{} is under version control, so others would get a path of this machine; install for the user instead, \
             without --project",
            path.display()
        );
    }
    Ok(())
}

/// Keeps the files of a project out of git, by the list that is not shared; or ends that. Our lines stand below a mark.
fn exclusion(host: Host, project: &Path, places: &[Place], is_added: bool) -> Result<Option<FileChange>> {
    if !project.join(".git").is_dir() {
        return Ok(None);
    }
    let mark = format!("# bellwire install {}", host.name());
    let inside = places.iter().filter_map(|place| place.path.strip_prefix(project).ok());
    let ours: Vec<String> = inside.map(|path| format!("/{}", path.display())).collect();
    let change = FileChange::of(project.join(".git/info/exclude"), |before| {
        let mut lines: Vec<&str> = before.unwrap_or_default().lines().collect();
        if let Some(at) = lines.iter().position(|line| *line == mark) {
            let count = lines[at + 1..].iter().take_while(|line| ours.iter().any(|our| our == *line)).count();
            if is_added && count == ours.len() {
                return Ok(before.map(str::to_owned));
            }
            lines.drain(at..=at + count);
        }
        if is_added {
            lines.push(&mark);
            lines.extend(ours.iter().map(String::as_str));
        }
        let text: String = lines.iter().map(|line| format!("{line}\n")).collect();
        Ok((before.is_some() || is_added).then_some(text))
    })?;
    Ok(Some(change))
}

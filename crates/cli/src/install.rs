//! Connects a harness to a hub: hooks or a plugin, the MCP server, and the token.

mod changes;
mod codex_trust;
mod edit;
mod exclusion;
mod json_node;
mod json_text;
mod places;

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail, ensure};

use crate::hosts::{Host, HostFile, make_private_folder};
pub(crate) use changes::FileChange;
use exclusion::Exclusion;
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
            changes
                .extend(Exclusion::of(self.host, project, &site.places())?.map(|list| list.change(true)).transpose()?);
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
            changes
                .extend(Exclusion::of(self.host, project, &site.places())?.map(|list| list.change(false)).transpose()?);
        }
        Ok(Changes::of(changes))
    }

    /// The list by which git is kept from sharing the files of the project, if that is in a repository.
    pub(crate) fn exclude_file(&self) -> Result<Option<PathBuf>> {
        let Some(project) = &self.project else { return Ok(None) };
        Ok(Exclusion::of(self.host, project, &self.site().places())?.map(|list| list.file))
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
    let is_named = path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(places::PROGRAM));
    ensure!(
        is_named,
        "the name of {} must begin with {}: by that, uninstall finds it",
        path.display(),
        places::PROGRAM
    );
    if named.is_none() && path.ancestors().any(is_build) {
        bail!(
            "{} lies in a build folder, from which it may vanish; run one that stays (cargo install --locked --path \
             crates/cli makes it, or a copy in a folder such as ~/.local/bin), or name it with --binary",
            path.display()
        );
    }
    path.to_str().map(str::to_owned).with_context(|| format!("{} is not text", path.display()))
}

/// Writes the file with the hub's address and the token, at once: hooks read it at any time.
pub(crate) fn write_host_file(host: Host, file: &HostFile) -> Result<PathBuf> {
    let path = HostFile::path(host)?;
    make_folder_of(&path)?;
    let draft = path.with_extension(format!("toml.{}", std::process::id()));
    let written = crate::data_dir::private(&draft, file.text().trim_end()).and_then(|()| fs::rename(&draft, &path));
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// Keeps other runs of `install` and `uninstall` waiting for as long as the returned file is open: two of them would make two
/// tokens, of which one is forgotten.
pub(crate) fn lock(host: Host) -> Result<fs::File> {
    let path = HostFile::path(host)?.with_file_name(".lock");
    make_folder_of(&path)?;
    let file = fs::OpenOptions::new().create(true).truncate(false).write(true).open(&path);
    let locked = file.and_then(|file| file.lock().map(|()| file));
    locked.with_context(|| format!("cannot lock {}", path.display()))
}

fn make_folder_of(path: &Path) -> Result<()> {
    let folder = path.parent().context("it has a folder")?;
    make_private_folder(folder).with_context(|| format!("cannot make {}", folder.display()))
}

/// Files of a project that are shared must not name a program of one person's machine.
fn check_untracked(project: &Path, path: &Path) -> Result<()> {
    let Ok(inside) = path.strip_prefix(project) else { return Ok(()) };
    let listed = git(project).args(["ls-files", "--error-unmatch", "--"]).arg(inside).output();
    if listed.is_ok_and(|output| output.status.success()) {
        bail!(
            "{} is under version control, so others would get a path of this machine; install for the user instead, \
             without --project",
            path.display()
        );
    }
    Ok(())
}

/// Git in a folder, whatever repository the environment names.
fn git(folder: &Path) -> std::process::Command {
    let mut git = std::process::Command::new("git");
    git.arg("-C").arg(folder);
    for name in ["GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_COMMON_DIR"] {
        git.env_remove(name);
    }
    git
}

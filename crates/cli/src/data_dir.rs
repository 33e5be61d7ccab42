//! A hub's data folder: the database, the admin token, and `hub.json`, which says where the hub listens.

use std::fs;
use std::io::{ErrorKind, Write as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use bellwire_server::config::Secret;
use serde_json::{Value, json};

use crate::hook::processes::Process;

const TOKEN_FILE: &str = "admin.token";
const DATABASE_FILE: &str = "bellwire.db";
const NOTE_FILE: &str = "hub.json";

/// The platform's default data folder.
pub(crate) fn by_platform() -> Result<PathBuf> {
    let base = if cfg!(target_os = "macos") {
        variable("HOME").map(|home| home.join("Library/Application Support"))
    } else if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else {
        let data = variable("XDG_DATA_HOME").filter(|path| path.is_absolute());
        data.or_else(|| variable("HOME").map(|home| home.join(".local/share")))
    };
    base.map(|base| base.join("bellwire")).context("there is no home folder; say --data-dir or BELLWIRE_DATA_DIR")
}

pub(crate) fn variable(name: &str) -> Option<PathBuf> {
    std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from)
}

pub(crate) fn database(dir: &Path) -> PathBuf {
    dir.join(DATABASE_FILE)
}

/// Creates the folder with mode 700.
pub(crate) fn create(dir: &Path) -> Result<()> {
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(dir).with_context(|| format!("cannot make the data folder {} (say --data-dir)", dir.display()))
}

/// The admin token, which the first start of a hub writes; `None` if there is no file.
pub(crate) fn admin_token(dir: &Path) -> Result<Option<Secret>> {
    let path = token_path(dir);
    match fs::read_to_string(&path) {
        Ok(text) if text.trim().is_empty() => {
            bail!("{} is empty; remove it and the next start makes one", path.display())
        }
        Ok(text) => Ok(Some(Secret::new(text.trim()))),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

pub(crate) fn token_path(dir: &Path) -> PathBuf {
    dir.join(TOKEN_FILE)
}

/// Writes the admin token to a file with mode 600. The rename makes it atomic: a half-written token file would make every
/// later start fail.
pub(crate) fn keep_admin_token(dir: &Path, secret: &str) -> Result<PathBuf> {
    let (path, draft) = (token_path(dir), dir.join(format!("{TOKEN_FILE}.new")));
    let written = private(&draft, secret).and_then(|()| fs::rename(&draft, &path));
    written.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

/// The file's mode, if it grants anything to group or others. Always `None` on systems without modes.
#[cfg(unix)]
pub(crate) fn open_to_others(path: &Path) -> Option<u32> {
    let mode = std::os::unix::fs::PermissionsExt::mode(&fs::metadata(path).ok()?.permissions()) & 0o777;
    Some(mode).filter(|mode| mode & 0o077 != 0)
}

#[cfg(not(unix))]
pub(crate) fn open_to_others(_path: &Path) -> Option<u32> {
    None
}

/// Sets the mode of the admin token file to 600; returns whether it was different.
pub(crate) fn close_admin_token(dir: &Path) -> Result<bool> {
    let path = token_path(dir);
    if open_to_others(&path).is_none() {
        return Ok(false);
    }
    #[cfg(unix)]
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o600))
        .with_context(|| format!("others can read {}, and its mode cannot be changed to 600", path.display()))?;
    Ok(true)
}

/// Writes `hub.json` with the hub's URL, so that the other commands find it on any port.
pub(crate) fn note_running(dir: &Path, url: &str) -> Result<()> {
    let path = dir.join(NOTE_FILE);
    // An id alone may be another process's after this one was killed.
    let started = Process::of(std::process::id()).map(|process| process.started);
    let version = env!("CARGO_PKG_VERSION");
    let note = json!({ "url": url, "version": version, "pid": std::process::id(), "started": started });
    private(&path, &note.to_string()).with_context(|| format!("cannot write {}", path.display()))
}

/// Removes `hub.json`. Errors are ignored: readers must expect a stale file anyway.
pub(crate) fn note_stopped(dir: &Path) {
    let _ = fs::remove_file(dir.join(NOTE_FILE));
}

/// The content of `hub.json`. It may be stale if the hub was killed.
pub(crate) fn note(dir: &Path) -> Option<Value> {
    serde_json::from_str(&fs::read_to_string(dir.join(NOTE_FILE)).ok()?).ok()
}

/// Writes and syncs a file with mode 600.
pub(crate) fn private(path: &Path, line: &str) -> std::io::Result<()> {
    // An existing file would keep its mode.
    fs::remove_file(path).or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })?;
    let mut options = fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{line}")?;
    file.sync_all()
}

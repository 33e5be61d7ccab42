use std::io::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};

const TOKEN_FILE: &str = "admin.token";

/// Where a hub keeps its data if nobody says: where this platform keeps such data.
pub(crate) fn resolve(given: Option<&Path>) -> Result<PathBuf> {
    if let Some(given) = given {
        return Ok(given.to_owned());
    }
    let variable = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let base = if cfg!(target_os = "macos") {
        variable("HOME").map(|home| home.join("Library/Application Support"))
    } else if cfg!(windows) {
        variable("LOCALAPPDATA")
    } else {
        variable("XDG_DATA_HOME").or_else(|| variable("HOME").map(|home| home.join(".local/share")))
    };
    base.map(|base| base.join("bellwire")).context("there is no home folder; say --data-dir or BELLWIRE_DATA_DIR")
}

/// The admin token that the first start left.
pub(crate) fn admin_token(dir: &Path) -> Result<Option<String>> {
    let path = dir.join(TOKEN_FILE);
    match std::fs::read_to_string(&path) {
        Ok(text) if text.trim().is_empty() => bail!("{} is empty", path.display()),
        Ok(text) => Ok(Some(text.trim().to_owned())),
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error).with_context(|| format!("cannot read {}", path.display())),
    }
}

/// Keeps the admin token where only its owner can read it. The file is there whole or not at all: half of one would
/// keep every later start from succeeding.
pub(crate) fn keep_admin_token(dir: &Path, secret: &str) -> Result<PathBuf> {
    let path = dir.join(TOKEN_FILE);
    let draft = dir.join(format!("{TOKEN_FILE}.new"));
    write_for_owner(&draft, secret)
        .and_then(|()| std::fs::rename(&draft, &path))
        .with_context(|| format!("cannot write {}", path.display()))?;
    Ok(path)
}

fn write_for_owner(path: &Path, secret: &str) -> std::io::Result<()> {
    // A start that died here may have left its own.
    std::fs::remove_file(path).or_else(|error| match error.kind() {
        std::io::ErrorKind::NotFound => Ok(()),
        _ => Err(error),
    })?;
    let mut options = std::fs::OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(path)?;
    writeln!(file, "{secret}")?;
    file.sync_all()
}

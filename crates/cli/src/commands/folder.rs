use std::path::Path;

use anyhow::{Context as _, Result, bail};
use bellwire_core::subscriber::{FileError, Subscribers};
use bellwire_server::folder::FolderFiles;

/// Reads a folder of subscribers as a hub does.
pub(crate) fn read(dir: &Path) -> Result<FolderFiles> {
    if !dir.is_dir() {
        bail!("{} is not a folder", dir.display());
    }
    FolderFiles::read(dir).with_context(|| format!("cannot read the folder {}", dir.display()))
}

/// The bundled subscribers, replaced and extended by those of a folder, and the errors of the folder's files.
pub(crate) fn subscribers(dir: Option<&Path>) -> Result<(Subscribers, Vec<FileError>)> {
    let bundled = Subscribers::bundled();
    let Some(dir) = dir else { return Ok((bundled, Vec::new())) };
    let files = read(dir)?;
    let mut loaded = Subscribers::load(&files.subscribers, &files.templates);
    loaded.errors.extend(files.unreadable);
    let all = bundled.iter().chain(loaded.subscribers.iter()).cloned();
    Ok((Subscribers::new(all), loaded.errors))
}

/// Prints the errors of subscriber files to standard error.
pub(crate) fn warn(errors: &[FileError]) {
    for error in errors {
        anstream::eprintln!("{}warning:{} {error}", crate::output::WRONG.render(), crate::output::WRONG.render_reset());
    }
}

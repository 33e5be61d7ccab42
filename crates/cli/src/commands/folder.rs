use std::path::Path;

use anyhow::{Context as _, Result, bail};
use bellwire_core::subscriber::{FileError, Subscribers};
use bellwire_server::folder::Files;

/// The files of a folder of subscribers, as a hub reads them.
pub(crate) fn read(dir: &Path) -> Result<Files> {
    if !dir.is_dir() {
        bail!("{} is not a folder", dir.display());
    }
    Files::read(dir).with_context(|| format!("cannot read the folder {}", dir.display()))
}

/// The bundled subscribers with those of a folder over them, and what is wrong with the folder's files.
pub(crate) fn subscribers(dir: Option<&Path>) -> Result<(Subscribers, Vec<FileError>)> {
    let bundled = Subscribers::bundled();
    let Some(dir) = dir else { return Ok((bundled, Vec::new())) };
    let files = read(dir)?;
    let mut loaded = Subscribers::load(&files.subscribers, &files.templates);
    loaded.errors.extend(files.unreadable);
    let all = bundled.iter().chain(loaded.subscribers.iter()).cloned();
    Ok((Subscribers::new(all), loaded.errors))
}

/// Says on standard error what is wrong with which file.
pub(crate) fn warn(errors: &[FileError]) {
    for error in errors {
        anstream::eprintln!("{}warning:{} {error}", crate::output::WRONG.render(), crate::output::WRONG.render_reset());
    }
}

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, Result, bail};
use bellwire_core::subscriber::{FileError, Subscriber, Subscribers};
use bellwire_server::folder::FolderFiles;

/// The valid subscribers of a folder, read as a hub does, and the errors of the other files.
pub(crate) fn read(dir: &Path) -> Result<(Vec<Arc<Subscriber>>, Vec<FileError>)> {
    if !dir.is_dir() {
        bail!("{} is not a folder", dir.display());
    }
    let files = FolderFiles::read(dir).with_context(|| format!("cannot read the folder {}", dir.display()))?;
    let (mut good, mut errors) = (Vec::new(), Vec::new());
    for (_, parsed) in files.parse() {
        match parsed {
            Ok(one) => good.push(one),
            Err(error) => errors.push(error),
        }
    }
    Ok((good, errors))
}

/// The bundled subscribers, replaced and extended by those of a folder, and the errors of the folder's files.
pub(crate) fn subscribers(dir: Option<&Path>) -> Result<(Subscribers, Vec<FileError>)> {
    let bundled = Subscribers::bundled();
    let Some(dir) = dir else { return Ok((bundled, Vec::new())) };
    let (own, errors) = read(dir)?;
    Ok((Subscribers::new(bundled.iter().cloned().chain(own)), errors))
}

/// Prints the errors of subscriber files to standard error.
pub(crate) fn warn(errors: &[FileError]) {
    for error in errors {
        anstream::eprintln!("{}warning:{} {error}", crate::output::WRONG.render(), crate::output::WRONG.render_reset());
    }
}

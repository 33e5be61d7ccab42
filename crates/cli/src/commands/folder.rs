use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use bellwire_core::subscriber::{FileError, SubscriberFile, Subscribers};

/// Deeper than this is no folder of templates.
const DEPTH_MAX: usize = 8;

/// The files of a folder of subscribers, as read.
pub(crate) struct Folder {
    pub(crate) files: Vec<SubscriberFile>,
    /// Templates by their path relative to the folder.
    pub(crate) templates: BTreeMap<String, String>,
    /// What could not be read.
    pub(crate) unreadable: Vec<FileError>,
}

/// Every `*.toml` of a folder, in name order, and every `*.j2` below it. A file that cannot be read is one bad file: it
/// is reported, and the others load.
pub(crate) fn read(dir: &Path) -> Result<Folder> {
    if !dir.is_dir() {
        bail!("{} is not a folder", dir.display());
    }
    let mut folder = Folder { files: Vec::new(), templates: BTreeMap::new(), unreadable: Vec::new() };
    for path in entries(dir)?.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "toml")) {
        if let Some(text) = folder.text_of(&path) {
            folder.files.push(SubscriberFile { path: path.display().to_string(), text });
        }
    }
    folder.read_templates(dir, dir, 0)?;
    Ok(folder)
}

/// The bundled subscribers with those of a folder over them, and what is wrong with the folder's files.
pub(crate) fn subscribers(dir: Option<&Path>) -> Result<(Subscribers, Vec<FileError>)> {
    let bundled = Subscribers::bundled();
    let Some(dir) = dir else { return Ok((bundled, Vec::new())) };
    let folder = read(dir)?;
    let mut loaded = Subscribers::load(&folder.files, &folder.templates);
    loaded.errors.extend(folder.unreadable);
    let all = bundled.iter().chain(loaded.subscribers.iter()).cloned();
    Ok((Subscribers::new(all), loaded.errors))
}

/// Says on standard error what is wrong with which file.
pub(crate) fn warn(errors: &[FileError]) {
    for error in errors {
        anstream::eprintln!("{}warning:{} {error}", crate::output::WRONG.render(), crate::output::WRONG.render_reset());
    }
}

impl Folder {
    fn read_templates(&mut self, root: &Path, dir: &Path, depth: usize) -> Result<()> {
        for path in entries(dir)? {
            if path.is_dir() && depth < DEPTH_MAX {
                self.read_templates(root, &path, depth + 1)?;
            } else if path.extension().is_some_and(|ending| ending == "j2")
                && let Some(text) = self.text_of(&path)
            {
                let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
                self.templates.insert(name, text);
            }
        }
        Ok(())
    }

    fn text_of(&mut self, path: &Path) -> Option<String> {
        let unreadable = |error: std::io::Error| FileError {
            path: path.display().to_string(),
            line: 0,
            message: format!("cannot be read: {error}"),
        };
        fs::read_to_string(path).map_err(|error| self.unreadable.push(unreadable(error))).ok()
    }
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let read = fs::read_dir(dir).with_context(|| format!("cannot read the folder {}", dir.display()))?;
    let mut paths = read.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

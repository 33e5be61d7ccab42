use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use bellwire_core::subscriber::{FileError, SubscriberFile, Subscribers};

use crate::args::Folder;

/// Deeper than this is no folder of templates.
const DEPTH_MAX: usize = 8;

/// Every `*.toml` of a folder, in name order, and every `*.j2` below it by its relative path.
pub(crate) fn read(dir: &Path) -> Result<Folder> {
    if !dir.is_dir() {
        bail!("{} is not a folder", dir.display());
    }
    let mut files = Vec::new();
    for path in entries(dir)?.into_iter().filter(|path| path.extension().is_some_and(|ending| ending == "toml")) {
        files.push(SubscriberFile { path: path.display().to_string(), text: text_of(&path)? });
    }
    let mut templates = BTreeMap::new();
    read_templates(dir, dir, 0, &mut templates)?;
    Ok((files, templates))
}

/// The bundled subscribers with those of a folder over them, and what is wrong with the folder's files.
pub(crate) fn subscribers(dir: Option<&Path>) -> Result<(Subscribers, Vec<FileError>)> {
    let bundled = Subscribers::bundled();
    let Some(dir) = dir else { return Ok((bundled, Vec::new())) };
    let (files, templates) = read(dir)?;
    let loaded = Subscribers::load(&files, &templates);
    let all = bundled.iter().chain(loaded.subscribers.iter()).cloned();
    Ok((Subscribers::new(all), loaded.errors))
}

/// Says on standard error what is wrong with which file.
pub(crate) fn warn(errors: &[FileError]) {
    for error in errors {
        anstream::eprintln!("{}warning:{} {error}", crate::output::WRONG.render(), crate::output::WRONG.render_reset());
    }
}

fn read_templates(root: &Path, dir: &Path, depth: usize, templates: &mut BTreeMap<String, String>) -> Result<()> {
    for path in entries(dir)? {
        if path.is_dir() && depth < DEPTH_MAX {
            read_templates(root, &path, depth + 1, templates)?;
        } else if path.extension().is_some_and(|ending| ending == "j2") {
            let name = path.strip_prefix(root).unwrap_or(&path).to_string_lossy().replace('\\', "/");
            templates.insert(name, text_of(&path)?);
        }
    }
    Ok(())
}

fn entries(dir: &Path) -> Result<Vec<PathBuf>> {
    let read = fs::read_dir(dir).with_context(|| format!("cannot read the folder {}", dir.display()))?;
    let mut paths = read.map(|entry| entry.map(|entry| entry.path())).collect::<std::io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

fn text_of(path: &Path) -> Result<String> {
    fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))
}

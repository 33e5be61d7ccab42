use std::io::Read as _;

use anyhow::{Context as _, Result, bail};

/// More than this does not fit into a request.
const INPUT_MAX: u64 = 64 * 1024 * 1024;

/// A text as it was said, or `-` for standard input, or `@FILE`.
pub(super) fn text(said: &str) -> Result<String> {
    match said.strip_prefix('@') {
        Some(path) => file(path),
        None if said == "-" => file("-"),
        None => Ok(said.to_owned()),
    }
}

/// What a file says; `-` is standard input.
pub(super) fn file(path: &str) -> Result<String> {
    let mut text = String::new();
    let read = match path {
        "-" => std::io::stdin().take(INPUT_MAX + 1).read_to_string(&mut text).context("cannot read standard input"),
        path => std::fs::File::open(path)
            .and_then(|file| file.take(INPUT_MAX + 1).read_to_string(&mut text))
            .with_context(|| format!("cannot read {path}")),
    };
    read?;
    if text.len() as u64 > INPUT_MAX {
        bail!("{path} has more than {INPUT_MAX} bytes");
    }
    Ok(text)
}

use std::io::Read as _;

use anyhow::{Context as _, Result, bail};

/// The largest input in bytes; the hub accepts no larger request.
const INPUT_MAX: u64 = 64 * 1024 * 1024;

/// An argument's text: itself, standard input for `-`, or a file's content for `@FILE`.
pub(super) fn text(argument: &str) -> Result<String> {
    match argument.strip_prefix('@') {
        Some(path) => file(path),
        None if argument == "-" => file("-"),
        None => Ok(argument.to_owned()),
    }
}

/// The content of a file; `-` is standard input.
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

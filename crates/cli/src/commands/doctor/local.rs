//! Checks of this machine that need no hub.

use std::path::Path;

use bellwire_server::channels::Channels;
use bellwire_server::config::{LoadedConfig, RedisConfig};
use bellwire_store::RedisRefusalCache;

use super::CheckResult;
use crate::commands::subscribers::check_folder;
use crate::data_dir;

/// Free bytes below which the check warns.
const FREE_WARN: u64 = 1024 * 1024 * 1024;
/// Free bytes below which the check fails.
const FREE_FAIL: u64 = 64 * 1024 * 1024;

pub(super) fn check(loaded: &LoadedConfig) -> Vec<CheckResult> {
    let mut results = Vec::new();
    if let Some(dir) = loaded.config.data_dir.as_deref() {
        match dir.is_dir() {
            true => results.extend([data_folder(dir), admin_token(dir), disk(dir)].into_iter().flatten()),
            false if dir.exists() => {
                let message = format!("{} is not a folder", dir.display());
                results.push(CheckResult::fail("data folder", message, "say --data-dir, or move that file away"));
            }
            false => {
                let message = format!("{} is not there yet", dir.display());
                results.push(CheckResult::warn("data folder", message, "bellwire start makes it"));
            }
        }
    }
    results.extend(subscribers(loaded.config.subscribers_dir.as_deref()));
    results.extend(channels(loaded));
    results.extend(redis(&loaded.config.redis));
    results
}

/// Whether the settings of the channels can be used, such as the files they name.
fn channels(loaded: &LoadedConfig) -> Option<CheckResult> {
    let error = Channels::of_config(&loaded.config).err()?;
    Some(CheckResult::fail("channels", error.to_string(), format!("correct the settings of [{}]", error.channel)))
}

/// Whether the configured Redis answers. A hub works without it, so an unreachable one is only a warning.
fn redis(settings: &RedisConfig) -> Option<CheckResult> {
    const CHECK: &str = "redis";
    let address = match settings.address() {
        Ok(address) => address?,
        Err(why) => return Some(CheckResult::fail(CHECK, why, "correct the file, or redis.url_file")),
    };
    let runtime = tokio::runtime::Runtime::new().ok()?;
    Some(match runtime.block_on(RedisRefusalCache::probe(address.reveal())) {
        Ok(()) => CheckResult::ok(CHECK, "answers"),
        Err(error) => {
            let message = format!("is away: {error}; a hub counts in its database meanwhile");
            CheckResult::warn(CHECK, message, "start it, or correct redis.url")
        }
    })
}

fn data_folder(dir: &Path) -> Option<CheckResult> {
    let shown = dir.display();
    let readonly = std::fs::metadata(dir).is_ok_and(|metadata| metadata.permissions().readonly());
    Some(match data_dir::open_to_others(dir) {
        _ if readonly => {
            let fix = format!("chmod u+w '{shown}', as the one who runs the hub");
            CheckResult::fail("data folder", format!("{shown} cannot be written to"), fix)
        }
        Some(mode) => {
            let message = format!("{shown} is open to others (mode {mode:o})");
            CheckResult::warn("data folder", message, format!("chmod 700 '{shown}'"))
        }
        None => CheckResult::ok("data folder", format!("{shown} is its owner's alone")),
    })
}

fn admin_token(dir: &Path) -> Option<CheckResult> {
    let path = data_dir::token_path(dir);
    let shown = path.display();
    Some(match (data_dir::admin_token(dir), data_dir::open_to_others(&path)) {
        (Err(error), _) => CheckResult::fail("admin token", format!("{error:#}"), "run as the one who runs the hub"),
        (Ok(None), _) => {
            let fix = "bellwire start makes one; a token given by --token or BELLWIRE_TOKEN does as well";
            CheckResult::warn("admin token", format!("{shown} is not there"), fix)
        }
        (Ok(Some(_)), Some(mode)) => {
            let message = format!("others can read {shown} (mode {mode:o})");
            CheckResult::fail("admin token", message, format!("chmod 600 '{shown}', and revoke it if others may have"))
        }
        (Ok(Some(_)), None) => CheckResult::ok("admin token", format!("{shown} is its owner's alone")),
    })
}

#[cfg(unix)]
fn disk(dir: &Path) -> Option<CheckResult> {
    let disk = rustix::fs::statvfs(dir).ok()?;
    let free = disk.f_bavail.saturating_mul(disk.f_frsize);
    let message = format!("{} MiB are free", free / (1024 * 1024));
    let fix = "make space, or move the data: stop the hub, move the folder, say --data-dir";
    Some(match free {
        free if free < FREE_FAIL => CheckResult::fail("disk", message, fix),
        free if free < FREE_WARN => CheckResult::warn("disk", message, fix),
        _ => CheckResult::ok("disk", message),
    })
}

#[cfg(not(unix))]
fn disk(_dir: &Path) -> Option<CheckResult> {
    None
}

fn subscribers(dir: Option<&Path>) -> Vec<CheckResult> {
    const CHECK: &str = "subscribers";
    let Some(dir) = dir else { return vec![CheckResult::ok(CHECK, "only those that come with Bellwire")] };
    match check_folder(dir) {
        Err(error) => {
            vec![CheckResult::fail(CHECK, format!("{error:#}"), "make the folder, or change subscribers.dir")]
        }
        Ok(checked) if checked.files == 0 => {
            let message = format!("{} holds no *.toml file", dir.display());
            vec![CheckResult::warn(CHECK, message, "put a subscriber there, or leave subscribers.dir empty")]
        }
        Ok(checked) if checked.problems.is_empty() => {
            vec![CheckResult::ok(CHECK, format!("{} is right", dir.display()))]
        }
        Ok(checked) => {
            let fix = format!("correct it; bellwire subscribers check '{}' checks it again", dir.display());
            checked.problems.into_iter().map(|problem| CheckResult::fail(CHECK, problem, fix.clone())).collect()
        }
    }
}

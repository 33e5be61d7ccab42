//! Finds and loads the hub's configuration on this machine.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result, bail};
use bellwire_server::config::{ConfigSources, Flag, LoadedConfig, load};
use clap::Args;

use crate::data_dir;
use crate::output::warn;

const FILE_NAME: &str = "bellwire.toml";

/// Which configuration, and whose data
#[derive(Args, Clone, Default)]
pub(crate) struct Settings {
    /// The configuration file; by default bellwire.toml in your configuration folder, or in the system's
    #[arg(long = "config", global = true, env = "BELLWIRE_CONFIG", value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// The data folder; by default the platform's, such as ~/.local/share/bellwire
    #[arg(long, global = true, value_name = "DIR")]
    pub(crate) data_dir: Option<PathBuf>,
}

impl Settings {
    /// Loads defaults, file, environment and these flags, and fills in the platform's data folder.
    pub(crate) fn load(&self, mut flags: Vec<Flag>) -> Result<LoadedConfig> {
        if let Some(dir) = &self.data_dir {
            flags.push(flag("--data-dir", "data.dir", absolute(dir)?.display()));
        }
        let sources = ConfigSources { file: self.read_file()?, environment: environment(), flags };
        let loaded = load(&sources).map_err(|problems| {
            let lines = problems.0.iter().map(|problem| format!("\n  {problem}"));
            anyhow::anyhow!("the configuration is invalid:{}", lines.collect::<String>())
        })?;
        match loaded.config.data_dir {
            Some(_) => Ok(loaded),
            None => Ok(loaded.with_platform_data_dir(data_dir::by_platform()?)),
        }
    }

    /// Loads the configuration and prints its warnings to standard error.
    pub(crate) fn load_and_warn(&self, flags: Vec<Flag>) -> Result<LoadedConfig> {
        let loaded = self.load(flags)?;
        loaded.warnings.iter().for_each(|warning| warn(&warning.to_string()));
        Ok(loaded)
    }

    fn read_file(&self) -> Result<Option<(PathBuf, String)>> {
        let named = self.file.as_ref().filter(|path| !path.as_os_str().is_empty());
        let path = match named {
            Some(path) if !path.exists() => {
                bail!("{} does not exist; leave out --config to use the defaults", path.display())
            }
            Some(path) => Some(absolute(path)?),
            None => config_paths().into_iter().find(|path| path.exists()),
        };
        let Some(path) = path else { return Ok(None) };
        let text = std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Some((path, text)))
    }
}

/// Where a configuration file is looked for, the user's before the system's. The current folder is not searched, because
/// another user may control it.
pub(crate) fn config_paths() -> Vec<PathBuf> {
    let (own, system) = if cfg!(target_os = "macos") {
        let own = data_dir::variable("HOME").map(|home| home.join("Library/Application Support"));
        (own, Some(PathBuf::from("/Library/Application Support")))
    } else if cfg!(windows) {
        (data_dir::variable("APPDATA"), data_dir::variable("PROGRAMDATA"))
    } else {
        let own = data_dir::variable("XDG_CONFIG_HOME").filter(|path| path.is_absolute());
        let own = own.or_else(|| data_dir::variable("HOME").map(|home| home.join(".config")));
        (own, Some(PathBuf::from("/etc")))
    };
    own.into_iter().chain(system).map(|folder| folder.join("bellwire").join(FILE_NAME)).collect()
}

/// A setting from the command line.
pub(crate) fn flag(name: &'static str, key: &'static str, value: impl ToString) -> Flag {
    Flag { name, key, value: value.to_string() }
}

pub(crate) fn absolute(path: &Path) -> Result<PathBuf> {
    std::path::absolute(path).with_context(|| format!("cannot find {}", path.display()))
}

fn environment() -> Vec<(String, String)> {
    // Values of our variables are UTF-8; others are ignored.
    std::env::vars_os()
        .filter_map(|(name, value)| Some((name.into_string().ok()?, value.into_string().ok()?)))
        .collect()
}

use std::io::Write as _;

use anyhow::Result;
use bellwire_server::config::DEFAULT_FILE;
use clap::Args;

use crate::output::print_json;
use crate::settings::Settings;

/// Print the effective configuration, and where each value comes from
///
/// The output is a valid configuration file. Flags win over BELLWIRE_* variables, variables over bellwire.toml.
#[derive(Args)]
pub(crate) struct ConfigArgs {
    /// Print the commented default file instead
    #[arg(long, conflicts_with = "json")]
    default: bool,
    /// Print JSON: {"limits.streams": {"value": 10000, "from": "default"}, ...}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
}

pub(crate) fn run(arguments: &ConfigArgs) -> Result<bool> {
    let mut out = std::io::stdout().lock();
    if arguments.default {
        out.write_all(DEFAULT_FILE.as_bytes())?;
        return Ok(true);
    }
    let loaded = arguments.settings.load_and_warn(Vec::new())?;
    if arguments.json {
        drop(out);
        return print_json(&loaded.to_json());
    }
    out.write_all(loaded.to_toml().as_bytes())?;
    Ok(true)
}

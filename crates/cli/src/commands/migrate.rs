use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context as _, Result};
use bellwire_core::Time;
use bellwire_store::SqliteStore;
use clap::Args;
use serde_json::json;

use crate::data_dir;
use crate::output::print_json;
use crate::settings::Settings;

/// Migrate the database without starting the hub
///
/// `serve` does the same at start. No hub may be running on the data folder.
#[derive(Args)]
pub(crate) struct MigrateArgs {
    /// Print JSON: {"database": PATH, "applied": [STEP, ...]}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    settings: Settings,
}

pub(crate) fn run(arguments: &MigrateArgs) -> Result<bool> {
    let loaded = arguments.settings.load_and_warn(Vec::new())?;
    let dir = loaded.config.data_dir.context("there is no data folder; say --data-dir")?;
    data_dir::create(&dir)?;
    let path = data_dir::database(&dir);
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    let now = Time::from_millis(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
    let applied = runtime.block_on(SqliteStore::migrate(&path, now))?;
    if arguments.json {
        return print_json(&json!({ "database": path.display().to_string(), "applied": applied }));
    }
    for step in &applied {
        anstream::println!("applied {step}");
    }
    match applied.len() {
        0 => anstream::eprintln!("{} was up to date; nothing was done", path.display()),
        1 => anstream::eprintln!("{} is up to date; one step was applied", path.display()),
        many => anstream::eprintln!("{} is up to date; {many} steps were applied", path.display()),
    }
    Ok(true)
}

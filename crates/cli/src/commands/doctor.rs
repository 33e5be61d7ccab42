mod local;
mod remote;

use std::io::Write as _;

use anyhow::Result;
use bellwire_server::config::{ConfigWarning, LoadedConfig};
use clap::Args;
use serde_json::{Value, json};

use crate::client::Connection;
use crate::output::{MUTED, SAID, WAITS, WRONG, paint, print_json, printable};

/// Check everything a hub needs, and say how to repair what is wrong
///
/// Checks the configuration, the data folder, the admin token, the disk, the subscribers, and the hub, or its database if no
/// hub is running. Changes nothing. Exits with 1 if anything is wrong.
#[derive(Args)]
pub(crate) struct DoctorArgs {
    /// Print JSON: {"ok": BOOL, "checks": [{"check", "level", "message", "fix"?}, ...]}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// The outcome of a check. `Fail` makes the exit code 1.
#[derive(Copy, Clone, PartialEq, Eq)]
enum CheckLevel {
    Ok,
    Warn,
    Fail,
}

/// One check's name, outcome and, unless it is ok, how to fix it.
struct CheckResult {
    check: &'static str,
    level: CheckLevel,
    message: String,
    fix: Option<String>,
}

pub(crate) fn run(arguments: &DoctorArgs) -> Result<bool> {
    let mut results = Vec::new();
    let loaded = match arguments.connection.settings.load(Vec::new()) {
        Ok(loaded) => {
            results.extend(configuration(&loaded));
            Some(loaded)
        }
        Err(error) => {
            let fix = "correct it; `bellwire config --default` shows every setting";
            results.push(CheckResult::fail("configuration", format!("{error:#}"), fix));
            None
        }
    };
    if let Some(loaded) = &loaded {
        results.extend(local::check(loaded));
    }
    results.extend(remote::check(&arguments.connection, loaded.as_ref()));
    let ok = !results.iter().any(|result| result.level == CheckLevel::Fail);
    match arguments.json {
        true => print_json(&json!({ "ok": ok, "checks": results.iter().map(CheckResult::json).collect::<Vec<_>>() }))?,
        false => print(&results)?,
    };
    Ok(ok)
}

fn configuration(loaded: &LoadedConfig) -> Vec<CheckResult> {
    if loaded.warnings.is_empty() {
        return vec![CheckResult::ok("configuration", "holds together; `bellwire config` shows it")];
    }
    let risky = |warning: &ConfigWarning| CheckResult::warn("configuration", &warning.message, &warning.fix);
    loaded.warnings.iter().map(risky).collect()
}

fn print(results: &[CheckResult]) -> Result<bool> {
    let mut out = anstream::stdout().lock();
    for result in results {
        let word = paint(result.level.style(), format!("{:5}", result.level.as_str()));
        writeln!(out, "{word}{:15} {}", result.check, printable(&result.message))?;
        if let Some(fix) = &result.fix {
            writeln!(out, "{:20} {}", "", paint(MUTED, format!("fix: {}", printable(fix))))?;
        }
    }
    Ok(true)
}

impl CheckResult {
    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, level: CheckLevel::Ok, message: message.into(), fix: None }
    }

    fn warn(check: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, level: CheckLevel::Warn, message: message.into(), fix: Some(fix.into()) }
    }

    fn fail(check: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, level: CheckLevel::Fail, message: message.into(), fix: Some(fix.into()) }
    }

    fn json(&self) -> Value {
        let mut json = json!({ "check": self.check, "level": self.level.as_str(), "message": self.message });
        if let Some(fix) = &self.fix {
            json["fix"] = json!(fix);
        }
        json
    }
}

impl CheckLevel {
    const fn as_str(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Warn => "warn",
            Self::Fail => "fail",
        }
    }

    const fn style(self) -> anstyle::Style {
        match self {
            Self::Ok => SAID,
            Self::Warn => WAITS,
            Self::Fail => WRONG,
        }
    }
}

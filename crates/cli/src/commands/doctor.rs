mod local;
mod remote;

use std::io::Write as _;

use anyhow::Result;
use bellwire_server::config::Loaded;
use clap::Args;
use serde_json::{Value, json};

use crate::client::Connection;
use crate::output::{MUTED, SAID, WAITS, WRONG, paint, print_json, printable};

/// Check everything a hub needs, one thing after another, and say how to mend what is wrong
///
/// Looks at the configuration, the data folder, the admin token, the disk, the subscribers, and the hub itself, or its
/// database where no hub runs. Changes nothing. Exits with 1 if anything is wrong.
#[derive(Args)]
pub(crate) struct Doctor {
    /// Print JSON: {"ok": BOOL, "checks": [{"check", "level", "message", "fix"?}, ...]}
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

/// How bad it is.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Level {
    Ok,
    Warn,
    Fail,
}

/// One thing that was looked at.
struct Finding {
    check: &'static str,
    level: Level,
    message: String,
    fix: Option<String>,
}

pub(crate) fn run(arguments: &Doctor) -> Result<bool> {
    let mut findings = Vec::new();
    let loaded = match arguments.connection.settings.load(Vec::new()) {
        Ok(loaded) => {
            findings.extend(configuration(&loaded));
            Some(loaded)
        }
        Err(error) => {
            let fix = "correct it; `bellwire config --default` shows every setting";
            findings.push(Finding::fail("configuration", format!("{error:#}"), fix));
            None
        }
    };
    if let Some(loaded) = &loaded {
        findings.extend(local::check(loaded));
    }
    findings.extend(remote::check(&arguments.connection, loaded.as_ref()));
    let ok = !findings.iter().any(|finding| finding.level == Level::Fail);
    match arguments.json {
        true => print_json(&json!({ "ok": ok, "checks": findings.iter().map(Finding::json).collect::<Vec<_>>() }))?,
        false => print(&findings)?,
    };
    Ok(ok)
}

fn configuration(loaded: &Loaded) -> Vec<Finding> {
    if loaded.warnings.is_empty() {
        return vec![Finding::ok("configuration", "holds together; `bellwire config` shows it")];
    }
    let risky = |warning: &String| Finding::warn("configuration", warning, "change it, or know why not");
    loaded.warnings.iter().map(risky).collect()
}

fn print(findings: &[Finding]) -> Result<bool> {
    let mut out = anstream::stdout().lock();
    for finding in findings {
        let word = paint(finding.level.style(), format!("{:5}", finding.level.word()));
        writeln!(out, "{word}{:15} {}", finding.check, printable(&finding.message))?;
        if let Some(fix) = &finding.fix {
            writeln!(out, "{:20} {}", "", paint(MUTED, format!("fix: {}", printable(fix))))?;
        }
    }
    Ok(true)
}

impl Finding {
    fn ok(check: &'static str, message: impl Into<String>) -> Self {
        Self { check, level: Level::Ok, message: message.into(), fix: None }
    }

    fn warn(check: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, level: Level::Warn, message: message.into(), fix: Some(fix.into()) }
    }

    fn fail(check: &'static str, message: impl Into<String>, fix: impl Into<String>) -> Self {
        Self { check, level: Level::Fail, message: message.into(), fix: Some(fix.into()) }
    }

    fn json(&self) -> Value {
        let mut json = json!({ "check": self.check, "level": self.level.word(), "message": self.message });
        if let Some(fix) = &self.fix {
            json["fix"] = json!(fix);
        }
        json
    }
}

impl Level {
    const fn word(self) -> &'static str {
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

mod change;

use std::io::Write as _;

use anyhow::Result;
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use self::change::SetArgs;
use super::person;
use crate::authority;
use crate::client::Connection;
use crate::output::{STRONG, paint, print_json, printable, text};

/// Show a person's settings, or change them: email, Telegram, quiet hours, toasts, muted origins, subscribers
#[derive(Args)]
#[command(after_help = EXAMPLES)]
pub(crate) struct SettingsArgs {
    #[command(subcommand)]
    command: Option<SettingsCommand>,
    /// The id of the person; not needed with the person's own token
    #[arg(long, global = true, display_order = 100, value_name = "ID")]
    user: Option<String>,
    /// Print the hub's JSON
    #[arg(long, global = true, display_order = 100)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

const EXAMPLES: &str = "Examples:\n  bellwire settings --user ada\n  \
                        bellwire settings set --quiet-hours 22:00-07:00 --timezone Europe/Berlin --user ada\n  \
                        bellwire settings set --email ada@example.org --user ada\n  \
                        bellwire settings confirm 493017 --user ada";

#[derive(Subcommand)]
enum SettingsCommand {
    Set(SetArgs),
    Confirm(ConfirmArgs),
}

/// Confirm the email address with the code that was sent to it
#[derive(Args)]
struct ConfirmArgs {
    /// The code, six digits
    code: String,
}

pub(crate) fn run(arguments: &SettingsArgs) -> Result<bool> {
    let client = authority::client(&arguments.connection)?;
    let path = person::path(&client, arguments.user.as_deref(), "")?;
    let settings_path = format!("{path}/settings");
    let settings = match &arguments.command {
        None => client.get(&settings_path)?,
        Some(SettingsCommand::Set(set)) => {
            let patch = set.patch(&client.get(&settings_path)?)?;
            let changed = client.call(Method::PATCH, &settings_path, Some(&patch))?;
            hint(&patch, &changed);
            changed
        }
        Some(SettingsCommand::Confirm(confirm)) => {
            client.post(&format!("{path}/email/confirm"), &json!({ "code": confirm.code }))?
        }
    };
    if arguments.json {
        return print_json(&settings);
    }
    print(&settings)?;
    Ok(true)
}

/// Says what is left to do after a change of the address.
fn hint(patch: &Value, settings: &Value) {
    let email = &settings["email"];
    if patch["email"]["address"].is_string() && email["confirmed"] != true {
        anstream::eprintln!(
            "{} is not confirmed yet: enter the code that the hub mails to it with `bellwire settings confirm CODE`",
            text(email, "address")
        );
    }
}

fn print(settings: &Value) -> Result<()> {
    let mut out = anstream::stdout().lock();
    let quiet = match &settings["quiet_hours"] {
        Value::Null => "none".to_owned(),
        quiet => format!("{} to {}, {}", text(quiet, "start"), text(quiet, "end"), text(quiet, "timezone")),
    };
    let lines = [
        ("email", email(&settings["email"])),
        ("telegram", telegram(&settings["telegram"])),
        ("quiet hours", quiet),
        ("toasts", on_or_off(&settings["toasts"]).to_owned()),
        ("muted origins", names(&settings["muted_origins"])),
        ("disabled subscribers", names(&settings["disabled_subscribers"])),
    ];
    for (name, value) in lines {
        writeln!(out, "{}{value}", paint(STRONG, format!("{name:22}")))?;
    }
    Ok(())
}

fn email(email: &Value) -> String {
    let address = text(email, "address");
    match (address.as_str(), email["confirmed"] == true) {
        ("", _) => format!("{}, no address", on_or_off(email)),
        (address, true) => format!("{}, to {address}", on_or_off(email)),
        (address, false) => format!("{}, to {address}, which is not confirmed yet", on_or_off(email)),
    }
}

fn telegram(telegram: &Value) -> String {
    match telegram["chat_id"].as_i64() {
        Some(chat) => format!("{}, to the chat {chat}", on_or_off(telegram)),
        None => "off, no chat is connected".to_owned(),
    }
}

fn on_or_off(setting: &Value) -> &'static str {
    if setting["enabled"] == true { "on" } else { "off" }
}

fn names(list: &Value) -> String {
    let names: Vec<String> = list.as_array().into_iter().flatten().filter_map(Value::as_str).map(printable).collect();
    if names.is_empty() { "none".to_owned() } else { names.join(", ") }
}

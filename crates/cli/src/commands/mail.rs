use std::io::Write as _;

use anyhow::{Context as _, Result};
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::authority;
use crate::client::{Client, Connection, segment};
use crate::output::{MUTED, SAID, WAITS, WRONG, cell, paint, print_json, printable, text, warn};

/// Try the email settings of the hub
#[derive(Args)]
pub(crate) struct MailArgs {
    #[command(subcommand)]
    command: MailCommand,
}

#[derive(Subcommand)]
enum MailCommand {
    Test(TestArgs),
}

/// Send one test email with the settings of the running hub, and say what happened at each step
///
/// The steps: configuration, connect, greeting, tls, login, message. Exits with 0 if the mail server accepted the email, with
/// 1 if it did not or the outcome is unknown, and with 2 if the test could not be made.
#[derive(Args)]
#[command(after_help = "Examples:\n  bellwire mail test ada@example.org\n  bellwire mail test --user ada")]
struct TestArgs {
    #[command(flatten)]
    recipient: Recipient,
    /// Print the hub's JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Args)]
#[group(required = true, multiple = false)]
struct Recipient {
    /// The address to send it to
    address: Option<String>,
    /// Send it to the address in the settings of this person
    #[arg(long, value_name = "ID")]
    user: Option<String>,
}

pub(crate) fn run(arguments: &MailArgs) -> Result<bool> {
    let MailCommand::Test(test) = &arguments.command;
    let client = authority::client(&test.connection)?;
    let address = match (&test.recipient.address, &test.recipient.user) {
        (Some(address), _) => address.clone(),
        (None, user) => address_of(&client, user.as_deref().unwrap_or_default())?,
    };
    let report = client.post("/v1/email/test", &json!({ "address": address }))?;
    match test.json {
        true => print_json(&report)?,
        false => print(&report, &address)?,
    };
    Ok(report["outcome"] == "accepted")
}

/// The address in a person's settings, with a warning if notifications would not be sent to it.
fn address_of(client: &Client, user: &str) -> Result<String> {
    let settings = client.get(&format!("/v1/users/{}/settings", segment(user)))?;
    let email = &settings["email"];
    let address = email["address"].as_str().with_context(|| {
        let user = printable(user);
        format!("{user} has no email address; set one: bellwire settings set --email ADDRESS --user {user}")
    })?;
    let waits = match (email["confirmed"] == true, email["enabled"] == true) {
        (true, true) => None,
        (false, _) => Some("is not confirmed"),
        (true, false) => Some("is switched off"),
    };
    if let Some(why) = waits {
        warn(&format!("{address} {why}, so no notifications are sent to it"));
    }
    Ok(address.to_owned())
}

fn print(report: &Value, address: &str) -> Result<bool> {
    let mut out = anstream::stdout().lock();
    for step in report["steps"].as_array().into_iter().flatten() {
        let result = text(step, "result").replace('_', " ");
        let style = match result.as_str() {
            "ok" => SAID,
            "failed" => WRONG,
            "unknown" => WAITS,
            _ => MUTED,
        };
        let line = format!("{}{:15}{}", paint(style, format!("{result:13}")), text(step, "step"), cell(step, "detail"));
        writeln!(out, "{}", line.trim_end())?;
    }
    let address = printable(address);
    match report["outcome"].as_str() {
        Some("accepted") => {
            anstream::eprintln!("the mail server accepted the email to {address}; look whether it arrived")
        }
        Some("unknown") => anstream::eprintln!("the email to {address} may have been sent; look whether it arrived"),
        _ => anstream::eprintln!("the email to {address} was not sent"),
    }
    Ok(true)
}

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use clap::Args;
use reqwest::Method;
use serde_json::Value;

use crate::authority;
use crate::client::{Client, Connection, HubRefused, segment, with_query};
use crate::output::{MUTED, STRONG, items, paint, printable};

/// Erase all data of a person, after a confirmation
///
/// Removes the person's conversations with their events and notifications, inbox, reminders, deliveries, settings and
/// tokens. Emails that were sent, log files and your backups are not reached. It cannot be undone. The command ends when
/// everything is gone; a large erasure takes a while and continues in the hub even if the command is interrupted.
#[derive(Args)]
#[command(after_help = "Example:\n  bellwire erase ada")]
pub(crate) struct EraseArgs {
    /// The id of the person
    #[arg(value_name = "USER")]
    user: String,
    /// Do not ask for a confirmation; required where standard input is not a terminal
    #[arg(long)]
    yes: bool,
    #[command(flatten)]
    connection: Connection,
}

const REMOVED: &str = "their conversations with all events and notifications, their inbox, reminders, deliveries, \
                       settings, and every token that is bound to them";
const KEPT: &str = "emails that were sent, log files (user ids, no texts), your backups, and notifications to other \
                    people that mention them";

const UNAUTHORIZED: u16 = 401;
const NOT_FOUND: u16 = 404;
const CONFLICT: u16 = 409;
const UNAVAILABLE: u16 = 503;
/// How long to wait before the hub is asked again, if it does not say.
const WAIT_DEFAULT: Duration = Duration::from_secs(1);
/// The longest wait that is taken from the hub's answer, so that progress is printed now and then.
const WAIT_MAX: Duration = Duration::from_secs(10);
/// How many entries of a list are counted.
const COUNT_MAX: &str = "100";

pub(crate) fn run(arguments: &EraseArgs) -> Result<bool> {
    let user = printable(&arguments.user);
    if !arguments.yes && !std::io::stdin().is_terminal() {
        bail!("erasing {user} cannot be undone, and there is no terminal to ask on; say --yes if you mean it");
    }
    let client = authority::client(&arguments.connection)?;
    match summary(&client, &arguments.user) {
        Ok(summary) => {
            anstream::eprintln!("{summary}");
            if !arguments.yes && !confirmed(&user)? {
                bail!("not confirmed; nothing was erased");
            }
        }
        Err(error) if status(&error) == Some(CONFLICT) => {
            anstream::eprintln!("the erasure of {user} has begun already");
        }
        Err(error) => return Err(error),
    }
    erase(&client, &arguments.user)?;
    anstream::eprintln!("{user} is erased");
    Ok(true)
}

/// What the hub has of the person, what is removed and what is kept. While the person is being erased, the hub answers 409.
fn summary(client: &Client, user: &str) -> Result<String> {
    let conversations = with_query("/v1/conversations", &[("user_id", Some(user)), ("limit", Some(COUNT_MAX))]);
    let inbox = format!("/v1/users/{}/notifications?limit={COUNT_MAX}", segment(user));
    let has = format!(
        "{} has {} and {} at {}",
        paint(STRONG, printable(user)),
        count(&client.get(&conversations)?, "conversation"),
        count(&client.get(&inbox)?, "notification"),
        client.url()
    );
    Ok(format!("{has}\n{} {REMOVED}\n{} {KEPT}", paint(MUTED, "removed:"), paint(MUTED, "kept:   ")))
}

fn count(list: &Value, noun: &str) -> String {
    match (items(list).len(), list["next_cursor"].is_string()) {
        (1, false) => format!("1 {noun}"),
        (number, false) => format!("{number} {noun}s"),
        (number, true) => format!("{number} or more {noun}s"),
    }
}

fn status(error: &anyhow::Error) -> Option<u16> {
    error.downcast_ref::<HubRefused>().map(|refused| refused.status)
}

/// Asks the operator to type the person's id, so that a mistaken Enter erases nothing.
fn confirmed(user: &str) -> Result<bool> {
    let mut prompt = anstream::stderr().lock();
    write!(prompt, "This cannot be undone. Type {} to erase them: ", paint(STRONG, user))?;
    prompt.flush()?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).context("cannot read the confirmation")?;
    Ok(answer.trim() == user)
}

/// Asks the hub to erase the person, again and again until nothing is left.
fn erase(client: &Client, user: &str) -> Result<()> {
    let path = format!("/v1/users/{}", segment(user));
    let mut has_begun = false;
    loop {
        let refused = match client.call(Method::DELETE, &path, None) {
            Ok(_) => return Ok(()),
            Err(error) => error,
        };
        match status(&refused) {
            Some(UNAVAILABLE) => {
                has_begun = true;
                anstream::eprintln!("{}", paint(MUTED, "the erasure is under way; waiting for its end"));
                let asked = refused.downcast_ref::<HubRefused>().and_then(|refused| refused.retry_after);
                std::thread::sleep(asked.unwrap_or(WAIT_DEFAULT).min(WAIT_MAX));
            }
            // It ended between two requests: the person, or the person's own token, no longer exists.
            Some(NOT_FOUND | UNAUTHORIZED) if has_begun => return Ok(()),
            Some(NOT_FOUND) => {
                bail!("{refused}; check the id: `bellwire conversations` lists people and conversations")
            }
            _ => return Err(refused),
        }
    }
}

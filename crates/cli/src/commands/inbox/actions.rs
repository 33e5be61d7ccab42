//! What a person does with a notification: read it, dismiss it, press one of its buttons.

use anyhow::{Context as _, Result, bail};
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::{InboxArgs, buttons};
use crate::authority;
use crate::client::{Client, HubRefused, segment, with_query};
use crate::commands::person;
use crate::output::{cell, items, print_json, printable, text};

/// How many pages of an inbox are searched for a notification whose button is named by its label.
const PAGES_MAX: usize = 100;

#[derive(Subcommand)]
pub(super) enum InboxAction {
    Read(ReadArgs),
    Dismiss(DismissArgs),
    Press(PressArgs),
}

/// Mark notifications as read
#[derive(Args)]
#[group(required = true, multiple = false)]
pub(super) struct ReadArgs {
    /// The ids of the notifications
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    /// Mark all notifications of the person as read
    #[arg(long)]
    all: bool,
}

/// Dismiss notifications: they are hidden, count as read, and are kept
///
/// Their buttons no longer work. `bellwire inbox --state dismissed` lists them.
#[derive(Args)]
pub(super) struct DismissArgs {
    /// The ids of the notifications
    #[arg(value_name = "ID", required = true)]
    ids: Vec<String>,
}

/// Press a button of a notification, as its person
///
/// What the button sends is shown by `bellwire inbox`. One button can be pressed; its agent reads it after its next tool
/// call. Prints the id of the event that it became.
#[derive(Args)]
pub(super) struct PressArgs {
    /// The id of the notification
    id: String,
    /// The button: its index, 0 for the first, or its label
    #[arg(value_name = "INDEX|LABEL")]
    button: String,
}

impl InboxAction {
    pub(super) fn run(&self, inbox: &InboxArgs) -> Result<bool> {
        let client = authority::client(&inbox.connection)?;
        let path = person::path(&client, inbox.user.as_deref(), "/notifications")?;
        let person = PersonInbox { client: &client, path, json: inbox.json };
        match self {
            Self::Read(read) if read.all => person.read_all(),
            Self::Read(read) => read.ids.iter().try_for_each(|id| person.read(id)),
            Self::Dismiss(dismiss) => dismiss.ids.iter().try_for_each(|id| person.dismiss(id)),
            Self::Press(press) => person.press(&press.id, &press.button),
        }
        .map_err(explain)?;
        Ok(true)
    }
}

const NOT_FOUND: u16 = 404;

fn explain(error: anyhow::Error) -> anyhow::Error {
    match error.downcast_ref::<HubRefused>().is_some_and(|refused| refused.status == NOT_FOUND) {
        true => anyhow::anyhow!("{error}; `bellwire inbox` lists the notifications and their buttons"),
        false => error,
    }
}

/// A person's inbox at the hub.
struct PersonInbox<'a> {
    client: &'a Client,
    path: String,
    json: bool,
}

impl PersonInbox<'_> {
    fn read(&self, id: &str) -> Result<()> {
        let item = self.client.call(Method::PATCH, &self.item(id), Some(&json!({ "read": true })))?;
        self.say(&item, format!("read {}", printable(id)))
    }

    fn read_all(&self) -> Result<()> {
        let marked = self.client.post(&format!("{}/read_all", self.path), &json!({}))?;
        self.say(&marked, format!("{} marked as read", marked["updated"].as_u64().unwrap_or(0)))
    }

    fn dismiss(&self, id: &str) -> Result<()> {
        let item = self.client.call(Method::DELETE, &self.item(id), None)?;
        self.say(&item, format!("dismissed {}", printable(id)))
    }

    fn press(&self, id: &str, button: &str) -> Result<()> {
        let index = match button.parse::<usize>() {
            Ok(index) => index,
            Err(_) => index_of(&self.find(id)?, button)?,
        };
        let pressed = self.client.post(&format!("{}/actions/{index}", self.item(id)), &json!({}))?;
        match pressed["event_id"].is_string() {
            true => {
                self.say(&pressed, "pressed; the agent reads it after its next tool call".to_owned())?;
                if !self.json {
                    anstream::println!("{}", text(&pressed, "event_id"));
                }
                Ok(())
            }
            false => self.say(&pressed, "pressed; the notification is dismissed".to_owned()),
        }
    }

    fn item(&self, id: &str) -> String {
        format!("{}/{}", self.path, segment(id))
    }

    /// Searches the inbox for a notification, the newest first: the hub lists them and has no call for a single one.
    fn find(&self, id: &str) -> Result<Value> {
        for state in ["all", "dismissed"] {
            let mut cursor = None::<String>;
            for _ in 0..PAGES_MAX {
                let query = [("state", Some(state)), ("limit", Some("100")), ("cursor", cursor.as_deref())];
                let page = self.client.get(&with_query(&self.path, &query))?;
                if let Some(item) = items(&page).iter().find(|item| item["id"].as_str() == Some(id)) {
                    return Ok(item.clone());
                }
                match page["next_cursor"].as_str() {
                    Some(next) => cursor = Some(next.to_owned()),
                    None => break,
                }
            }
        }
        bail!("there is no notification {} in this inbox; `bellwire inbox` lists them", printable(id))
    }

    fn say(&self, answer: &Value, words: String) -> Result<()> {
        if self.json {
            return print_json(answer).map(drop);
        }
        anstream::eprintln!("{words}");
        Ok(())
    }
}

/// The index of the button with this label; upper and lower case matter only if two labels differ in nothing else.
fn index_of(item: &Value, label: &str) -> Result<usize> {
    let labels: Vec<String> = buttons(item).iter().map(|button| cell(button, "label")).collect();
    let exact = labels.iter().position(|one| one == label);
    let similar = || labels.iter().position(|one| one.to_lowercase() == label.to_lowercase());
    exact.or_else(similar).with_context(|| {
        let offered: Vec<String> = labels.iter().enumerate().map(|(index, one)| format!("{index} \"{one}\"")).collect();
        let offered = if offered.is_empty() { "none".to_owned() } else { offered.join(", ") };
        format!("there is no button \"{}\"; its buttons: {offered}", printable(label))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_matched_exactly_before_its_case_is_ignored() {
        let item = json!({ "actions": [{ "label": "Go" }, { "label": "go" }, { "label": "Stop" }] });
        assert_eq!(index_of(&item, "go").ok(), Some(1));
        assert_eq!(index_of(&item, "stop").ok(), Some(2));
        let refused = index_of(&item, "Wait").expect_err("no such button").to_string();
        assert_eq!(refused, "there is no button \"Wait\"; its buttons: 0 \"Go\", 1 \"go\", 2 \"Stop\"");
        assert!(index_of(&json!({}), "Go").expect_err("no buttons").to_string().ends_with("its buttons: none"));
    }
}

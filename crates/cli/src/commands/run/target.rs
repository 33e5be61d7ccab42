//! Which conversations are told.

use std::path::{Path, PathBuf};

use anyhow::Result;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::client::{Client, Connection, with_query};
use crate::hosts::{Host, HostFile};

/// A conversation is open for so long after its last use.
const OPEN_FOR: SignedDuration = SignedDuration::from_hours(24);

/// No open conversation works in this folder or above it.
#[derive(Debug)]
pub(crate) struct NoAgentHere(PathBuf);

impl std::fmt::Display for NoAgentHere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "no agent works in {} or a folder above it; name a conversation with --conversation (bellwire conversations \
             lists them)",
            self.0.display()
        )
    }
}

impl std::error::Error for NoAgentHere {}

/// A hub, and the conversations that are told.
pub(crate) struct Targets {
    client: Client,
    /// Each with its owner, if known.
    conversations: Vec<(String, Option<String>)>,
}

impl Targets {
    /// The named conversation, else that of the harness in whose shell this runs, else those that work in this folder.
    pub(crate) fn find(conversation: Option<&str>, user: Option<&str>, connection: &Connection) -> Result<Self> {
        if let Some(id) = conversation {
            let conversations = vec![(id.to_owned(), user.map(str::to_owned))];
            return Ok(Self { client: Client::new(connection)?, conversations });
        }
        if let Some((host, session)) = Host::session_of_shell(|name| std::env::var(name).ok()) {
            let client = match HostFile::load(host) {
                Ok(file) if connection.explicit_token().is_none() => Client::open(file.url, Some(file.token))?,
                _ => Client::new(connection)?,
            };
            return Ok(Self { client, conversations: vec![(host.conversation(&session), None)] });
        }
        let client = Client::new(connection)?;
        let here = std::env::current_dir()?;
        let owner = owner(&client, user, connection)?;
        let conversations = in_folder(&open(&client, &owner)?, &here);
        if conversations.is_empty() {
            return Err(NoAgentHere(here).into());
        }
        Ok(Self { client, conversations })
    }

    /// Publishes the event for every conversation.
    pub(super) fn publish(&self, event: &Value) -> Result<()> {
        let addressed = |(id, owner): &(String, Option<String>)| {
            let mut event = event.clone();
            event["conversation_id"] = json!(id);
            if let Some(owner) = owner {
                event["user_id"] = json!(owner);
            }
            event
        };
        let events: Vec<Value> = self.conversations.iter().map(addressed).collect();
        self.client.post("/v1/events", &json!(events)).map(drop)
    }

    pub(crate) fn client(&self) -> &Client {
        &self.client
    }

    /// Each conversation with its owner, if known.
    pub(crate) fn conversations(&self) -> &[(String, Option<String>)] {
        &self.conversations
    }

    pub(super) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.client.block_on(future)
    }
}

/// The person whose agents are told. Others may work in a folder of the same name, and must not read this output.
fn owner(client: &Client, named: Option<&str>, connection: &Connection) -> Result<String> {
    if let Some(user) = named {
        return Ok(user.to_owned());
    }
    match client.get("/v1/token")?["user_id"].as_str() {
        Some(own) => Ok(own.to_owned()),
        None => Ok(connection.settings.load(Vec::new())?.config.default_user),
    }
}

/// The open conversations of a person, at most a hundred.
fn open(client: &Client, user: &str) -> Result<Vec<Value>> {
    let list = client.get(&open_path(user))?;
    Ok(list["items"].as_array().cloned().unwrap_or_default())
}

/// The list of a person's open conversations.
pub(crate) fn open_path(user: &str) -> String {
    let since = (Timestamp::now() - OPEN_FOR).to_string();
    let query = [("since", Some(since.as_str())), ("limit", Some("100")), ("user_id", Some(user))];
    with_query("/v1/conversations", &query)
}

/// The conversations whose folder is `here` or above it.
pub(crate) fn in_folder(conversations: &[Value], here: &Path) -> Vec<(String, Option<String>)> {
    let works_here = |one: &&Value| one["folder"].as_str().is_some_and(|folder| here.starts_with(folder));
    let key = |one: &Value| Some((one["id"].as_str()?.to_owned(), one["user_id"].as_str().map(str::to_owned)));
    conversations.iter().filter(works_here).filter_map(key).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn agents_of_this_folder_and_of_those_above_are_told() {
        let one = |id: &str, folder: Value| json!({ "id": id, "user_id": "me", "folder": folder });
        let all = [
            one("here", json!("/src/app")),
            one("above", json!("/src")),
            one("beside", json!("/src/ap")),
            one("below", json!("/src/app/web")),
            one("nowhere", Value::Null),
        ];
        let found: Vec<String> = in_folder(&all, Path::new("/src/app")).into_iter().map(|(id, _)| id).collect();
        assert_eq!(found, ["here", "above"]);
    }
}

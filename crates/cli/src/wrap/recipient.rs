//! Which agent gets the notifications, and from which hub.

use std::collections::HashMap;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, anyhow, bail};
use reqwest::Method;
use serde_json::Value;

use super::hub::Hub;
use crate::client::Connection;
use crate::commands::mcp::harness_session::{Conversation, of_call};
use crate::commands::run::target::{in_folder, open_path};
use crate::hook::processes;
use crate::hosts::{Host, HostFile};

/// After a search for the agent of this folder found none, it is repeated after so long.
const SEARCH_AGAIN: Duration = Duration::from_secs(10);

/// Where the user says to look.
pub(crate) struct Search {
    pub(crate) conversation: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) agent: String,
    pub(crate) host: Option<Host>,
    pub(crate) connection: Connection,
    pub(crate) timeout: Option<Duration>,
}

/// The agent whose notifications are added to results.
#[derive(Clone)]
pub(super) struct Recipient {
    pub(super) hub: Hub,
    pub(super) conversation: String,
    /// The owner, if the token does not say it.
    pub(super) user: Option<String>,
    pub(super) agent: String,
    /// The harness whose session this is: its hooks know what the model was told.
    pub(super) host: Option<Host>,
    /// Whether hooks of this session run. They report tool calls, and bring what waits for the start of a turn.
    pub(super) has_hooks: bool,
}

pub(super) struct Finder {
    search: Search,
    hubs: Mutex<HashMap<Option<&'static str>, Hub>>,
    /// The agent of this folder, once found, or when it was last searched for and why there was none.
    of_folder: Mutex<Option<Result<Recipient, (Instant, String)>>>,
}

impl Finder {
    pub(super) fn new(search: Search) -> Self {
        Self { search, hubs: Mutex::default(), of_folder: Mutex::default() }
    }

    /// How long a result may wait, before it is known for which hub.
    pub(super) fn timeout(&self) -> Duration {
        self.search.timeout.unwrap_or(Duration::from_millis(HostFile::TIMEOUT_MS))
    }

    /// The agent that called, by the options, by the harness's session, or by the folder. `client` is the name of the MCP
    /// client, `thread` the session that it names in each call.
    pub(super) async fn find(&self, client: Option<&str>, thread: Option<&str>) -> Result<Recipient> {
        if let Some(id) = &self.search.conversation {
            return self.recipient(self.search.host, id.clone(), self.search.user.clone());
        }
        let by_client = client.and_then(Host::of_mcp_client);
        match self.search.host.or(by_client).map(|host| (host, of_call(host, thread))) {
            Some((host, Conversation::One(id))) => return self.recipient(Some(host), id, None),
            Some((host, Conversation::Ambiguous)) => bail!(
                "{} has several sessions in one process, and it is not known which of them calls; name one with \
                 --conversation",
                host.title()
            ),
            Some((host, Conversation::Unknown)) if self.search.host.is_some() => {
                bail!("no session of {} is known; run bellwire install {}", host.title(), host.name())
            }
            _ => {}
        }
        if let Some((host, session)) = Host::session_of_shell(|name| std::env::var(name).ok()) {
            return self.recipient(Some(host), host.conversation(&session), None);
        }
        self.of_folder().await
    }

    /// The token may have been replaced: read it again.
    pub(super) fn forget_tokens(&self) {
        self.hubs.lock().unwrap_or_else(PoisonError::into_inner).clear();
        *self.of_folder.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }

    fn recipient(&self, host: Option<Host>, conversation: String, user: Option<String>) -> Result<Recipient> {
        let session = host.and_then(|host| conversation.strip_prefix(host.name())?.strip_prefix(':'));
        let has_hooks = host.zip(session).is_some_and(|(host, session)| processes::is_registered(host, session));
        Ok(Recipient {
            hub: self.hub(host)?,
            agent: self.search.agent.clone(),
            host: host.filter(|_| session.is_some()),
            has_hooks,
            conversation,
            user,
        })
    }

    /// The hub of the harness's file, unless a token is named; else the one that every command uses.
    fn hub(&self, host: Option<Host>) -> Result<Hub> {
        let mut hubs = self.hubs.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(hub) = hubs.get(&host.map(Host::name)) {
            return Ok(hub.clone());
        }
        let connection = &self.search.connection;
        let file = host.filter(|_| connection.explicit_token().is_none()).and_then(|host| HostFile::load(host).ok());
        let hub = match file {
            Some(file) => {
                let timeout = self.search.timeout.unwrap_or(Duration::from_millis(file.timeout_ms));
                Hub::new(connection.url.clone().unwrap_or(file.url), file.token, timeout)?
            }
            None => Hub::new(connection.url()?, connection.token()?, self.timeout())?,
        };
        hubs.insert(host.map(Host::name), hub.clone());
        Ok(hub)
    }

    /// The only open conversation whose folder is the current one or above it. Once found, it stays.
    async fn of_folder(&self) -> Result<Recipient> {
        match &*self.of_folder.lock().unwrap_or_else(PoisonError::into_inner) {
            Some(Ok(found)) => return Ok(found.clone()),
            Some(Err((at, why))) if at.elapsed() < SEARCH_AGAIN => return Err(anyhow!("{why}")),
            _ => {}
        }
        let found = self.search_folder().await;
        let noted = found.as_ref().map(Clone::clone).map_err(|error| (Instant::now(), format!("{error:#}")));
        *self.of_folder.lock().unwrap_or_else(PoisonError::into_inner) = Some(noted);
        found
    }

    async fn search_folder(&self) -> Result<Recipient> {
        let here = std::env::current_dir().context("there is no current folder")?;
        let hub = self.hub(None)?;
        let ask = async |path: String| hub.call(Method::GET, &path, None).await.map_err(|error| error.reason);
        // Others may work in a folder of the same name.
        let user = match &self.search.user {
            Some(user) => user.clone(),
            None => match ask("/v1/token".to_owned()).await?["user_id"].as_str() {
                Some(own) => own.to_owned(),
                None => self.search.connection.settings.load(Vec::new())?.config.default_user,
            },
        };
        let (id, user) = only_one(&ask(open_path(&user)).await?, &here)?;
        self.recipient(None, id, user)
    }
}

fn only_one(list: &Value, here: &Path) -> Result<(String, Option<String>)> {
    let all = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let mut found = in_folder(all, here);
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            bail!("no agent works in {} or a folder above it; name a conversation with --conversation", here.display())
        }
        count => bail!("{count} agents work in {} or above it; name one with --conversation", here.display()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn one_agent_of_the_folder_is_found_and_of_several_none_is_guessed() {
        let one = |id: &str| json!({ "id": id, "user_id": "me", "folder": "/src" });
        let found = |items: &[Value]| only_one(&json!({ "items": items }), Path::new("/src/app"));
        assert_eq!(found(&[one("a")]).expect("one"), ("a".to_owned(), Some("me".to_owned())));
        assert!(found(&[]).expect_err("none").to_string().contains("no agent works in /src/app"));
        assert!(found(&[one("a"), one("b")]).expect_err("two").to_string().contains("2 agents work in"));
    }
}

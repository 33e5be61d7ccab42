use std::path::PathBuf;

use anyhow::{Context as _, Result};
use bellwire_server::config::Secret;
use clap::Args;
use reqwest::Method;
use serde_json::json;

use crate::client::{Client, Connection, HubRefused, segment};
use crate::hosts::{Host, HostFile};
use crate::install::{self, Installation};
use crate::output::{MUTED, SAID, paint, printable};
use crate::{authority, settings};

/// Connect an agent harness to the hub: its hooks or plugin, and the agent's tools
///
/// Adds entries to the harness's configuration and keeps everything else in it; the former file stays beside it with the
/// ending .before-bellwire. Makes a token for the harness and writes it into hosts/HOST.toml in your configuration folder.
/// Running it again repairs what is missing. It starts no program.
#[derive(Args)]
pub(crate) struct InstallArgs {
    /// The harness
    host: Host,
    #[command(flatten)]
    place: PlaceArgs,
    /// The person for whom the agent works [default: `user.default` of the configuration]
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// Show a line in the harness whenever notifications are given to the agent, if it can
    #[arg(long)]
    visible: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Remove what `install` added to a harness
///
/// Removes only Bellwire's entries, whatever else has changed, and the harness's token.
#[derive(Args)]
pub(crate) struct UninstallArgs {
    /// The harness
    host: Host,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Args)]
struct PlaceArgs {
    /// Only for sessions in this folder, in files that git does not share [default: all of your sessions]
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".")]
    project: Option<PathBuf>,
    /// Print what would change, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// The program that the harness runs [default: this one]
    #[arg(long, value_name = "FILE", env = "BELLWIRE_INSTALL_BINARY")]
    binary: Option<PathBuf>,
}

impl PlaceArgs {
    fn installation(&self, host: Host, binary: String) -> Result<Installation> {
        let found = |folder: &PathBuf| {
            let folder = settings::absolute(folder)?;
            std::fs::canonicalize(&folder).with_context(|| format!("there is no folder {}", folder.display()))
        };
        Installation::new(host, self.project.as_ref().map(found).transpose()?, binary)
    }
}

pub(crate) fn run_install(arguments: &InstallArgs) -> Result<bool> {
    let InstallArgs { host, place, .. } = arguments;
    let installation = place.installation(*host, install::binary(place.binary.as_deref())?)?;
    let changes = installation.additions()?;
    if place.dry_run {
        anstream::print!("{}", printable_lines(&changes.difference()));
        let file = HostFile::path(*host)?;
        anstream::eprintln!("{}", paint(MUTED, format!("and a token in {}; nothing was changed", file.display())));
        return Ok(true);
    }
    // Before a file is changed: without a hub nothing is installed.
    let file = arguments.host_file()?;
    let path = install::write_host_file(*host, &file)?;
    for changed in changes.apply()? {
        anstream::eprintln!("changed  {}", printable(&changed.display().to_string()));
    }
    anstream::eprintln!("token    {}", printable(&path.display().to_string()));
    let state = if changes.is_empty() { "was connected already" } else { "is connected" };
    anstream::eprintln!("{}", paint(SAID, format!("{} {state} to {}", host.title(), file.url)));
    for step in next_steps(*host, place.project.is_some()) {
        anstream::eprintln!("{step}");
    }
    Ok(true)
}

pub(crate) fn run_uninstall(arguments: &UninstallArgs) -> Result<bool> {
    let UninstallArgs { host, place, connection } = arguments;
    let installation = place.installation(*host, "bellwire".to_owned())?;
    let changes = installation.removals()?;
    if place.dry_run {
        anstream::print!("{}", printable_lines(&changes.difference()));
        return Ok(true);
    }
    for changed in changes.apply()? {
        anstream::eprintln!("changed  {}", printable(&changed.display().to_string()));
    }
    let path = HostFile::path(*host)?;
    if place.project.is_none() && path.exists() {
        let token_id = HostFile::read(*host).ok().and_then(|file| file.token_id);
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        anstream::eprintln!("removed  {}", printable(&path.display().to_string()));
        let revoked = token_id.map(|id| revoke(connection, &id));
        if let Some(Err(error)) = revoked {
            let hint = "revoke it: bellwire token list, then bellwire token revoke ID";
            crate::output::warn(&format!("its token is still valid ({error:#}); {hint}"));
        }
    }
    anstream::eprintln!("{}", paint(SAID, format!("{} is no longer connected", host.title())));
    Ok(true)
}

fn revoke(connection: &Connection, id: &str) -> Result<()> {
    let path = format!("/v1/tokens/{}", segment(id));
    authority::client(connection)?.call(Method::DELETE, &path, None).map(drop)
}

impl InstallArgs {
    /// The hub and a token that works: the one from before, or a new one.
    fn host_file(&self) -> Result<HostFile> {
        let url = self.connection.url()?;
        let user = match &self.user {
            Some(user) => user.clone(),
            None => self.connection.settings.load(Vec::new())?.config.default_user,
        };
        let known = HostFile::read(self.host).ok().filter(|file| file.user == user);
        if let Some(known) = known
            && known.url == url
            && is_valid(&known)?
        {
            return Ok(HostFile { visible: self.visible, ..known });
        }
        let body = json!({
            "scope": "agent", "user_id": user, "origin": self.host.name(),
            "name": format!("install {}", self.host.name()),
        });
        let created = authority::client(&self.connection)?.post("/v1/tokens", &body);
        let created = created.context("the hub makes the harness's token; start it with bellwire start")?;
        let text = |key: &str| created[key].as_str().map(str::to_owned);
        Ok(HostFile {
            url,
            token: text("token").map(Secret::new).context("the hub sends no token")?,
            token_id: text("id"),
            user,
            timeout_ms: HostFile::TIMEOUT_MS,
            visible: self.visible,
        })
    }
}

/// Whether the hub knows the token. An error if there is no hub.
fn is_valid(file: &HostFile) -> Result<bool> {
    let client = Client::open(file.url.clone(), Some(file.token.clone()))?;
    match client.get("/v1/conversations?limit=1") {
        Ok(_) => Ok(true),
        Err(error) if error.is::<HubRefused>() => Ok(false),
        Err(error) => Err(error),
    }
}

/// What only the user can do.
fn next_steps(host: Host, is_project: bool) -> Vec<&'static str> {
    let mut steps = match host {
        Host::ClaudeCode => vec!["next     start a new session; running ones keep their hooks"],
        Host::Codex => vec!["next     start codex and run /hooks to trust the hooks: until then Codex skips them"],
        Host::Gemini => vec!["next     start a new session"],
        Host::OpenCode => vec!["next     start opencode again; it loads plugins when it starts"],
        Host::Cursor => vec!["next     restart Cursor; Settings > Hooks shows them"],
        Host::Copilot => vec!["next     start a new session"],
    };
    if is_project {
        steps.push("note     the files of the project are listed in .git/info/exclude");
    }
    steps
}

fn printable_lines(text: &str) -> String {
    text.lines().map(|line| printable(line).to_string() + "\n").collect()
}

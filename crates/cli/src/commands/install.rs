mod service;

use std::path::PathBuf;

use anyhow::{Context as _, Result, bail, ensure};
use bellwire_server::config::Secret;
use clap::Args;
use reqwest::Method;
use serde_json::json;

use crate::client::{Client, Connection, HubRefused, segment};
use crate::hosts::{Host, HostFile};
use crate::install::{self, Installation};
use crate::output::{MUTED, SAID, paint, printable, warn};
use crate::{authority, settings};

/// Connect an agent harness to the hub: its hooks or plugin, and the agent's tools
///
/// Adds entries to the harness's configuration and keeps everything else in it; the former file stays beside it with the
/// ending .before-bellwire. Makes a token for the harness and writes it into hosts/HOST.toml in your configuration folder.
/// Running it again repairs what is missing. It starts no program unless you say so: with `--service`, or on a terminal when it
/// asks because no hub runs.
#[derive(Args)]
#[command(arg_required_else_help = true)]
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
    /// Let notifications start a turn in idle sessions; see `bellwire wake`
    #[arg(long)]
    wake: bool,
    /// Let this command line start it, for a harness that has no way of its own; see `bellwire wake --command`
    #[arg(long, value_name = "CMD")]
    wake_command: Option<String>,
    /// Run the hub in the background, now and whenever you log in: a systemd user unit or a launchd agent, and one for
    /// `bellwire wake` if sessions may be woken
    #[arg(long)]
    service: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Remove what `install` added to a harness
///
/// Removes only Bellwire's entries, whatever else has changed, and the harness's token. With the last harness, it also removes
/// what `install --service` has set up.
#[derive(Args)]
#[command(arg_required_else_help = true)]
pub(crate) struct UninstallArgs {
    /// The harness
    host: Host,
    #[command(flatten)]
    place: PlaceArgs,
    /// Also end the hub in the background that `install --service` has set up, if other harnesses use it too
    #[arg(long)]
    service: bool,
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
    if arguments.wake && arguments.wake_command.is_none() && !host.can_be_woken() {
        bail!("{} has no way to be woken; say --wake-command", host.title());
    }
    let binary = install::binary(place.binary.as_deref())?;
    let installation = place.installation(*host, binary.clone())?;
    let changes = installation.additions()?;
    let runs_hub = service::is_wanted(arguments)?;
    if place.dry_run {
        anstream::print!("{}", printable_lines(&changes.difference()));
        if runs_hub {
            anstream::print!("{}", printable_lines(&service::difference(arguments, &binary)?));
        }
        let file = HostFile::path(*host)?;
        anstream::eprintln!("{}", paint(MUTED, format!("and a token in {}; nothing was changed", file.display())));
        return Ok(true);
    }
    if runs_hub {
        service::set_up(arguments, &binary)?;
    }
    let _lock = install::lock(*host)?;
    // Before a file is changed: without a hub nothing is installed.
    let former = HostFile::read(*host).ok();
    let file = arguments.host_file(former.as_ref())?;
    let path = install::write_host_file(*host, &file)?;
    // Once more: the hub has taken its time, and the harness may have written its files meanwhile.
    let changes = installation.additions()?;
    for changed in changes.apply()? {
        anstream::eprintln!("changed  {}", printable(&changed.display().to_string()));
    }
    anstream::eprintln!("token    {}", printable(&path.display().to_string()));
    let state = if changes.is_empty() { "was connected already" } else { "is connected" };
    anstream::eprintln!("{}", paint(SAID, format!("{} {state} to {}", host.title(), file.url)));
    anstream::eprintln!("next     {}", next_step(*host));
    if let Some(list) = installation.exclude_file()? {
        anstream::eprintln!(
            "note     the files of the project are listed in {}",
            printable(&list.display().to_string())
        );
    }
    if let Some(former) = former.filter(|former| former.token_id != file.token_id) {
        revoke(&arguments.connection, &former);
    }
    match (arguments.wakes(), runs_hub) {
        (true, true) => super::background::start_waker(&arguments.connection.data_dir()?)?,
        (true, false) => anstream::eprintln!("next     let bellwire wake run: it wakes the sessions"),
        (false, _) => {}
    }
    Ok(true)
}

pub(crate) fn run_uninstall(arguments: &UninstallArgs) -> Result<bool> {
    let UninstallArgs { host, place, connection, .. } = arguments;
    let installation = place.installation(*host, "bellwire".to_owned())?;
    // The token is used by the installations of projects too.
    let path = Some(HostFile::path(*host)?).filter(|path| place.project.is_none() && path.exists());
    if place.dry_run {
        anstream::print!("{}", printable_lines(&installation.removals()?.difference()));
        let file = path.map(|path| format!("and {} and its token; ", path.display())).unwrap_or_default();
        anstream::eprintln!("{}", paint(MUTED, format!("{file}nothing was changed")));
        return Ok(true);
    }
    let _lock = install::lock(*host)?;
    let changes = installation.removals()?;
    let state = if changes.is_empty() && path.is_none() { "was not connected" } else { "is no longer connected" };
    for changed in changes.apply()? {
        anstream::eprintln!("changed  {}", printable(&changed.display().to_string()));
    }
    if let Some(path) = path {
        let file = HostFile::read(*host);
        std::fs::remove_file(&path).with_context(|| format!("cannot remove {}", path.display()))?;
        anstream::eprintln!("removed  {}", printable(&path.display().to_string()));
        match file {
            Ok(file) => revoke(connection, &file),
            Err(error) => warn(&format!("its token may still be valid ({error:#}); bellwire token list shows it")),
        }
    }
    // After the token was revoked, for which the hub is needed.
    service::remove(&connection.settings, arguments.service)?;
    anstream::eprintln!("{}", paint(SAID, format!("{} {state}", host.title())));
    Ok(true)
}

/// Revokes the token of a host file that is no longer used, and says so if that fails.
fn revoke(connection: &Connection, file: &HostFile) {
    let id = file.token_id.as_deref().unwrap_or("ID");
    let revoked = file.token_id.as_deref().context("its id is not known").and_then(|id| {
        // The token of one hub must not be sent to another.
        ensure!(connection.url()? == file.url, "it is a token of the hub at {}", file.url);
        let path = format!("/v1/tokens/{}", segment(id));
        authority::client(connection)?.call(Method::DELETE, &path, None).map(drop)
    });
    match revoked {
        Err(error) if error.downcast_ref::<HubRefused>().is_some_and(|refused| refused.status == 404) => {}
        Err(error) => warn(&format!(
            "the former token is still valid ({error:#}); revoke it: bellwire token revoke {id} --url {}",
            file.url
        )),
        Ok(()) => {}
    }
}

impl InstallArgs {
    /// Whether `bellwire wake` has something to do for the harness. OpenCode's plugin needs none.
    fn wakes(&self) -> bool {
        self.wake_command.is_some() || (self.wake && self.host != Host::OpenCode)
    }

    /// The hub and a token that works: the one from before, or a new one.
    fn host_file(&self, former: Option<&HostFile>) -> Result<HostFile> {
        let url = self.connection.url()?;
        let user = match &self.user {
            Some(user) => user.clone(),
            None => self.connection.settings.load(Vec::new())?.config.default_user,
        };
        if let Some(known) = former.filter(|former| former.user == user && former.url == url)
            && is_valid(known)?
        {
            let wake_command = self.wake_command.clone();
            return Ok(HostFile { visible: self.visible, wake: self.wake, wake_command, ..known.clone() });
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
            timeout_ms: former.map_or(HostFile::TIMEOUT_MS, |former| former.timeout_ms),
            visible: self.visible,
            wake: self.wake,
            wake_command: self.wake_command.clone(),
        })
    }
}

/// Whether the hub knows the token. An error if there is no hub.
fn is_valid(file: &HostFile) -> Result<bool> {
    let client = Client::open(file.url.clone(), Some(file.token.clone()))?;
    match client.get("/v1/conversations?limit=1") {
        Ok(_) => Ok(true),
        Err(error) if error.downcast_ref::<HubRefused>().is_some_and(|it| matches!(it.status, 401 | 403)) => Ok(false),
        Err(error) => Err(error),
    }
}

/// What only the user can do.
const fn next_step(host: Host) -> &'static str {
    match host {
        Host::ClaudeCode => "start a new session; running ones keep their hooks",
        Host::Codex => "start codex and run /hooks to trust the hooks: until then Codex skips them",
        Host::Gemini | Host::Copilot => "start a new session",
        Host::OpenCode => "start opencode again; it loads plugins when it starts",
        Host::Cursor => "restart Cursor; Settings > Hooks shows them",
    }
}

fn printable_lines(text: &str) -> String {
    text.lines().map(|line| printable(line).to_string() + "\n").collect()
}

use std::io::IsTerminal as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, Result};
use bellwire_server::auth::{Scope, create_sign_in_code, hash, sign_in_path};
use bellwire_server::config::{LoadedConfig, SettingSource};
use bellwire_server::{App, create_token};
use bellwire_store::Store;
use clap::Args;
use tokio::net::TcpListener;

use crate::client::reachable;
use crate::data_dir;
use crate::install;
use crate::log::Log;
use crate::output::{STRONG, paint, warning_line};
use crate::settings::{Settings, absolute, flag};

/// Run the hub: one process, its data in one folder
///
/// Needs no configuration. The first start creates an admin token and stores it as admin.token in the data folder, where the
/// other commands find it; on a terminal it also prints it once. Ctrl-C stops the hub after it has finished the accepted
/// requests.
#[derive(Args)]
pub(crate) struct Serve {
    /// The address to listen on; by default 127.0.0.1:2355
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Only its port; 0 takes a free port and prints it
    #[arg(long, conflicts_with = "listen")]
    port: Option<u16>,
    #[arg(long, value_name = "URL", help = "The address at which others reach it, such as https://bell.example.org")]
    public_url: Option<String>,
    /// A host name that requests may have, besides loopback; may be given several times
    #[arg(long = "allowed-host", value_name = "NAME")]
    allowed_hosts: Vec<String>,
    /// A folder with your own subscribers; they are added to the bundled ones or replace them by id
    #[arg(long, value_name = "DIR")]
    subscribers: Option<PathBuf>,
    /// Write the log to this file instead of standard error, and move it aside when it is full
    #[arg(long, value_name = "FILE", hide = true)]
    log_file: Option<PathBuf>,
    #[command(flatten)]
    settings: Settings,
}

pub(crate) fn run(arguments: &Serve) -> Result<bool> {
    let loaded = arguments.load()?;
    let log = Log::start(&loaded.config.log, arguments.log_file.as_deref())?;
    loaded.warnings.iter().for_each(|warning| log.say(&warning_line(&warning.to_string())));
    bellwire_server::descriptors::raise_limit();
    tokio::runtime::Runtime::new().context("cannot start")?.block_on(serve(loaded, &log))
}

impl Serve {
    fn load(&self) -> Result<LoadedConfig> {
        let mut flags = Vec::new();
        flags.extend(self.listen.as_ref().map(|listen| flag("--listen", "server.listen", listen)));
        flags.extend(self.public_url.as_ref().map(|url| flag("--public-url", "server.public_url", url)));
        if !self.allowed_hosts.is_empty() {
            flags.push(flag("--allowed-host", "server.allowed_hosts", self.allowed_hosts.join(",")));
        }
        if let Some(dir) = &self.subscribers {
            flags.push(flag("--subscribers", "subscribers.dir", absolute(dir)?.display()));
        }
        let loaded = self.settings.load(flags.clone())?;
        let Some(port) = self.port else { return Ok(loaded) };
        let mut listen = loaded.config.listen;
        listen.set_port(port);
        flags.push(flag("--port", "server.listen", listen));
        self.settings.load(flags)
    }
}

async fn serve(loaded: LoadedConfig, log: &Log) -> Result<bool> {
    let dir = loaded.config.data_dir.clone().context("there is no data folder; say --data-dir")?;
    let listen = loaded.config.listen;
    let listener = TcpListener::bind(listen)
        .await
        .with_context(|| format!("cannot listen on {listen} (another port: --port, or server.listen of the configuration; 0 takes a free one)"))?;
    data_dir::create(&dir)?;
    if data_dir::close_admin_token(&dir)? {
        let path = data_dir::token_path(&dir);
        log.say(&warning_line(&format!("others could read {}; its mode is 600 now", path.display())));
    }
    let mut first = None;
    // The admin token is written before the hub answers: a hub that is ready has one.
    let keep_token = async |store: Arc<dyn Store>| {
        first = first_token(&*store, &dir, log).await?;
        Ok(())
    };
    let app = App::start_prepared(loaded.config.clone(), listener, stop_signal()?, keep_token).await?;
    data_dir::note_running(&dir, &reachable(app.address))?;
    let listens = paint(STRONG, format!("http://{}", app.address));
    log.say(&format!("Bellwire listens on {listens} and keeps its data in {}", dir.display()));
    if let Some((path, secret)) = first {
        log.say(&announce(&path, &secret, std::io::stderr().is_terminal()));
    }
    if std::io::stderr().is_terminal() {
        log.say(&sign_in_link(&loaded, &app).await?);
    }
    print_next_steps(&loaded, &dir, log);
    let stopped = app.stopped().await.context("the hub failed");
    data_dir::note_stopped(&dir);
    stopped?;
    log.say("Bellwire has stopped; everything it accepted is kept.");
    Ok(true)
}

/// Creates the admin token at the first start. Returns its path and secret; none if the data folder has a valid one.
pub(super) async fn first_token(store: &dyn Store, dir: &Path, log: &Log) -> Result<Option<(PathBuf, String)>> {
    match data_dir::admin_token(dir)? {
        Some(secret) if is_known(store, secret.reveal()).await? => return Ok(None),
        Some(_) => {
            let message = "the admin token in the data folder is not one of this database; a new one takes its place";
            log.say(&warning_line(message));
        }
        None => {}
    }
    let secret = create_token(store, Scope::Admin, "first start").await?;
    Ok(Some((data_dir::keep_admin_token(dir, &secret)?, secret)))
}

/// The message about the admin token. Only a terminal shows the secret: otherwise standard error is a log, which is stored and
/// read by others.
fn announce(path: &Path, secret: &str, is_terminal: bool) -> String {
    match is_terminal {
        true => format!("The admin token, shown once and kept in {}:\n\n    {secret}\n", path.display()),
        false => format!("The admin token is in {}", path.display()),
    }
}

/// The link with which the operator signs in. Like the admin token, it is printed only to a terminal.
async fn sign_in_link(loaded: &LoadedConfig, app: &App) -> Result<String> {
    let person = &loaded.config.default_user;
    let (code, _) = create_sign_in_code(&*app.store, Scope::Admin, person).await?;
    let url = loaded.config.public_url.clone().unwrap_or_else(|| reachable(app.address));
    let link = paint(STRONG, format!("{url}{}", sign_in_path(&code)));
    Ok(format!(
        "Open the console within ten minutes, signed in as {person} (later: bellwire token link {person} --admin):\n\n    {link}\n"
    ))
}

/// Prints commands to try in another terminal, complete with the data folder.
fn print_next_steps(loaded: &LoadedConfig, dir: &Path, log: &Log) {
    let program = program();
    let data = match loaded.origin("data.dir") {
        SettingSource::Flag(_) | SettingSource::Environment(_) => format!(" --data-dir '{}'", dir.display()),
        _ => String::new(),
    };
    // A program in a build folder is refused by `install`.
    let can_install = install::binary(None).is_ok();
    log.say("Try, in another terminal:");
    let install = ("install claude-code", "connect an agent that you run; install --help lists the others");
    let steps = [
        Some(("demo", "every kind of notification within a minute")),
        Some(install).filter(|_| can_install),
        Some(("token create --scope agent --user ada --origin butler", "a token for your own agent")),
        Some(("doctor", "is everything as it should be?")),
    ];
    for (command, what) in steps.into_iter().flatten() {
        log.say(&format!("    {}   # {what}", paint(STRONG, format!("{program} {command}{data}"))));
    }
}

/// How to call this program: by its name if the shell finds it in PATH, else by its path.
fn program() -> String {
    let Ok(own) = std::env::current_exe() else { return "bellwire".to_owned() };
    let folders = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&folders).any(|folder| folder.join("bellwire") == own) {
        return "bellwire".to_owned();
    }
    let here = std::env::current_dir().unwrap_or_default();
    // Without `./` the shell would search PATH for the name.
    let shorter = own.strip_prefix(here).map(|rest| Path::new(".").join(rest));
    shorter.unwrap_or(own).display().to_string()
}

/// Whether the database knows the token and it is not revoked. A replaced database has other tokens.
async fn is_known(store: &dyn Store, secret: &str) -> Result<bool> {
    let token = store.token_by_secret(hash(secret)).await?;
    Ok(token.is_some_and(|token| token.revoked_at.is_none()))
}

/// Completes on SIGINT or SIGTERM. Both are caught from this call on, before the hub announces that it runs.
#[cfg(unix)]
fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot catch Ctrl-C")?;
    let mut terminate = signal(SignalKind::terminate()).context("cannot catch a polite kill")?;
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn stop_signal() -> Result<impl Future<Output = ()> + Send + 'static> {
    Ok(async { drop(tokio::signal::ctrl_c().await) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_terminal_shows_the_admin_token() {
        let path = Path::new("data/admin.token");
        assert!(announce(path, "bw_secret", true).contains("bw_secret"));
        assert_eq!(announce(path, "bw_secret", false), "The admin token is in data/admin.token");
    }
}

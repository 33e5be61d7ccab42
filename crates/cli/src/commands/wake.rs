mod follow;
mod plugin;
mod program;
mod way;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Result, bail};
use bellwire_server::config::Secret;
use clap::Args;
use tokio::task::AbortHandle;

use crate::client::Client;
use crate::hook::wakeable::{self, Wakeable};
use crate::hosts::{Host, HostFile};
use follow::Follower;
use way::Way;

/// Start a turn in idle sessions when something arrives that should wake them
///
/// Without a name, for the harnesses that were installed with `--wake` or `--wake-command`. Claude Code is woken by the socket
/// that it offers to other programs, Codex by `codex queue`; OpenCode wakes itself, by its plugin. The session is only told how
/// many notifications wait; the hook brings their text. The hub wakes a session at most six times an hour. Runs until Ctrl-C.
#[derive(Args)]
pub(crate) struct WakeArgs {
    /// The harnesses whose sessions are woken
    hosts: Vec<Host>,
    /// Run this command line instead, by a shell, in the folder of the session
    ///
    /// It finds the session in the variables BELLWIRE_WAKE_HOST, BELLWIRE_WAKE_SESSION, BELLWIRE_WAKE_CONVERSATION,
    /// BELLWIRE_WAKE_FOLDER, BELLWIRE_WAKE_COUNT and BELLWIRE_WAKE_MESSAGE, and is ended after 60 seconds.
    #[arg(long, value_name = "CMD", requires = "hosts")]
    command: Option<String>,
    /// Follow the sessions that OpenCode's plugin writes on standard input, and tell it on standard output
    #[arg(long, hide = true, exclusive = true)]
    plugin: bool,
}

/// How often new sessions are looked for, and how long to wait before a lost stream is opened again.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// The hub of a harness, and how its sessions are woken.
#[derive(Clone, PartialEq)]
struct Source {
    host: Host,
    url: String,
    token: String,
    way: Way,
}

pub(crate) fn run(arguments: &WakeArgs) -> Result<bool> {
    if arguments.plugin {
        return plugin::run();
    }
    let named = arguments.hosts.iter().map(|host| Source::named(*host, arguments.command.as_deref()));
    let named = named.collect::<Result<Vec<Source>>>()?;
    let sources = || if named.is_empty() { Source::allowed() } else { named.clone() };
    let titles: Vec<&str> = sources().iter().map(|source| source.host.title()).collect();
    match titles.is_empty() {
        true => anstream::eprintln!("no harness may be woken yet; bellwire install HOST --wake allows it"),
        false => anstream::eprintln!("waking sessions of {}; Ctrl-C ends it", titles.join(", ")),
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(follow_all(sources));
    Ok(true)
}

/// Whether `bellwire wake` has sessions to look for.
pub(crate) fn is_allowed() -> bool {
    !Source::allowed().is_empty()
}

impl Source {
    fn new(host: Host, file: HostFile, way: Way) -> Self {
        Self { host, url: file.url, token: file.token.reveal().to_owned(), way }
    }

    /// A harness that the user named.
    fn named(host: Host, command: Option<&str>) -> Result<Self> {
        let file = HostFile::load(host)?;
        match Way::of(host, command.or(file.wake_command.as_deref())) {
            Some(way) => Ok(Self::new(host, file, way)),
            None if host == Host::OpenCode => {
                bail!("OpenCode is woken by its plugin: bellwire install opencode --wake; or say --command")
            }
            None => bail!("{} has no way to be woken; say --command", host.title()),
        }
    }

    /// The harnesses of which the user said at the installation that they may be woken.
    fn allowed() -> Vec<Self> {
        let source = |host| {
            let file = HostFile::load(host).ok().filter(|file| file.wake || file.wake_command.is_some())?;
            let way = Way::of(host, file.wake_command.as_deref())?;
            Some(Self::new(host, file, way))
        };
        Host::ALL.into_iter().filter_map(source).collect()
    }
}

/// Follows every session that can be woken, as long as it is there.
async fn follow_all(sources: impl Fn() -> Vec<Source>) {
    let mut clients: Vec<(Source, Arc<Client>)> = Vec::new();
    let mut followed: HashMap<String, (Wakeable, Source, AbortHandle)> = HashMap::new();
    loop {
        let (sources, open) = (sources(), wakeable::all_open());
        let wanted = open.into_iter().filter_map(|session| {
            let source = sources.iter().find(|source| source.host == session.host)?;
            source.way.fits(&session).then(|| (session.conversation(), (session, source.clone())))
        });
        let wanted: HashMap<String, (Wakeable, Source)> = wanted.collect();
        followed.retain(|conversation, (session, source, task)| {
            let stays = wanted.get(conversation).is_some_and(|(wanted, of)| wanted == session && of == source);
            if !stays {
                task.abort();
            }
            stays
        });
        for (conversation, (session, source)) in wanted {
            if followed.contains_key(&conversation) {
                continue;
            }
            let Some(client) = client_of(&source, &mut clients) else { continue };
            let Some(follower) = Follower::new(client, session.clone(), source.way.clone()) else { continue };
            let task = tokio::spawn(follower.run()).abort_handle();
            followed.insert(conversation, (session, source, task));
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// The client of a source. Clients are kept: a runtime, which each has, must not be dropped in another one.
fn client_of(source: &Source, clients: &mut Vec<(Source, Arc<Client>)>) -> Option<Arc<Client>> {
    if let Some((_, client)) = clients.iter().find(|(known, _)| known == source) {
        return Some(client.clone());
    }
    let client = Arc::new(Client::open(source.url.clone(), Some(Secret::new(source.token.as_str()))).ok()?);
    clients.push((source.clone(), client.clone()));
    Some(client)
}

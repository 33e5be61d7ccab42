mod changes;
mod ignored;
mod news;
mod own_edits;
mod tree;

use std::io::Write as _;
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use clap::Args;

use super::run::target::{NoAgentHere, Targets};
use crate::client::{Connection, HubRefused};
use crate::output::{MUTED, paint, warn};
use changes::{ChangeReport, Changes, Happening};
use news::Audience;
use tree::WatchedTree;

/// Tell the agents that work in this folder which files others change
///
/// Runs until Ctrl-C. Publishes source.file.changed when it has been quiet for a moment: one event per file, or one sum for
/// more than 20. Leaves out what git ignores, and what an agent's own edit tools changed within 5 seconds, as far as its hooks
/// report them.
#[derive(Args)]
#[command(after_help = "Examples:\n  bellwire watch\n  bellwire watch src Cargo.toml --conversation chat")]
pub(crate) struct WatchArgs {
    /// The folders and files to watch [default: the current folder]
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// The conversation to tell [default: the session in whose shell this runs, else the open conversations whose folder
    /// contains the current one]
    #[arg(long, short, value_name = "ID")]
    conversation: Option<String>,
    /// The id of the conversation's owner, if several people use the same conversation id
    #[arg(long, value_name = "ID")]
    user: Option<String>,
    /// How long it must be quiet before changes are told, in milliseconds
    #[arg(long, value_name = "MS", default_value = "2000", value_parser = clap::value_parser!(u64).range(100..=60_000))]
    quiet: u64,
    #[command(flatten)]
    connection: Connection,
}

/// What the loop waits for.
enum Message {
    Event(notify::Result<notify::Event>),
    Stop,
}

/// How many events wait for the loop. Beyond it the system's own queue fills up, and then says that it dropped some.
const QUEUE_MAX: usize = 1024;
/// How long the loop may take to end.
const STOP_PATIENCE: Duration = Duration::from_secs(1);
/// How often the loop looks whether what it watches still exists.
const CHECK_EVERY: Duration = Duration::from_secs(1);

pub(crate) fn run(arguments: &WatchArgs) -> Result<bool> {
    let mut audience = Audience::find(arguments)?;
    let (sender, receiver) = sync_channel(QUEUE_MAX);
    let events = sender.clone();
    // The loop may have ended.
    let watcher = notify::recommended_watcher(move |event| drop(events.send(Message::Event(event))));
    let paths = if arguments.paths.is_empty() { vec![PathBuf::from(".")] } else { arguments.paths.clone() };
    let tree = WatchedTree::open(&paths, watcher)?;
    stop_on_signal(sender)?;
    let said = format!("watching {} for {}; Ctrl-C ends it", tree.describe(), audience.describe());
    anstream::eprintln!("{}", paint(MUTED, said));
    Loop { tree, changes: Changes::default(), quiet: Duration::from_millis(arguments.quiet), is_away: false }
        .run(&receiver, &mut audience)
}

impl WatchArgs {
    fn targets(&self) -> Result<Targets> {
        Targets::find(self.conversation.as_deref(), self.user.as_deref(), &self.connection)
    }
}

struct Loop {
    tree: WatchedTree,
    changes: Changes,
    quiet: Duration,
    /// Whether the last report could not be published.
    is_away: bool,
}

impl Loop {
    fn run(mut self, receiver: &Receiver<Message>, audience: &mut Audience<'_>) -> Result<bool> {
        loop {
            let due = self.changes.due_in(self.quiet, Instant::now());
            match receiver.recv_timeout(due.unwrap_or(CHECK_EVERY).min(CHECK_EVERY)) {
                Ok(Message::Event(event)) => self.tree.apply(event, &mut self.changes)?,
                Ok(Message::Stop) => return Ok(true),
                Err(RecvTimeoutError::Timeout) => self.tree.check_roots()?,
                Err(RecvTimeoutError::Disconnected) => anyhow::bail!("the system's watcher has ended"),
            }
            if self.changes.due_in(self.quiet, Instant::now()) == Some(Duration::ZERO) {
                self.report(audience)?;
            }
        }
    }

    fn report(&mut self, audience: &mut Audience<'_>) -> Result<()> {
        let report = self.changes.take(tree::state);
        if report.files.is_empty() && !report.has_gaps {
            return Ok(());
        }
        match audience.tell(&report) {
            Ok(lines) => {
                self.is_away = false;
                let mut out = std::io::stdout().lock();
                lines.iter().try_for_each(|line| writeln!(out, "{line}"))?;
                out.flush()?;
            }
            Err(error) if is_final(&error) => {
                warn(&format!("{} changes were not told: {error:#}", report.files.len()));
            }
            Err(error) => {
                if !std::mem::replace(&mut self.is_away, true) {
                    warn(&format!("changes wait until they can be told: {error:#}"));
                }
                self.keep(report);
            }
        }
        Ok(())
    }

    /// Notes the changes again, for the next report.
    fn keep(&mut self, report: ChangeReport) {
        for file in report.files {
            self.changes.note(&file.path, Happening::Touched, (Instant::now(), file.at));
        }
        if report.has_gaps {
            self.changes.note_gap(Instant::now());
        }
    }
}

/// Ctrl-C, or a polite kill, ends the loop.
fn stop_on_signal(sender: SyncSender<Message>) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().context("cannot start")?;
    let signal = {
        let _entered = runtime.enter();
        stop_signal()?
    };
    std::thread::spawn(move || {
        runtime.block_on(signal);
        let _ = sender.try_send(Message::Stop);
        // The loop may wait for a hub that does not answer.
        std::thread::sleep(STOP_PATIENCE);
        std::process::exit(crate::EXIT_SUCCESS.into());
    });
    Ok(())
}

#[cfg(unix)]
fn stop_signal() -> Result<impl Future<Output = ()> + Send> {
    use tokio::signal::unix::{SignalKind, signal};
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    Ok(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    })
}

#[cfg(not(unix))]
fn stop_signal() -> Result<impl Future<Output = ()> + Send> {
    Ok(async { drop(tokio::signal::ctrl_c().await) })
}

/// Whether telling the same later would fail as well. A session that begins later need not hear of what was before.
fn is_final(error: &anyhow::Error) -> bool {
    let is_refused = |refused: &HubRefused| refused.status < 500 && refused.status != 429;
    error.is::<NoAgentHere>() || error.downcast_ref::<HubRefused>().is_some_and(is_refused)
}

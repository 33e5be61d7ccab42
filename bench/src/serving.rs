//! Servers in child processes, so that their memory and CPU time can be measured separately.
//!
//! The benchmark starts its own executable with a role. The child prints its address and token to standard output and
//! exits when its standard input closes, so it cannot outlive the benchmark.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use bellwire_server::auth::Scope;
use bellwire_server::config::{self, ConfigSources};
use bellwire_server::{App, Config, create_token};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

const HUB: &str = "--serve-hub";
const EMPTY: &str = "--serve-empty";

/// What a child process serves.
pub(crate) enum Role {
    /// The hub with this data folder and these environment variables, otherwise default, without the limits of a token.
    Hub(PathBuf, Vec<(String, String)>),
    /// An HTTP server of the same stack with an empty handler.
    Empty,
}

/// The role from the command line; `None` in the parent process.
pub(crate) fn role() -> Option<Role> {
    let mut arguments = std::env::args().skip(1);
    match arguments.next()?.as_str() {
        HUB => arguments.next().map(|folder| {
            let variables = arguments
                .filter_map(|one| Some(one.split_once('=')?).map(|(name, value)| (name.to_owned(), value.to_owned())));
            Role::Hub(folder.into(), variables.collect())
        }),
        EMPTY => Some(Role::Empty),
        _ => None,
    }
}

impl Role {
    pub(crate) fn run(self) -> ExitCode {
        let runtime = tokio::runtime::Runtime::new().expect("the system gives threads");
        runtime.block_on(async {
            let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
            match self {
                Self::Hub(folder, variables) => hub(listener, folder, variables).await,
                Self::Empty => empty(listener).await,
            }
        });
        ExitCode::SUCCESS
    }
}

async fn hub(listener: TcpListener, folder: PathBuf, environment: Vec<(String, String)>) {
    let settings =
        config::load(&ConfigSources { environment, ..ConfigSources::default() }).expect("the variables are right");
    let mut config = Config { data_dir: Some(folder), ..settings.config };
    config.limits.publish_per_second = 0;
    (config.limits.concurrent_per_token, config.limits.streams_per_token) = (0, 0);
    (config.limits.mcp_sessions_per_token, config.limits.injections_per_second) = (0, 0);
    config.limits.bytes_per_day = 0;
    let app = App::start(config, listener, stdin_closed()).await.expect("the hub starts in an empty folder");
    let token = create_token(&*app.store, Scope::Admin, "bench").await.expect("a token is made");
    println!("{} {token}", app.address);
    app.stopped().await.expect("the hub stops in order");
}

/// Reads the body and responds with the status of a publish.
async fn empty(listener: TcpListener) {
    let address = listener.local_addr().expect("a bound socket has an address");
    let router = Router::new().route("/v1/events", post(|_: Bytes| async { (StatusCode::ACCEPTED, "{}") }));
    println!("{address} none");
    axum::serve(listener, router).with_graceful_shutdown(stdin_closed()).await.expect("the listener listens");
}

async fn stdin_closed() {
    let (ended, end) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    let _ = end.await;
}

/// A running child process.
pub(crate) struct ChildServer {
    pub(crate) address: SocketAddr,
    /// The hub's admin token; the empty server ignores it.
    pub(crate) token: String,
    child: Child,
    /// The data folder, deleted with this value.
    folder: TempDir,
}

impl ChildServer {
    pub(crate) fn hub() -> Self {
        Self::hub_with(&[])
    }

    /// A hub with these environment variables.
    pub(crate) fn hub_with(variables: &[(&str, &str)]) -> Self {
        Self::hub_in(folder(), variables)
    }

    /// A hub with this data folder.
    pub(crate) fn hub_in(folder: TempDir, variables: &[(&str, &str)]) -> Self {
        Self::start(HUB, folder, variables)
    }

    pub(crate) fn empty() -> Self {
        Self::start(EMPTY, folder(), &[])
    }

    /// Stops the hub gracefully and returns its data folder.
    pub(crate) fn stop(mut self) -> TempDir {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        std::mem::replace(&mut self.folder, folder())
    }

    fn start(role: &str, folder: TempDir, variables: &[(&str, &str)]) -> Self {
        let program = std::env::current_exe().expect("a running program has a path");
        let mut child = Command::new(&program)
            .arg(role)
            .arg(folder.path())
            .args(variables.iter().map(|(name, value)| format!("{name}={value}")))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("the program starts again");
        let output = child.stdout.take().expect("its output is piped");
        let mut line = String::new();
        BufReader::new(output).read_line(&mut line).expect("the child says where it listens");
        let (address, token) = line.trim().split_once(' ').expect("an address and a token");
        let address = address.parse().expect("an address");
        Self { address, token: token.to_owned(), child, folder }
    }

    pub(crate) fn database(&self) -> PathBuf {
        self.folder.path().join("bellwire.db")
    }

    /// The number of commits, from the change counter in SQLite's WAL index header.
    pub(crate) fn commits(&self) -> u32 {
        let index = std::fs::read(self.database().with_extension("db-shm")).expect("an open database has a WAL index");
        u32::from_ne_bytes(index[8..12].try_into().expect("four bytes"))
    }

    /// Resident memory of the child in bytes; 0 where the system has no `/proc`.
    pub(crate) fn memory(&self) -> u64 {
        let status = Path::new("/proc").join(self.child.id().to_string()).join("status");
        let status = std::fs::read_to_string(status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
    }
}

/// A temporary folder next to the executable, because the system's one may be in memory.
pub(crate) fn folder() -> TempDir {
    let program = std::env::current_exe().expect("a running program has a path");
    tempfile::tempdir_in(program.parent().expect("it lies in a folder")).expect("a folder is made")
}

impl Drop for ChildServer {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

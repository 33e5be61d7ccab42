//! Servers in processes of their own, so that their memory and their processor time are theirs alone.
//!
//! The benchmark starts itself again in another role. Such a child says on its output where it listens and which token
//! it takes, and ends when its input does: it cannot outlive the benchmark.

use std::io::{BufRead as _, BufReader, Read as _};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitCode, Stdio};

use axum::Router;
use axum::body::Bytes;
use axum::http::StatusCode;
use axum::routing::post;
use bellwire_server::auth::Scope;
use bellwire_server::config::{self, Sources};
use bellwire_server::{App, Config, create_token};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

const HUB: &str = "--serve-hub";
const EMPTY: &str = "--serve-empty";

/// What a child process does instead of measuring.
pub(crate) enum Role {
    /// The hub with its data in this folder, as it is shipped but without a limit on publishing, and with these variables.
    Hub(PathBuf, Vec<(String, String)>),
    /// The same stack around a handler that does nothing.
    Empty,
}

/// The role this process was started in, if it is a child.
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
    pub(crate) fn play(self) -> ExitCode {
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
    let settings = config::load(&Sources { environment, ..Sources::default() }).expect("the variables are right");
    let mut config = Config { data_dir: Some(folder), ..settings.config };
    config.limits.publish_per_second = 0;
    let app = App::start(config, listener, input_ended()).await.expect("the hub starts in an empty folder");
    let token = create_token(&*app.store, Scope::Admin, "bench").await.expect("a token is made");
    println!("{} {token}", app.address);
    app.stopped().await.expect("the hub stops in order");
}

/// The least that can be done with a publish: take the body, answer with the same status.
async fn empty(listener: TcpListener) {
    let address = listener.local_addr().expect("a bound socket has an address");
    let router = Router::new().route("/v1/events", post(|_: Bytes| async { (StatusCode::ACCEPTED, "{}") }));
    println!("{address} none");
    axum::serve(listener, router).with_graceful_shutdown(input_ended()).await.expect("the listener listens");
}

async fn input_ended() {
    let (ended, end) = oneshot::channel();
    std::thread::spawn(move || {
        let _ = std::io::stdin().read_to_end(&mut Vec::new());
        let _ = ended.send(());
    });
    let _ = end.await;
}

/// A child process that serves.
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    /// An admin's token, where it takes one.
    pub(crate) token: String,
    child: Child,
    /// Where it keeps its data; goes with it.
    folder: TempDir,
}

impl Server {
    pub(crate) fn hub() -> Self {
        Self::hub_with(&[])
    }

    /// A hub with these variables.
    pub(crate) fn hub_with(variables: &[(&str, &str)]) -> Self {
        Self::hub_in(folder(), variables)
    }

    /// A hub with its data in this folder.
    pub(crate) fn hub_in(folder: TempDir, variables: &[(&str, &str)]) -> Self {
        Self::start(HUB, folder, variables)
    }

    pub(crate) fn empty() -> Self {
        Self::start(EMPTY, folder(), &[])
    }

    /// Stops it in order and gives its data back.
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

    /// How often the hub has committed: SQLite counts in the header of its WAL index.
    pub(crate) fn commits(&self) -> u32 {
        let index = std::fs::read(self.database().with_extension("db-shm")).expect("an open database has a WAL index");
        u32::from_ne_bytes(index[8..12].try_into().expect("four bytes"))
    }

    /// Bytes of memory the process holds, where the system tells.
    pub(crate) fn memory(&self) -> u64 {
        let status = Path::new("/proc").join(self.child.id().to_string()).join("status");
        let status = std::fs::read_to_string(status).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap_or_default();
        line.split_whitespace().next().and_then(|kib| kib.parse::<u64>().ok()).unwrap_or(0) * 1024
    }
}

/// A folder beside the program, because the one for temporary files may be no disk at all.
pub(crate) fn folder() -> TempDir {
    let program = std::env::current_exe().expect("a running program has a path");
    tempfile::tempdir_in(program.parent().expect("it lies in a folder")).expect("a folder is made")
}

impl Drop for Server {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

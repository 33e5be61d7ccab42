//! `/readyz` says whether the first user of a hub would succeed.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions as _, Connection as _};

use crate::hub::Hub;
use crate::program::{command, text};

/// The status of an answer; none where nothing answers.
fn status(address: SocketAddr, path: &str) -> Option<u16> {
    let mut stream = TcpStream::connect(address).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(20))).ok()?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n").ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    answer.split(' ').nth(1)?.parse().ok()
}

/// Ends the process with the test.
struct Ending(Child);

impl Drop for Ending {
    fn drop(&mut self) {
        // Already gone is fine.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
fn a_hub_that_is_ready_has_its_admin_token() {
    for _ in 0..3 {
        let home = tempfile::tempdir().expect("a folder");
        let free = TcpListener::bind("127.0.0.1:0").and_then(|free| free.local_addr()).expect("a free port");
        let mut serve = command(home.path());
        serve.args(["serve", "--listen", &free.to_string()]).stdin(Stdio::null()).stderr(Stdio::null());
        let _hub = Ending(serve.spawn().expect("the hub starts"));
        let started = Instant::now();
        // As soon as it can be: a pause here would hide a hub that is ready too early.
        while status(free, "/readyz") != Some(200) {
            assert!(started.elapsed() < Duration::from_secs(60), "it does not get ready");
        }
        let token = home.path().join(".local/share/bellwire/admin.token");
        assert!(token.exists(), "it was ready before it had an admin token");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_fails_every_publish_is_not_ready() {
    let hub = Hub::start();
    let address = hub.url.trim_start_matches("http://").parse().expect("an address");
    let publish = || hub.run(&["emit", "task.background.complete", "--user", "ada", "--source", "ci"]);
    let first = publish();
    assert!(first.status.success(), "{}", text(&first.stderr));
    assert_eq!(status(address, "/readyz"), Some(200));
    let file = hub.home.path().join(".local/share/bellwire/bellwire.db");
    let mut database = SqliteConnectOptions::new().filename(file).connect().await.expect("it opens");
    sqlx::query("ALTER TABLE events RENAME TO gone").execute(&mut database).await.expect("it is renamed");
    assert!(!publish().status.success());
    // What a probe found holds for a second; later ones must not forget what a commit has shown.
    std::thread::sleep(Duration::from_millis(1200));
    assert_eq!(status(address, "/readyz"), Some(503));
    sqlx::query("ALTER TABLE gone RENAME TO events").execute(&mut database).await.expect("it is renamed");
    database.close().await.expect("it closes");
    assert!(publish().status.success());
    assert_eq!(status(address, "/readyz"), Some(200));
}

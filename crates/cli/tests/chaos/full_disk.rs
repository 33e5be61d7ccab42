//! A full disk: publishes get 507, nothing accepted is lost, and the hub goes on when there is space again.

use std::fs::File;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use serde_json::{Value, json};

use crate::client::{Call, Client, json as parse};
use crate::database::Database;
use crate::hub::{Hub, arguments};

/// The number of events after which a disk that is not full fails the test.
const TRIES_MAX: u32 = 2_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_disk_refuses_and_goes_on_when_there_is_room_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(isolation) = isolation(folder.path()) else {
        println!("SKIPPED: neither root nor `unshare -rm` may mount a file system here");
        return;
    };
    let mount = r#"mount -t tmpfs -o size=8m bellwire "$1" && shift && exec "$@""#;
    let mut command = Command::new("unshare");
    command.args([isolation, "sh", "-c", mount, "sh"]).arg(folder.path());
    command.arg(env!("CARGO_BIN_EXE_bellwire")).args(arguments(folder.path()));
    let hub = Hub::start_with(command);
    // The mount exists only in the hub's namespace; the test reaches it through /proc.
    let inside = PathBuf::from(format!("/proc/{}/root{}", hub.pid(), folder.path().display()));
    let ballast = inside.join("ballast");
    DiskFailure { hub: &hub, inside: &inside }
        .check(|| fill(&ballast), || std::fs::remove_file(&ballast).expect("the ballast can be removed"))
        .await;
}

/// The same without a mount: a file size limit, like a quota.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_file_that_may_not_grow_refuses_and_goes_on_when_it_may() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut command = Command::new("sh");
    command.args(["-c", r#"trap "" XFSZ; exec "$@""#, "sh"]).arg(env!("CARGO_BIN_EXE_bellwire"));
    command.args(arguments(folder.path()));
    let hub = Hub::start_with(command);
    let limit = |bytes: &str| {
        let pid = hub.pid().to_string();
        let limited = Command::new("prlimit").args(["--pid", &pid, &format!("--fsize={bytes}:")]).status();
        assert!(limited.expect("util-linux is installed").success(), "the limit cannot be set");
    };
    DiskFailure { hub: &hub, inside: folder.path() }.check(|| limit("300000"), || limit("unlimited")).await;
}

/// The flags with which `unshare` lets this user mount a file system; `None` if it does not.
pub(crate) fn isolation(folder: &Path) -> Option<&'static str> {
    let may = |flags: &&str| {
        let mut command = Command::new("unshare");
        command.args([*flags, "mount", "-t", "tmpfs", "-o", "size=1m", "bellwire"]).arg(folder);
        command.output().is_ok_and(|output| output.status.success())
    };
    ["-m", "-rm"].iter().find(|flags| may(flags)).copied()
}

/// Fills the disk to the last byte.
fn fill(ballast: &Path) {
    let mut file = File::create(ballast).expect("the ballast can be made");
    for size in [65_536, 4_096, 1] {
        while file.write_all(&vec![1; size]).is_ok() {}
    }
}

/// The test for a hub whose disk is filled and freed again.
struct DiskFailure<'a> {
    hub: &'a Hub,
    /// The hub's folder as the test reaches it.
    inside: &'a Path,
}

impl DiskFailure<'_> {
    async fn check(&self, take: impl Fn(), give: impl Fn()) {
        let client = Client::of(self.inside, &self.hub.address);
        let mut publisher = Publisher { client: &client, accepted: Vec::new(), refused: Vec::new(), number: 0 };
        // Nothing was published and nothing is due: only the hub's own probe can notice the full disk.
        take();
        wait_until_ready_is(&client, 507).await;
        give();
        wait_until_ready_is(&client, 200).await;

        client.expect(&Call::put("/v1/conversations/chat", &json!({ "user_id": "ada" }))).await;
        for _ in 0..20 {
            publisher.publish(100).await;
        }
        assert!(publisher.refused.is_empty(), "there is room yet");
        assert_eq!(client.ready().await, 200);

        take();
        publisher.publish_until_refused().await;
        assert_eq!(client.ready().await, 507, "it is not ready when it cannot accept");
        for size in [10, 60_000, 1_000, 20_000] {
            publisher.publish(size).await;
        }
        publisher.check_reads().await;
        let injected = publisher.inject("while full").await;
        assert_eq!(client.ready().await, 507);

        give();
        assert_eq!(publisher.publish(1_000).await, 202, "it goes on without a restart; it said:\n{}", self.hub.said());
        assert_eq!(client.ready().await, 200);
        let again = publisher.inject("while full").await;
        assert_eq!(again.0, 200);
        assert!(injected.0 == 507 || injected == again, "{injected:?} {again:?}");
        publisher.check_answers().await;
        self.check_database().await;
    }

    /// Checks the file while the process is stopped.
    async fn check_database(&self) {
        let stopped = Command::new("sh").args(["-c", &format!("kill -STOP {}", self.hub.pid())]).status();
        assert!(stopped.expect("there is a shell").success());
        let mut database = Database::copy_of(self.inside).await;
        assert_eq!(database.violations().await, Vec::<String>::new());
        database.close().await;
    }
}

/// Waits until `/readyz` has this status. The hub probes once a second, and a preallocated WAL still accepts some writes.
async fn wait_until_ready_is(client: &Client, status: u16) {
    let asked = async {
        while client.ready().await != status {
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    };
    let in_time = tokio::time::timeout(Duration::from_secs(30), asked).await;
    assert!(in_time.is_ok(), "/readyz does not become {status}");
}

/// The published events, accepted and refused.
struct Publisher<'a> {
    client: &'a Client,
    accepted: Vec<(String, Value)>,
    refused: Vec<Call>,
    number: u32,
}

impl Publisher<'_> {
    /// Publishes one event of about this size. The response must be 202 or 507.
    async fn publish(&mut self, size: usize) -> u16 {
        self.number += 1;
        let id = format!("event-{}", self.number);
        let payload = json!({ "tool_name": format!("t{}x", self.number), "ballast": "x".repeat(size) });
        let event = json!({ "id": id, "type": "tool.call.failure", "source": "tool_executor", "severity": "error",
                            "conversation_id": "chat", "payload": payload });
        let call = Call::post("/v1/events", &event);
        let (status, body) = self.client.call_until_answered(&call).await;
        match status {
            202 => self.accepted.push((id, parse(&body)["events"][0].clone())),
            507 => {
                assert_eq!(parse(&body)["error"]["code"], "no_space", "{body}");
                self.refused.push(call);
            }
            _ => panic!("an event was answered {status}: {body}"),
        }
        status
    }

    async fn publish_until_refused(&mut self) {
        for _ in 0..TRIES_MAX {
            if self.publish(8_000).await == 507 {
                return;
            }
        }
        panic!("{TRIES_MAX} events were accepted by a full disk");
    }

    async fn inject(&self, call_id: &str) -> (u16, String) {
        let ask = json!({ "point": "after_tool", "call_id": call_id });
        self.client.call_until_answered(&Call::post("/v1/conversations/chat/inject", &ask)).await
    }

    /// Reads must work on a full disk, also while the hub's timers try to write.
    async fn check_reads(&self) {
        let paths = ["/v1/events/event-1", "/v1/conversations/chat", "/v1/conversations/chat/messages", "/v1/tokens"];
        for _ in 0..60 {
            for path in paths {
                let (status, body) = self.client.call_until_answered(&Call::get(path)).await;
                assert_eq!(status, 200, "GET {path}: {body}");
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }

    /// Accepted events have the verdicts of their responses; refused ones do not exist and can be sent again.
    async fn check_answers(&self) {
        for (id, receipt) in &self.accepted {
            let trace = parse(&self.client.expect(&Call::get(format!("/v1/events/{id}"))).await);
            assert_eq!(trace["verdicts"], receipt["verdicts"], "{id}");
        }
        for call in &self.refused {
            let id = parse(&call.body)["id"].as_str().expect("an id").to_owned();
            assert_eq!(
                self.client.call_until_answered(&Call::get(format!("/v1/events/{id}"))).await.0,
                404,
                "{id} was refused"
            );
            self.client.expect(call).await;
        }
    }
}

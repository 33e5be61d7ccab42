//! When the writer dies, the hub says why and exits with an error, so that a service manager starts it again.
//!
//! The fault is a real one: the operating system refuses random bits to the writer's thread, which needs them for the
//! secrets of a new conversation. `strace` makes that system call fail, on this thread only.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use serde_json::json;

use crate::client::{Call, Client, Reply, json as parse};
use crate::hub::Hub;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hub_whose_writer_dies_says_why_exits_with_an_error_and_keeps_what_it_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::start(folder.path());
    let client = Client::of(folder.path(), &hub.address);
    client.expect(&Call::put("/v1/conversations/chat", &json!({ "user_id": "ada" }))).await;
    let event = json!({"type": "task.background.complete", "source": "ci", "severity": "info", "user_id": "ada",
        "conversation_id": "chat", "payload": {"task_id": "build", "summary": "the build is green"}});
    client.expect(&Call::post("/v1/events", &event)).await;
    let Some(mut strace) = refuse_random_bits(writer_thread(hub.pid())) else {
        println!("SKIPPED: strace is not installed, or may not trace a process here");
        return;
    };
    let new = client.call(&Call::put("/v1/conversations/new", &json!({ "user_id": "ada" }))).await;
    assert!(!matches!(new, Reply::Answered(200..=299, _)), "{new:?}");
    let (status, said) = hub.wait();
    strace.wait().expect("strace ends with the hub");
    assert_eq!(status.code(), Some(2), "{said}");
    for expected in [
        "an essential task has died; the hub stops",
        "error: the hub failed",
        "the writer of the store has panicked: the operating system provides random bits",
    ] {
        assert!(said.contains(expected), "{expected:?} is not in:\n{said}");
    }
    assert!(!said.contains("Bellwire has stopped"), "{said}");
    let hub = Hub::start(folder.path());
    let client = Client::of(folder.path(), &hub.address);
    let kept = client.expect(&Call::get("/v1/conversations/chat")).await;
    assert_eq!(parse(&kept)["pending"], 1, "{kept}");
    assert_eq!(client.call_until_answered(&Call::get("/v1/conversations/new")).await.0, 404);
}

/// The id of the writer's thread.
fn writer_thread(process: u32) -> u32 {
    let threads = std::fs::read_dir(format!("/proc/{process}/task")).expect("the process runs");
    let paths = threads.map(|thread| thread.expect("a thread").path());
    let is_writer = |path: &std::path::PathBuf| {
        std::fs::read_to_string(path.join("comm")).is_ok_and(|name| name.trim() == "bellwire-writer")
    };
    let writer = paths.into_iter().find(is_writer).expect("the hub has a writer");
    writer.file_name().and_then(|name| name.to_str()?.parse().ok()).expect("a thread's folder is named by its id")
}

/// Makes every request of this thread for random bits fail. None if the machine does not allow it.
fn refuse_random_bits(thread: u32) -> Option<Child> {
    let mut command = Command::new("strace");
    command.args(["-p", &thread.to_string(), "-e", "trace=getrandom", "-e", "inject=getrandom:error=EIO"]);
    let mut strace = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().ok()?;
    let output = BufReader::new(strace.stderr.take().expect("its standard error is a pipe"));
    let mut lines = output.lines().map_while(Result::ok);
    if lines.any(|line| line.ends_with(" attached")) {
        // The pipe must still be read, or strace would stop the thread.
        std::thread::spawn(move || lines.for_each(drop));
        return Some(strace);
    }
    strace.wait().expect("strace can be waited for");
    None
}

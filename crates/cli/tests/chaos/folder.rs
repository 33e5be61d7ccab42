//! Wrong data folders: a clear error, exit code 2, and nothing overwritten.

use std::net::TcpListener;
use std::path::Path;
use std::process::Command;

use serde_json::json;

use crate::client::{Call, Client};
use crate::hub::{Hub, arguments, refused, serve};

/// The exit code of a failed command.
const FAILED: Option<i32> = Some(2);

#[test]
fn a_file_that_is_not_a_database_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bellwire.db");
    let text = "these are somebody's notes, not a database\n".repeat(500);
    std::fs::write(&file, &text).expect("the file can be written");
    let (code, said) = refused(serve(folder.path()));
    assert_eq!(code, FAILED, "{said}");
    assert!(said.contains("bellwire.db") && said.contains("not a database"), "{said}");
    assert_eq!(std::fs::read_to_string(&file).expect("it is still there"), text);
    assert!(!folder.path().join("admin.token").exists(), "no token is left by a start that failed");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_truncated_database_is_refused_and_not_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::start(folder.path());
    let client = Client::of(folder.path(), &hub.address);
    client.expect(&Call::put("/v1/conversations/chat", &json!({ "user_id": "ada" }))).await;
    hub.terminate();
    assert_eq!(hub.wait().0.code(), Some(0));
    assert!(!folder.path().join("bellwire.db-wal").exists(), "a hub that has stopped leaves one whole file");
    let file = folder.path().join("bellwire.db");
    let whole = std::fs::read(&file).expect("the database is there");
    std::fs::write(&file, &whole[..whole.len() / 2]).expect("the file can be written");
    let (code, said) = refused(serve(folder.path()));
    assert_eq!(code, FAILED, "{said}");
    assert!(said.contains("bellwire.db") && said.contains("malformed"), "{said}");
    assert_eq!(std::fs::read(&file).expect("it is still there"), &whole[..whole.len() / 2]);
    // With the whole file restored, the hub starts.
    std::fs::write(&file, &whole).expect("the file can be written");
    let hub = Hub::start(folder.path());
    Client::of(folder.path(), &hub.address).expect(&Call::get("/v1/conversations/chat")).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_hub_on_the_same_folder_is_refused_and_the_first_goes_on() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::start(folder.path());
    let (code, said) = refused(serve(folder.path()));
    assert_eq!(code, FAILED, "{said}");
    assert!(said.contains("another Bellwire serves this data"), "{said}");
    assert_eq!(Client::of(folder.path(), &hub.address).ready().await, 200);
}

#[test]
fn a_port_in_use_is_refused_with_a_hint() {
    let folder = tempfile::tempdir().expect("a folder");
    let taken = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = taken.local_addr().expect("it has an address").to_string();
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellwire"));
    command.args(["serve", "--listen", &address, "--data-dir"]).arg(folder.path());
    let (code, said) = refused(command);
    assert_eq!(code, FAILED, "{said}");
    assert!(said.contains(&address) && said.contains("--port"), "{said}");
    assert_eq!(std::fs::read_dir(folder.path()).expect("the folder").count(), 0, "nothing was made");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_moved_data_folder_makes_publishes_and_readyz_fail() {
    let parent = tempfile::tempdir().expect("a folder");
    let (folder, away) = (parent.path().join("data"), parent.path().join("away"));
    let hub = Hub::start(&folder);
    let client = Client::of(&folder, &hub.address);
    client.expect(&Call::put("/v1/conversations/chat", &json!({ "user_id": "ada" }))).await;
    let event = json!({ "type": "ci.build.failed", "source": "ci", "severity": "error", "conversation_id": "chat",
                        "payload": {} });
    let publish = Call::post("/v1/events", &event);
    client.expect(&publish).await;
    std::fs::rename(&folder, &away).expect("the folder can be moved");
    assert_eq!(client.call_until_answered(&publish).await.0, 500);
    assert_eq!(client.ready().await, 503);
    hub.wait_until_said("moved or deleted");
    std::fs::rename(&away, &folder).expect("the folder can be moved back");
    client.expect(&publish).await;
    assert_eq!(client.ready().await, 200);
}

/// Root ignores file modes, so the folder is on a read-only file system.
#[cfg(target_os = "linux")]
#[test]
fn a_folder_that_cannot_be_written_is_refused() {
    let folder = tempfile::tempdir().expect("a folder");
    let Some(isolation) = crate::full_disk::isolation(folder.path()) else {
        println!("SKIPPED: neither root nor `unshare -rm` may mount a file system here");
        return;
    };
    let (code, said) = refused(on_read_only(isolation, folder.path()));
    assert_eq!(code, FAILED, "{said}");
    assert!(said.contains(folder.path().to_str().expect("text")) && said.contains("Read-only"), "{said}");
}

#[cfg(target_os = "linux")]
fn on_read_only(isolation: &str, folder: &Path) -> Command {
    let mount = r#"mount -t tmpfs -o ro bellwire "$1" && shift && exec "$@""#;
    let mut command = Command::new("unshare");
    command.args([isolation, "sh", "-c", mount, "sh"]).arg(folder);
    command.arg(env!("CARGO_BIN_EXE_bellwire")).args(arguments(folder));
    command
}

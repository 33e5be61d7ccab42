//! On SIGTERM the hub finishes the accepted requests and exits with 0.

use std::io::Write as _;
use std::net::TcpStream;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use serde_json::json;
use tokio::sync::watch;

use crate::client::{Call, Client, admin_token};
use crate::database::Database;
use crate::history::History;
use crate::hub::Hub;
use crate::load::Clients;
use crate::random::Random;
use crate::{collect, model};

/// The number of responses before each SIGTERM.
const ANSWERS: u64 = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sigterm_under_load_keeps_what_was_accepted_and_exits_with_zero() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut hub = Hub::start(folder.path());
    let (address, watched) = watch::channel(Some(hub.address.clone()));
    let client = Client::new(&admin_token(folder.path()), watched);
    let clients = Clients {
        client: client.clone(),
        user: "ada".into(),
        conversations: vec!["chat".into()],
        stop: Arc::new(AtomicBool::new(false)),
        numbers: Arc::default(),
    };
    client.expect(&Call::put("/v1/conversations/chat", &json!({ "user_id": "ada" }))).await;
    let tasks = clients.start(&mut Random::seeded(7));
    for _ in 0..5 {
        let enough = client.answers() + ANSWERS;
        while client.answers() < enough {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        address.send_replace(None);
        hub.terminate();
        let (status, said) = hub.wait();
        assert_eq!(status.code(), Some(0), "{said}");
        assert!(said.contains("everything it accepted is kept"), "{said}");
        let mut database = Database::copy_of(folder.path()).await;
        assert_eq!(database.violations().await, Vec::<String>::new());
        database.close().await;
        hub = Hub::start(folder.path());
        address.send_replace(Some(hub.address.clone()));
    }
    clients.stop.store(true, std::sync::atomic::Ordering::SeqCst);
    let mut history = History::default();
    for task in tasks {
        history.add(task.await.expect("a client meets nothing it cannot explain"));
    }
    collect::empty_mailboxes(&clients, &mut history).await;
    let traces = collect::traces(&client, &history).await;
    assert_eq!(model::violations(&history, &traces), Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_open_stream_does_not_keep_the_hub_from_stopping() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::start(folder.path());
    let client = Client::of(folder.path(), &hub.address);
    client.expect(&Call::put("/v1/conversations/chat", &json!({ "user_id": "ada" }))).await;
    let mut stream = client.stream("chat").await;
    stream.chunk().await.expect("the stream speaks").expect("the stream has a beginning");
    hub.terminate();
    assert_eq!(hub.wait().0.code(), Some(0));
}

#[test]
fn half_a_request_does_not_keep_the_hub_from_stopping() {
    let folder = tempfile::tempdir().expect("a folder");
    let hub = Hub::start(folder.path());
    let mut half = TcpStream::connect(&hub.address).expect("the hub listens");
    half.write_all(b"POST /v1/events HTTP/1.1\r\nhost: localhost\r\ncontent-le").expect("it takes half");
    hub.terminate();
    assert_eq!(hub.wait().0.code(), Some(0));
}

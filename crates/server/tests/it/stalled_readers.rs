//! Clients that ask and do not read.

use std::time::Duration;

use bellwire_server::Config;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::hub::TestHub;

#[tokio::test]
async fn clients_that_never_read_do_not_shut_others_out() {
    let mut config = Config::default();
    // Together the places for connections.
    (config.limits.streams, config.limits.concurrent_requests) = (4, 4);
    let hub = TestHub::start_with(config).await;
    let address = hub.base.trim_start_matches("http://").to_owned();
    let asked = format!("GET /openapi.json HTTP/1.1\r\nHost: {address}\r\n\r\n").repeat(300);
    let mut silent = Vec::new();
    for _ in 0..8 {
        let mut stream = TcpStream::connect(&address).await.unwrap();
        // What the hub does not read waits in the client's own buffers.
        let _ = tokio::time::timeout(Duration::from_millis(200), stream.write_all(asked.as_bytes())).await;
        silent.push(stream);
    }
    let answer = async {
        // A new connection each time: the test's own must not be among those that were open before.
        let client = reqwest::Client::builder().pool_max_idle_per_host(0).build().unwrap();
        client.get(format!("{}/healthz", hub.base)).send().await.unwrap().status()
    };
    let status = tokio::time::timeout(Duration::from_secs(25), answer).await.expect("others are answered");
    assert_eq!(status, reqwest::StatusCode::OK);
    drop(silent);
}

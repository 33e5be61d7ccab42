//! A hub that stops while a mail is on its way to a server that does not answer.

use bellwire_server::Config;
use futures_util::future::join_all;
use serde_json::json;

use super::{Post, header, wait_for};
use crate::email::peer::{MailServer, listener};
use crate::hub::TestHub;
use crate::people::send;

/// The server hangs at this command of the mail after the confirmation, once. The hub is stopped meanwhile.
async fn stopped_at(server: &MailServer, command: &str) {
    let post = Post::open(server, command).await;
    let before = server.heard(command).iter().filter(|heard| *heard == command).count();
    send(&post.hub, &post.agent, "Buy milk").await;
    let hangs = || async { server.heard(command).iter().filter(|heard| *heard == command).count() > before };
    wait_for(&format!("{command} to hang"), hangs).await;
    let Post { hub, agent, ada, .. } = post;
    let folder = hub.stop().await;
    assert_eq!(server.received(command).len(), 1, "{command}: only the confirmation has arrived");

    let config = Config { email: server.settings(command), ..Config::default() };
    let post = Post { server, port: command, hub: TestHub::start_as(config, folder).await, agent, ada };
    let delivery = post.until("sent", 1).await;
    assert_eq!((&delivery["attempts"], &delivery["reason"]), (&json!(1), &json!(null)), "{command}: {delivery}");
    let received = post.received(2).await;
    assert_eq!((received.len(), header(&received[1], "Subject")), (2, "[butler] Info: Buy milk"), "{command}");
    let inbox = post.inbox().await;
    assert!(inbox.iter().all(|item| item["kind"] != "note"), "{command}: no failure is reported: {inbox:?}");
    post.hub.stop().await;
}

#[tokio::test]
async fn a_mail_that_was_not_complete_when_the_hub_stopped_is_sent_once_after_the_next_start() {
    let commands = ["greeting", "ehlo", "mail", "rcpt", "data"];
    let fault = |at: &str| json!([{"at": at, "do": "hang", "after": 1, "times": 1}]);
    let server = MailServer::start(&commands.map(|command| listener(command, fault(command))));
    join_all(commands.map(|command| stopped_at(&server, command))).await;
}

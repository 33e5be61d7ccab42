//! Follows a conversation's stream and reports its hints.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::sync::mpsc;

use crate::client::{Client, HubRefused};

/// The reconnect delay starts short for a restarted hub and doubles up to `RECONNECT_MAX`.
const RECONNECT_FIRST: Duration = Duration::from_millis(250);
const RECONNECT_MAX: Duration = Duration::from_secs(10);

/// Sends a message for every hint with pending notifications. Reconnects until the receiver is dropped or the hub refuses
/// the stream for good.
pub(super) fn follow(client: Arc<Client>, path: String) -> mpsc::Receiver<()> {
    // One unread message stands for all later ones.
    let (sender, receiver) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut wait = RECONNECT_FIRST;
        while !sender.is_closed() {
            let ended = tokio::select! {
                ended = session(&client, &path, &sender) => ended,
                () = sender.closed() => return,
            };
            match ended {
                Ok(()) => wait = RECONNECT_FIRST,
                Err(error) => {
                    let refused = error.downcast_ref::<HubRefused>();
                    if refused.is_some_and(HubRefused::is_final) {
                        return;
                    }
                    let asked = refused.and_then(|refused| refused.retry_after).unwrap_or_default();
                    wait = (wait * 2).max(asked).min(RECONNECT_MAX);
                }
            }
            tokio::time::sleep(wait).await;
        }
    });
    receiver
}

async fn session(client: &Client, path: &str, sender: &mpsc::Sender<()>) -> Result<()> {
    let mut stream = client.stream(path).await?;
    while let Some((_, hint)) = stream.next().await? {
        if hint["count"].as_u64().is_some_and(|count| count > 0) {
            let _ = sender.try_send(());
        }
    }
    Ok(())
}

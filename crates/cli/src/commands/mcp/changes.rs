//! What happens in a conversation, from the hub's stream: hints only, for as long as somebody wants to hear them.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use tokio::sync::mpsc;

use crate::client::{Client, Refused};

/// A hub that was started again is there within a second; one that is down for long is not hammered.
const WAIT_FIRST: Duration = Duration::from_millis(250);
const WAIT_MAX: Duration = Duration::from_secs(10);

/// A message each time something in the conversation changes and something waits. Ends when the hub says no.
pub(super) fn follow(client: Arc<Client>, path: String) -> mpsc::Receiver<()> {
    // One that was not heard yet stands for all that follow.
    let (tell, told) = mpsc::channel(1);
    tokio::spawn(async move {
        let mut wait = WAIT_FIRST;
        while !tell.is_closed() {
            let ended = tokio::select! {
                ended = session(&client, &path, &tell) => ended,
                () = tell.closed() => return,
            };
            match ended {
                Ok(()) => wait = WAIT_FIRST,
                Err(error) if error.downcast_ref::<Refused>().is_some_and(|no| no.status < 500) => return,
                Err(_) => wait = (wait * 2).min(WAIT_MAX),
            }
            tokio::time::sleep(wait).await;
        }
    });
    told
}

async fn session(client: &Client, path: &str, tell: &mpsc::Sender<()>) -> Result<()> {
    let mut lines = client.stream(path).await?;
    while let Some((_, hint)) = lines.next().await? {
        if hint["count"].as_u64().is_some_and(|count| count > 0) {
            let _ = tell.try_send(());
        }
    }
    Ok(())
}

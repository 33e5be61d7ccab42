//! Pushes updates to the bot's webhook, in order, each until it is answered with 2xx.

use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::{BodyExt as _, Full};
use hyper::body::Bytes;
use hyper::header::{CONTENT_TYPE, HOST};
use hyper::{Request, Uri};
use hyper_util::rt::TokioIo;
use tokio::net::TcpStream;

use crate::answer::Answer;
use crate::server::Shared;

/// The pause after an update that the bot did not take.
const RETRY_PAUSE: Duration = Duration::from_millis(50);

/// Where updates are pushed.
#[derive(Clone)]
pub(crate) struct Webhook {
    pub(crate) url: String,
    secret: String,
    authority: String,
    path: String,
}

impl Webhook {
    /// Like a Bot API server in local mode, it takes http URLs of this machine; elsewhere a URL must be https.
    pub(crate) fn new(url: &str, secret: &str) -> Result<Self, Answer> {
        let bad = |why: &str| Answer::bad_request(&format!("bad webhook: {why}"));
        let uri: Uri = url.parse().map_err(|_| bad("Failed to parse URL"))?;
        let host = uri.host().unwrap_or_default();
        let local = host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback());
        if uri.scheme_str() != Some("https") && !local {
            return Err(bad("An HTTPS URL must be provided for webhook"));
        }
        let authority = uri.authority().map(ToString::to_string).unwrap_or_default();
        Ok(Self { url: url.to_owned(), secret: secret.to_owned(), authority, path: uri.path().to_owned() })
    }

    /// Whether the bot took the update.
    async fn push(&self, update: String) -> Option<bool> {
        let stream = TcpStream::connect(&self.authority).await.ok()?;
        let (mut sender, connection) = hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.ok()?;
        tokio::spawn(connection);
        let request = Request::post(&self.path).header(HOST, &self.authority).header(CONTENT_TYPE, "application/json");
        let request = match self.secret.as_str() {
            "" => request,
            secret => request.header("X-Telegram-Bot-Api-Secret-Token", secret),
        };
        let response = sender.send_request(request.body(Full::new(Bytes::from(update))).ok()?).await.ok()?;
        let taken = response.status().is_success();
        let _ = response.into_body().collect().await;
        Some(taken)
    }
}

pub(crate) async fn push_updates(shared: Arc<Shared>) {
    let mut changes = shared.changes();
    loop {
        changes.borrow_and_update();
        let next = shared.read(|world| {
            let (webhook, update) = (world.webhook.clone()?, world.updates.front()?);
            Some((webhook, update.id, update.body.to_string()))
        });
        let Some((webhook, id, body)) = next else {
            if changes.changed().await.is_err() {
                return;
            }
            continue;
        };
        if webhook.push(body).await == Some(true) {
            shared.change(|world| world.updates.retain(|update| update.id != id));
        } else {
            tokio::time::sleep(RETRY_PAUSE).await;
        }
    }
}

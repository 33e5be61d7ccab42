//! The unsubscribe link in messages. GET shows a page with a button and only POST unsubscribes, because scanners of messages
//! follow links.

use axum::extract::State;

use super::html_page::HtmlPage;
use super::path::SignedPath;
use super::{ApiError, Hub};

const ASK: &str = "<h1>Stop these messages?</h1><p>Notifications stay in your inbox.</p>\
                   <form method=\"post\"><button>Stop messages to this address</button></form>";
const DONE: &str =
    "<h1>Done</h1><p>No more messages are sent to this address. You can switch them on again in your settings.</p>";

/// Shows the page with the button; changes nothing.
pub(super) async fn ask(State(hub): State<Hub>, SignedPath(signed): SignedPath) -> Result<HtmlPage, ApiError> {
    hub.unsubscribe.read(&signed).ok_or_else(|| ApiError::not_found("link"))?;
    Ok(HtmlPage(ASK))
}

/// Stops messages to the address that the link was sent to. It succeeds also when repeated, and for an address that is no
/// longer in use.
pub(super) async fn act(State(hub): State<Hub>, SignedPath(signed): SignedPath) -> Result<HtmlPage, ApiError> {
    let (user_id, hash) = hub.unsubscribe.read(&signed).ok_or_else(|| ApiError::not_found("link"))?;
    for (channel, settings) in hub.store.settings(user_id.clone()).await?.channels {
        if let Some(target) = settings.target.filter(|target| hash.is(target)) {
            hub.store.unsubscribe(user_id.clone(), channel, target).await?;
        }
    }
    Ok(HtmlPage(DONE))
}

//! The unsubscribe link in messages. GET shows a page with a button and only POST unsubscribes, because scanners of messages
//! follow links.

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::openapi::Operation;
use super::path::SignedPath;
use super::{ApiError, Hub, shape};

/// A small HTML page that loads nothing.
pub(super) struct HtmlPage(&'static str);

const ASK: &str = "<h1>Stop these messages?</h1><p>Notifications stay in your inbox.</p>\
                   <form method=\"post\"><button>Stop messages to this address</button></form>";
const DONE: &str =
    "<h1>Done</h1><p>No more messages are sent to this address. You can switch them on again in your settings.</p>";

impl IntoResponse for HtmlPage {
    fn into_response(self) -> Response {
        let page = format!(
            "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width\"><title>Bellwire</title>{}</html>",
            self.0
        );
        let policy = "default-src 'none'; form-action 'self'; frame-ancestors 'none'";
        let headers = [
            (header::CONTENT_TYPE, "text/html; charset=utf-8"),
            (header::CONTENT_SECURITY_POLICY, policy),
            // Not `no-referrer`: the form's request would then have `Origin: null`. `same-origin` hides the link from others too.
            (header::REFERRER_POLICY, "same-origin"),
            (header::CACHE_CONTROL, "no-store"),
        ];
        (headers, page).into_response()
    }
}

impl shape::ResponseShape for HtmlPage {
    const STATUS: StatusCode = StatusCode::OK;

    fn describe(operation: &mut Operation<'_>) {
        operation.answer("text/html", serde_json::json!({ "type": "string" }));
    }
}

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

//! The unsubscribe link in messages. GET shows a page with a button and only POST unsubscribes, because scanners of messages
//! follow links.

use std::sync::LazyLock;

use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::docs::digest;
use super::openapi::Operation;
use super::path::SignedPath;
use super::{ApiError, Hub, shape};

/// A small HTML page that loads nothing.
pub(super) struct HtmlPage(&'static str);

const ASK: &str = "<h1>Stop these messages?</h1><p>Notifications stay in your inbox.</p>\
                   <form method=\"post\"><button>Stop messages to this address</button></form>";
const DONE: &str =
    "<h1>Done</h1><p>No more messages are sent to this address. You can switch them on again in your settings.</p>";

const STYLE: &str = include_str!("unsubscribe/page.css");

/// Only the page's own style may be used; nothing may be fetched.
static POLICY: LazyLock<HeaderValue> = LazyLock::new(|| {
    let style = digest(STYLE);
    let policy = format!(
        "default-src 'none'; style-src 'sha256-{style}'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
    );
    HeaderValue::from_str(&policy).expect("the policy is ASCII")
});

impl IntoResponse for HtmlPage {
    fn into_response(self) -> Response {
        let page = format!(
            "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" \
             content=\"width=device-width, initial-scale=1\"><title>Bellwire</title><style>{STYLE}</style></head>\
             <body><main><p class=\"brand\">Bellwire</p>{}</main></body></html>",
            self.0
        );
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
            (header::CONTENT_SECURITY_POLICY, POLICY.clone()),
            // Not `no-referrer`: the form's request would then have `Origin: null`. `same-origin` hides the link from others too.
            (header::REFERRER_POLICY, HeaderValue::from_static("same-origin")),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-store")),
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

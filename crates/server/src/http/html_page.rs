//! The hub's small pages, which load nothing and have the look of the console: what they say, and who gets a page.

use std::sync::LazyLock;

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::docs::digest;
use super::openapi::Operation;
use super::shape::ResponseShape;

/// A page with this content.
pub(super) struct HtmlPage(pub(super) &'static str);

const STYLE: &str = include_str!("html_page/page.css");

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

impl ResponseShape for HtmlPage {
    const STATUS: StatusCode = StatusCode::OK;

    fn describe(operation: &mut Operation<'_>) {
        operation.answer("text/html", serde_json::json!({ "type": "string" }));
        operation.errors_as_pages();
    }
}

/// Whether the client asks for HTML by name, as browsers do and programs do not.
pub(super) fn accepts_html(headers: &HeaderMap) -> bool {
    let accepted = headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    accepted.flat_map(|value| value.split(',')).any(|kind| media_type(kind) == "text/html")
}

fn media_type(accepted: &str) -> &str {
    accepted.split(';').next().unwrap_or_default().trim()
}

/// Whether a person has opened this address from a message: errors are then pages too.
pub(super) fn is_opened_link(request: &Request) -> bool {
    let rest = request.uri().path().strip_prefix("/u");
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('/')) && accepts_html(request.headers())
}

const WRONG_LINK: &str = "<h1>This link does not work</h1><p>It is incomplete or was changed, so nothing was done. Open it again \
                          from the message, without leaving a part out.</p><p>You can also switch messages off in your \
                          <a href=\"/settings\">settings</a>.</p>";
const NOT_NOW: &str = "<h1>Not done yet</h1><p>The hub cannot do this now. Open the link again in a few minutes.</p><p>You can also \
                       switch messages off in your <a href=\"/settings\">settings</a>.</p>";

/// Replaces the body of an error by a page that says what to do. The status and the other headers stay.
pub(super) fn of_error(response: Response) -> Response {
    let status = response.status();
    let content = match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => NOT_NOW,
        status if status.is_server_error() => NOT_NOW,
        status if status.is_client_error() => WRONG_LINK,
        _ => return response,
    };
    let mut page = HtmlPage(content).into_response();
    *page.status_mut() = status;
    let described = [header::CONTENT_TYPE, header::CONTENT_LENGTH];
    let kept = response.headers().iter().filter(|(name, _)| !described.contains(name));
    page.headers_mut().extend(kept.map(|(name, value)| (name.clone(), value.clone())));
    page
}

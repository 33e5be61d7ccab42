//! The console: the page at the hub's root, and its files.
//!
//! The build of `web/` writes the files and their list into `web/dist/console`, which is committed. The names of assets have a
//! hash of their content, so that browsers keep them for ever; the page itself is asked for again.

use std::collections::HashMap;
use std::sync::Arc;

use axum::extract::{Path, Request, State};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::html_page::accepts_html;
use super::openapi::Operation;
use super::shape::{HandlerArgument, ResponseShape};
use super::static_file::StaticFile;
use super::{ApiError, not_found};

/// The files by their path in the folder.
const FILES: &[(&str, &[u8])] = include!("../../../../web/dist/console/files.rs");
const PAGE: &str = "index.html";

/// Everything comes from the hub itself. Text cannot become markup or a script: there is no inline script or style, and only
/// the renderer's own policy may create markup.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; \
                      font-src 'self'; manifest-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; \
                      require-trusted-types-for 'script'; trusted-types lit-html";
const PERMISSIONS: &str = "accelerometer=(), browsing-topics=(), camera=(), display-capture=(), geolocation=(), gyroscope=(), \
                           magnetometer=(), microphone=(), payment=(), usb=()";
/// The paths of the API and of files: no page of the console begins so.
const OTHERS: [&str; 5] = ["/v1", "/mcp", "/u", "/assets", "/docs"];

/// The page and the assets.
#[derive(Clone)]
pub(super) struct Console(Arc<ConsoleFiles>);

struct ConsoleFiles {
    page: StaticFile,
    assets: HashMap<&'static str, StaticFile>,
}

/// The console's page, or 304 if the client has this version.
pub(super) struct ConsolePage(Response);

/// A file of the console.
pub(super) struct ConsoleAsset(Response);

impl Console {
    pub(super) fn new() -> Self {
        let page = FILES.iter().find(|(path, _)| *path == PAGE).map_or(&b""[..], |(_, content)| content);
        let assets = FILES.iter().filter_map(|(path, content)| {
            let name = path.strip_prefix("assets/")?;
            Some((name, StaticFile::new(content, content_type(name))))
        });
        let page = StaticFile::new(page, "text/html; charset=utf-8");
        Self(Arc::new(ConsoleFiles { page, assets: assets.collect() }))
    }

    fn page(&self, request: &HeaderMap) -> ConsolePage {
        let mut response = self.0.page.answer(request, "no-cache");
        let headers = [
            (header::CONTENT_SECURITY_POLICY, POLICY),
            (HeaderName::from_static("permissions-policy"), PERMISSIONS),
            (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
            // Not `no-referrer`: a form's request would then have `Origin: null`.
            (header::REFERRER_POLICY, "same-origin"),
        ];
        response.headers_mut().extend(headers.map(|(name, value)| (name, HeaderValue::from_static(value))));
        ConsolePage(response)
    }
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next() {
        Some("js") => "text/javascript; charset=utf-8",
        Some("css") => "text/css; charset=utf-8",
        Some("svg") => "image/svg+xml",
        Some("png") => "image/png",
        Some("woff2") => "font/woff2",
        Some("json" | "map") => "application/json",
        Some("webmanifest") => "application/manifest+json",
        _ => "application/octet-stream",
    }
}

/// The console's page.
pub(super) async fn page(State(console): State<Console>, headers: HeaderMap) -> Result<ConsolePage, ApiError> {
    Ok(console.page(&headers))
}

/// A file of the console.
pub(super) async fn asset(
    State(Console(files)): State<Console>,
    AssetName(name): AssetName,
    headers: HeaderMap,
) -> Result<ConsoleAsset, ApiError> {
    let file = files.assets.get(name.as_str()).ok_or_else(|| ApiError::not_found("file"))?;
    Ok(ConsoleAsset(file.answer(&headers, "public, max-age=31536000, immutable")))
}

/// Answers a path that no route has: with the page if a browser opens it as one of the console, otherwise with an error.
pub(super) async fn other_path(State(console): State<Console>, request: Request) -> Response {
    match is_page(&request) {
        true => console.page(request.headers()).into_response(),
        false => not_found::unknown_path(request).await.into_response(),
    }
}

fn is_page(request: &Request) -> bool {
    let path = request.uri().path();
    let is_other = |start: &str| path.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    reads && accepts_html(request.headers()) && !OTHERS.into_iter().any(is_other)
}

/// The name of an asset in the path.
pub(super) struct AssetName(String);

impl<S: Send + Sync> axum::extract::FromRequestParts<S> for AssetName {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut axum::http::request::Parts, state: &S) -> Result<Self, ApiError> {
        let name = Path::<String>::from_request_parts(parts, state).await;
        name.map(|Path(name)| Self(name)).map_err(|_| ApiError::not_found("file"))
    }
}

impl HandlerArgument for State<Console> {
    type Request = ();
}

impl ResponseShape for ConsolePage {
    const STATUS: StatusCode = StatusCode::OK;
    fn describe(operation: &mut Operation<'_>) {
        operation.answer("text/html", json!({ "type": "string" }));
        operation.not_modified();
    }
}

impl ResponseShape for ConsoleAsset {
    const STATUS: StatusCode = StatusCode::OK;
    fn describe(operation: &mut Operation<'_>) {
        operation.answer("*/*", json!({ "type": "string", "format": "binary" }));
        operation.not_modified();
    }
}

impl IntoResponse for ConsolePage {
    fn into_response(self) -> Response {
        self.0
    }
}

impl IntoResponse for ConsoleAsset {
    fn into_response(self) -> Response {
        self.0
    }
}

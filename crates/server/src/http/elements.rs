//! The toasts and the inbox for web pages, as one ES module. `web/dist` is committed, so that the build needs no Node.

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::ApiError;
use super::openapi::Operation;
use super::shape::{HandlerArgument, ResponseShape};

const MODULE: &str = include_str!("../../../../web/dist/elements.js");

/// The module and its entity tag.
#[derive(Clone)]
pub(super) struct Elements {
    etag: HeaderValue,
}

/// The response: the module, or 304 if the client has this version.
pub(super) struct ElementsModule {
    etag: HeaderValue,
    is_known: bool,
}

impl Elements {
    pub(super) fn new() -> Self {
        let digest = Sha256::digest(MODULE);
        let hash: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        // Weak, because the same version may be sent with or without compression.
        let etag = HeaderValue::from_str(&format!("W/\"{hash}\"")).expect("hexadecimal digits are ASCII");
        Self { etag }
    }

    /// Whether the request names this version. `If-None-Match` has one tag or a list.
    fn is_known(&self, request: &HeaderMap) -> bool {
        let values = request.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let strong = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let own = self.etag.to_str().map(strong).unwrap_or_default();
        values.flat_map(|value| value.split(',')).any(|tag| strong(tag) == own || tag.trim() == "*")
    }
}

/// Serves the module. Its address is stable, so clients ask whether it has changed.
pub(super) async fn serve(State(elements): State<Elements>, headers: HeaderMap) -> Result<ElementsModule, ApiError> {
    let is_known = elements.is_known(&headers);
    Ok(ElementsModule { etag: elements.etag, is_known })
}

impl HandlerArgument for State<Elements> {
    type Request = ();
}

impl ResponseShape for ElementsModule {
    const STATUS: StatusCode = StatusCode::OK;
    fn describe(operation: &mut Operation<'_>) {
        operation.answer("text/javascript", json!({ "type": "string" }));
        operation.not_modified();
    }
}

impl IntoResponse for ElementsModule {
    fn into_response(self) -> Response {
        let headers = [
            (header::ETAG, self.etag),
            (header::CACHE_CONTROL, HeaderValue::from_static("no-cache")),
            (header::CONTENT_TYPE, HeaderValue::from_static("text/javascript; charset=utf-8")),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        ];
        match self.is_known {
            true => (StatusCode::NOT_MODIFIED, headers).into_response(),
            false => (headers, Bytes::from_static(MODULE.as_bytes())).into_response(),
        }
    }
}

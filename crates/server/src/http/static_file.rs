//! Files that are part of the program, with an entity tag.

use axum::body::Bytes;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use sha2::{Digest as _, Sha256};

/// A file and its entity tag.
#[derive(Clone)]
pub(super) struct StaticFile {
    content: &'static [u8],
    content_type: &'static str,
    etag: HeaderValue,
}

impl StaticFile {
    pub(super) fn new(content: &'static [u8], content_type: &'static str) -> Self {
        let digest = Sha256::digest(content);
        let hash: String = digest.iter().take(16).map(|byte| format!("{byte:02x}")).collect();
        // Weak, because the same version may be sent with or without compression.
        let etag = HeaderValue::from_str(&format!("W/\"{hash}\"")).expect("hexadecimal digits are ASCII");
        Self { content, content_type, etag }
    }

    /// The file, or 304 if the request names this version.
    pub(super) fn answer(&self, request: &HeaderMap, cache_control: &'static str) -> Response {
        let headers = [
            (header::ETAG, self.etag.clone()),
            (header::CACHE_CONTROL, HeaderValue::from_static(cache_control)),
            (header::CONTENT_TYPE, HeaderValue::from_static(self.content_type)),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
        ];
        match self.is_known(request) {
            true => (StatusCode::NOT_MODIFIED, headers).into_response(),
            false => (headers, Bytes::from_static(self.content)).into_response(),
        }
    }

    /// Whether the request names this version. `If-None-Match` has one tag or a list.
    fn is_known(&self, request: &HeaderMap) -> bool {
        let values = request.get_all(header::IF_NONE_MATCH).iter().filter_map(|value| value.to_str().ok());
        let strong = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
        let own = self.etag.to_str().map(strong).unwrap_or_default();
        values.flat_map(|value| value.split(',')).any(|tag| strong(tag) == own || tag.trim() == "*")
    }
}

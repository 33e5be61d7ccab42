//! The toasts and the inbox for web pages, as one ES module. `web/dist` is committed, so that the build needs no Node.

use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde_json::json;

use super::ApiError;
use super::openapi::Operation;
use super::shape::{HandlerArgument, ResponseShape};
use super::static_file::StaticFile;

const MODULE: &[u8] = include_bytes!("../../../../web/dist/elements.js");

/// The module and its entity tag.
#[derive(Clone)]
pub(super) struct Elements(StaticFile);

/// The response: the module, or 304 if the client has this version.
pub(super) struct ElementsModule(Response);

impl Elements {
    pub(super) fn new() -> Self {
        Self(StaticFile::new(MODULE, "text/javascript; charset=utf-8"))
    }
}

/// Serves the module. Its address is stable, so clients ask whether it has changed.
pub(super) async fn serve(
    State(Elements(module)): State<Elements>,
    headers: HeaderMap,
) -> Result<ElementsModule, ApiError> {
    Ok(ElementsModule(module.answer(&headers, "no-cache")))
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
        self.0
    }
}

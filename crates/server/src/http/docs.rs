use axum::Extension;
use axum::http::StatusCode;
use axum::response::{Html, IntoResponse, Response};
use serde_json::Value;

use super::ApiError;
use super::openapi::Operation;
use super::shape::{Argument, Reply};

#[derive(Clone)]
pub(super) struct DocsPage(String);

impl DocsPage {
    pub(super) fn of(_: &Value) -> Self {
        Self(String::new())
    }
}

pub(super) async fn serve(Extension(page): Extension<DocsPage>) -> Result<DocsPage, ApiError> {
    Ok(page)
}
impl Argument for Extension<DocsPage> {
    type Request = ();
}
impl Reply for DocsPage {
    const STATUS: StatusCode = StatusCode::OK;
    fn describe(operation: &mut Operation<'_>) {
        operation.answer("text/html", serde_json::json!({ "type": "string" }));
    }
}
impl IntoResponse for DocsPage {
    fn into_response(self) -> Response {
        Html(self.0).into_response()
    }
}

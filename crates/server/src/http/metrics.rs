use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};

use super::openapi::Operation;
use super::{ApiError, Hub, shape};
use crate::clock;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Every figure, as text.
pub(super) struct MetricsPage(String);

impl IntoResponse for MetricsPage {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, OPEN_METRICS)], self.0).into_response()
    }
}

impl shape::Reply for MetricsPage {
    const STATUS: StatusCode = StatusCode::OK;

    fn describe(operation: &mut Operation<'_>) {
        operation.answer("application/openmetrics-text", serde_json::json!({ "type": "string" }));
    }
}

/// What the hub counts, for Prometheus.
pub(super) async fn serve(State(hub): State<Hub>) -> Result<MetricsPage, ApiError> {
    let (waiting, outbox) = (hub.store.waiting().await?, hub.store.outbox().await?);
    Ok(MetricsPage(hub.metrics.write(waiting, outbox, &hub.refusals.standing(), clock::now())))
}

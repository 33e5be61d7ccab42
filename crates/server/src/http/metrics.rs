use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::openapi::Operation;
use super::router::ROUTES;
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

/// Counts and times every request that meets a route of the table.
pub(super) async fn count(State(hub): State<Hub>, request: Request, next: Next) -> Response {
    let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let route = ROUTES.iter().find(|route| route.path == path && route.method == method.as_str());
    let started = std::time::Instant::now();
    let response = next.run(request).await;
    if let Some(route) = route {
        hub.metrics.answered(route.method, route.path, response.status().as_u16(), started.elapsed());
    }
    response
}

use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

use super::router::ROUTES;
use super::{ApiError, Hub};
use crate::clock;

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// What the hub counts, for Prometheus.
pub(super) async fn metrics(State(hub): State<Hub>) -> Result<impl IntoResponse, ApiError> {
    let waiting = hub.store.waiting().await?;
    Ok(([(header::CONTENT_TYPE, OPEN_METRICS)], hub.metrics.write(waiting, clock::now())))
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

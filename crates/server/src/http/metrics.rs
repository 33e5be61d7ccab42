use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bellwire_store::OriginSums;

use super::openapi::Operation;
use super::{ApiError, Hub, shape};

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The maximum age of a cached response.
const PAGE_AGE_MAX: Duration = Duration::from_secs(1);

/// All metrics in the OpenMetrics text format.
pub(super) struct MetricsPage(Arc<str>);

impl IntoResponse for MetricsPage {
    fn into_response(self) -> Response {
        ([(header::CONTENT_TYPE, OPEN_METRICS)], self.0.to_string()).into_response()
    }
}

impl shape::ResponseShape for MetricsPage {
    const STATUS: StatusCode = StatusCode::OK;

    fn describe(operation: &mut Operation<'_>) {
        operation.answer("application/openmetrics-text", serde_json::json!({ "type": "string" }));
    }
}

/// Serves the metrics. The text is written at most once per [`PAGE_AGE_MAX`], however many clients ask.
pub(super) async fn serve(State(hub): State<Hub>) -> Result<MetricsPage, ApiError> {
    let mut page = hub.metrics_page.lock().await;
    if let Some((_, text)) = page.as_ref().filter(|(written, _)| written.elapsed() < PAGE_AGE_MAX) {
        return Ok(MetricsPage(text.clone()));
    }
    let (waiting, outbox) = (hub.store.waiting().await?, hub.store.outbox().await?);
    hub.metrics.set_channels(&hub.channels, &outbox, hub.store.now());
    let since = hub.store.now().minus(OriginSums::RECENT_MS);
    hub.metrics.set_ledger(&hub.store.ledger_sums(None, None, since).await?);
    let text: Arc<str> = hub.metrics.write(waiting, &hub.refusals.status(), hub.store.now()).into();
    *page = Some((Instant::now(), text.clone()));
    Ok(MetricsPage(text))
}

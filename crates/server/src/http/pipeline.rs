//! The middleware around all handlers: correlation, limits, authentication, timeout, errors and metrics.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use futures_util::FutureExt as _;
use percent_encoding::percent_decode_str;
use tracing::Instrument as _;

use super::correlation::Correlation;
use super::error::to_api_error;
use super::in_progress::{InProgress, Permits};
use super::intake::{BodyRoom, Intake};
use super::origin::OriginCheck;
use super::router::Route;
use super::{ApiError, Hub};
use super::{html_page, not_found};
use crate::auth::Identity;
use crate::config::Config;
use crate::usage::Exceeded;

/// Handles every request except CORS preflights. Every response gets the correlation headers and is counted in the
/// metrics, and every error has the body of an [`ApiError`], or is a page where a person opens a link of a message.
pub(super) async fn handle(State(pipeline): State<Arc<RequestPipeline>>, mut request: Request, next: Next) -> Response {
    let route = Route::of(&request);
    let correlation = Correlation::of(request.headers(), &pipeline.hub.trace_ids);
    let span = correlation.span(&request);
    request.extensions_mut().insert(correlation.clone());
    let is_opened_link = html_page::is_opened_link(&request);
    let answered = async {
        let started = Instant::now();
        let response = to_api_error(catch_panic(pipeline.admit(route, request, next)).await);
        let response = if is_opened_link { html_page::of_error(response) } else { response };
        let (status, took) = (response.status().as_u16(), started.elapsed());
        if let Some(route) = route {
            pipeline.hub.metrics.answered(route.method, route.path, status, took);
        }
        tracing::debug!(status, elapsed_us = took.as_micros() as u64, "answered");
        response
    };
    let mut response = answered.instrument(span).await;
    correlation.put(response.headers_mut());
    response
}

/// Turns a panic of a handler into a 500 response. The panic hook has printed it.
async fn catch_panic(answer: impl Future<Output = Result<Response, ApiError>>) -> Response {
    let answered = AssertUnwindSafe(answer).catch_unwind().await;
    let failed = |_| Err(ApiError::of_status(StatusCode::INTERNAL_SERVER_ERROR));
    answered.unwrap_or_else(failed).unwrap_or_else(ApiError::into_response)
}

/// The state of the middleware.
pub(super) struct RequestPipeline {
    hub: Hub,
    origin_check: OriginCheck,
    bodies: BodyRoom,
    timeout: Duration,
}

impl RequestPipeline {
    pub(super) fn new(hub: Hub, config: &Config) -> Self {
        let (bodies, timeout) = (BodyRoom::new(config.limits.body_bytes), config.limits.request_timeout());
        Self { hub, origin_check: OriginCheck::new(config), bodies, timeout }
    }

    /// Checks host and origin, the hub's request limit, the token and its scope, and the token's own limits; then runs the
    /// handler with a timeout. Probes are exempt from the request limit.
    async fn admit(&self, route: Option<&Route>, request: Request, next: Next) -> Result<Response, ApiError> {
        self.origin_check.check(route, &request)?;
        let is_probe = route.is_some_and(Route::is_probe);
        let of_hub = (!is_probe).then(|| self.hub.overload.request()).transpose()?;
        let mut request = authorize(&self.hub, route, request).await?;
        let identity = request.extensions().get::<Arc<Identity>>().cloned();
        let names_owner = request.uri().query().is_some_and(|query| query.contains("user_id="));
        let source = route.filter(|route| route.is_ingest()).and_then(|_| {
            let name = percent_decode_str(request.uri().path().rsplit('/').next()?).decode_utf8().ok()?;
            self.hub.ingest.get(&name)
        });
        let usage = identity.as_ref().map(|identity| identity.usage.clone());
        let usage = usage.or_else(|| source.map(|source| source.usage.clone()));
        let of_token = usage.as_ref().map(|usage| usage.request()).transpose().map_err(|exceeded| match source {
            Some(_) => Exceeded { message: "too many calls of this source are in progress", ..exceeded },
            None => exceeded,
        })?;
        let body = match usage {
            Some(usage) if source.is_some() => Intake::of(&self.bodies.of_source(), Some(usage), &request)?,
            Some(usage) => Intake::of(&self.bodies, Some(usage), &request)?,
            None => Intake::of(&self.bodies.without_token(), None, &request)?,
        };
        request.extensions_mut().insert(body.clone());
        // Kept here until the response is there, and by whatever works on the request for longer.
        let in_progress = Arc::new(InProgress::new(Permits { of_hub, of_token, body }, self.timeout));
        request.extensions_mut().insert(in_progress.clone());
        let answered = in_progress.in_time(next.run(request)).await;
        let mut response = answered.ok_or_else(|| ApiError::of_status(StatusCode::GATEWAY_TIMEOUT))?;
        // A 404 says what this token can see and what to do, whether or not the resource exists.
        match (response.extensions_mut().remove::<ApiError>(), route, identity) {
            (Some(error), Some(route), Some(identity)) => {
                Err(not_found::explained(error, route, &identity, names_owner))
            }
            _ => Ok(response),
        }
    }
}

/// Authenticates the token and checks that its scope is in the route table. Handlers get the identity, never the secret.
async fn authorize(hub: &Hub, route: Option<&Route>, mut request: Request) -> Result<Request, ApiError> {
    let Some(route) = route.filter(|route| !route.scopes.is_empty()) else { return Ok(request) };
    let identity = hub.tokens.identify(bearer(&request)?).await?;
    let identity = match request.headers().get(ORIGIN_HEADER) {
        Some(origin) => identity.speaking_as(std::str::from_utf8(origin.as_bytes()).unwrap_or_default())?,
        None => identity,
    };
    if !route.scopes.contains(&identity.scope) {
        let allowed: Vec<&str> = route.scopes.iter().map(|scope| scope.as_str()).collect();
        let (scope, allowed) = (identity.scope.as_str(), allowed.join(", "));
        return Err(ApiError::forbidden(format!("a token of scope {scope} may not do this; allowed: {allowed}")));
    }
    let names = request.uri().query().unwrap_or_default().split('&').map(|one| one.split('=').next().unwrap_or(one));
    if let Some(name) = names.filter(|name| !name.is_empty()).find(|name| !route.takes_parameter(name)) {
        return Err(ApiError::invalid(name, "is no parameter of this call"));
    }
    request.extensions_mut().insert(identity);
    Ok(request)
}

/// Names the origin for which an admin token speaks.
const ORIGIN_HEADER: &str = "bellwire-origin";

/// The token of the `Authorization: Bearer` header; the scheme is case-insensitive.
fn bearer(request: &Request) -> Result<&str, ApiError> {
    let mut values = request.headers().get_all(header::AUTHORIZATION).iter();
    let value = match (values.next(), values.next()) {
        (Some(value), None) => value.to_str().unwrap_or_default(),
        (Some(_), Some(_)) => return Err(ApiError::unauthorized("Authorization is there twice; send it once")),
        (None, _) => return Err(ApiError::unauthorized("send a token: Authorization: Bearer bw_…")),
    };
    let secret = value.split_once(' ').filter(|(scheme, _)| scheme.eq_ignore_ascii_case("bearer"));
    let message = "the Authorization header is not of the form: Bearer bw_…";
    secret.map(|(_, secret)| secret.trim()).ok_or_else(|| ApiError::unauthorized(message))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panicking_handler_gives_an_internal_error() {
        let response = catch_panic(async { panic!("on purpose") }).await;
        assert_eq!(response.status(), StatusCode::INTERNAL_SERVER_ERROR);
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.expect("a body in memory");
        assert!(body.starts_with(br#"{"error":{"code":"internal_error""#), "{body:?}");
    }
}

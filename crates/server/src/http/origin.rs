//! Checks of the `Host` and `Origin` headers, and the CORS layer.
//!
//! A web page in a user's browser must not reach the hub: neither through a host name that the page's owner points at the
//! hub (DNS rebinding) nor from another origin. Probes and `/metrics` accept any host name. A signed link works from any
//! origin: the link itself is the credential, and mail clients open it in pages of their own, whose origin is `null`.

use std::sync::Arc;
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue, Method, StatusCode, header};
use tower_http::cors::{AllowOrigin, CorsLayer};

use super::ApiError;
use super::router::Route;
use crate::config::Config;

/// How long a browser may cache a preflight response.
const PREFLIGHT_MAX_AGE: Duration = Duration::from_secs(3600);

/// The allowed host names and origins.
pub(super) struct OriginCheck {
    hosts: Arc<Vec<String>>,
    origins: Vec<String>,
}

impl OriginCheck {
    pub(super) fn new(config: &Config) -> Self {
        let public = config.public_url.clone().map(|url| url.trim_end_matches('/').to_owned());
        Self { hosts: config.allowed_hosts(), origins: config.allowed_origins.iter().cloned().chain(public).collect() }
    }

    /// Refuses a request whose host name or origin is not allowed.
    pub(super) fn check(&self, route: Option<&Route>, request: &Request) -> Result<(), ApiError> {
        match route {
            Some(route) if route.is_probe() => Ok(()),
            Some(route) if route.is_signed_link() => self.check_host(request).map(drop),
            _ => self.check_origin(self.check_host(request)?, request),
        }
    }

    /// Returns the request's host, if it is allowed.
    fn check_host<'a>(&self, request: &'a Request) -> Result<&'a str, ApiError> {
        let host = text(request, header::HOST).or_else(|| request.uri().authority().map(|name| name.as_str()));
        let host = host.unwrap_or_default();
        if !self.allows_host(host) {
            let message = "this hub does not answer to that host name; add it to server.allowed_hosts";
            return Err(ApiError::new(StatusCode::MISDIRECTED_REQUEST, "host_not_allowed", message));
        }
        Ok(host)
    }

    fn check_origin(&self, host: &str, request: &Request) -> Result<(), ApiError> {
        if text(request, header::ORIGIN).is_some_and(|origin| !self.allows_origin(origin, host)) {
            let message = "pages of that origin may not call this hub; add it to server.allowed_origins";
            return Err(ApiError::new(StatusCode::FORBIDDEN, "origin_not_allowed", message));
        }
        Ok(())
    }

    fn allows_host(&self, host: &str) -> bool {
        let name = match host.rsplit_once(':') {
            Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => name,
            _ => host,
        };
        self.hosts.iter().any(|one| one.eq_ignore_ascii_case(name))
    }

    /// The hub's own pages have the request's host as origin; other origins must be in `server.allowed_origins`.
    fn allows_origin(&self, origin: &str, host: &str) -> bool {
        let own = origin.split_once("://").is_some_and(|(_, name)| name.eq_ignore_ascii_case(host));
        own || self.origins.iter().any(|one| one.eq_ignore_ascii_case(origin))
    }
}

fn text(request: &Request, name: HeaderName) -> Option<&str> {
    request.headers().get(name).map(|value| value.to_str().unwrap_or("?"))
}

/// The CORS layer for the configured origins.
pub(super) fn cors(config: &Config) -> CorsLayer {
    let origins = config.allowed_origins.iter().filter_map(|origin| HeaderValue::from_str(origin).ok());
    CorsLayer::new()
        .allow_origin(AllowOrigin::list(origins))
        .allow_methods([Method::GET, Method::POST, Method::PUT, Method::PATCH, Method::DELETE])
        .allow_headers([
            header::AUTHORIZATION,
            header::CONTENT_TYPE,
            HeaderName::from_static("idempotency-key"),
            HeaderName::from_static("last-event-id"),
            HeaderName::from_static("traceparent"),
            HeaderName::from_static("x-correlation-id"),
        ])
        .expose_headers([
            header::RETRY_AFTER,
            HeaderName::from_static("traceparent"),
            HeaderName::from_static("x-correlation-id"),
        ])
        .max_age(PREFLIGHT_MAX_AGE)
}

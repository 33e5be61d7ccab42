//! Requests to the hub over connections that stay open: a tool call is short, and a new connection would double the wait.

use std::time::Duration;

use anyhow::Result;
use bellwire_server::config::Secret;
use reqwest::Method;
use reqwest::header::{CONTENT_TYPE, HeaderMap};
use serde_json::Value;

use crate::client::{HubRefused, describe, http_for};

/// An unused connection is closed after so long.
const IDLE_MAX: Duration = Duration::from_secs(60);
/// A request ends after so long at the latest. What a result waits for ends sooner.
const REQUEST_MAX: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub(super) struct Hub {
    http: reqwest::Client,
    url: String,
    token: Secret,
    /// How long a tool's result may wait for it.
    pub(super) timeout: Duration,
}

/// Why the hub gave no answer.
#[derive(Debug)]
pub(super) struct HubError {
    pub(super) reason: anyhow::Error,
    /// Whether the hub certainly did nothing.
    pub(super) is_certain: bool,
    /// The token is not valid, or no longer.
    pub(super) is_unauthorized: bool,
}

impl Hub {
    pub(super) fn new(url: String, token: Secret, timeout: Duration) -> Result<Self> {
        let http = http_for(&url)?.timeout(REQUEST_MAX).pool_idle_timeout(IDLE_MAX).tcp_nodelay(true).build()?;
        Ok(Self { http, url, token, timeout })
    }

    /// Sends a JSON request and returns the body of a 2xx response.
    pub(super) async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, HubError> {
        let mut request = self.http.request(method, format!("{}{path}", self.url)).bearer_auth(self.token.reveal());
        if let Some(body) = body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.to_string());
        }
        let failed = |error: reqwest::Error| HubError {
            reason: describe(&error, &self.url),
            is_certain: error.is_connect(),
            is_unauthorized: false,
        };
        let response = request.send().await.map_err(failed)?;
        let status = response.status();
        let bytes = response.bytes().await.map_err(failed)?;
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        if status.is_success() {
            return Ok(body);
        }
        let reason = HubRefused::new(status, &HeaderMap::new(), &body);
        Err(HubError { is_certain: reason.is_final(), is_unauthorized: status == 401, reason: reason.into() })
    }
}

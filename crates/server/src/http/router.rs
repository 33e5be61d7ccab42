//! The API as one table: what there is, who may use it, who answers.

use std::sync::Arc;

use axum::Router;
use axum::extract::{MatchedPath, Request, State};
use axum::http::{Method, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, on};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::compression::CompressionLayer;
use tower_http::limit::RequestBodyLimitLayer;
use tower_http::timeout::TimeoutLayer;

use super::origin::Doorkeeper;
use super::{
    ApiError, Hub, conversations, correlation, events, health, inject, metrics, origin, overload, stream, subscribers,
    tokens, users,
};
use crate::auth::Scope;
use crate::config::Config;

/// One line of the table.
#[derive(Copy, Clone, Debug)]
pub struct Route {
    /// The method.
    pub method: &'static str,
    /// The path, with its parameters in braces.
    pub path: &'static str,
    /// Who may use it; nobody listed = everyone, without a token.
    pub scopes: &'static [Scope],
}

macro_rules! routes {
    ($($method:ident $path:literal $([$($scope:ident)+])? => $handler:path;)+) => {
        /// Every route and who may use it. A route that is not here does not exist.
        pub const ROUTES: &[Route] = &[$(Route {
            method: stringify!($method),
            path: $path,
            scopes: &[$($(Scope::$scope),+)?],
        },)+];

        fn table() -> Router<Hub> {
            Router::new()$(.route($path, on(MethodFilter::$method, $handler)))+
        }
    };
}

routes! {
    POST   "/v1/events"                                    [Admin Agent Ingest] => events::publish;
    GET    "/v1/events/{id}"                               [Admin Agent User]   => events::trace;
    PUT    "/v1/conversations/{id}"                        [Admin Agent User]   => conversations::put;
    GET    "/v1/conversations/{id}"                        [Admin Agent User]   => conversations::get;
    POST   "/v1/conversations/{id}/inject"                 [Admin Agent]        => inject::inject;
    GET    "/v1/conversations/{id}/messages"               [Admin Agent User]   => conversations::messages;
    POST   "/v1/conversations/{id}/messages"               [Admin User]         => conversations::say;
    GET    "/v1/conversations/{id}/system_prompt"          [Admin Agent]        => conversations::system_prompt;
    POST   "/v1/conversations/{id}/system_prompt/rotate"   [Admin Agent]        => conversations::rotate;
    GET    "/v1/conversations/{id}/stream"                 [Admin Agent User]   => stream::stream;
    GET    "/v1/subscribers"                               [Admin Agent User]   => subscribers::list;
    GET    "/v1/subscribers/{id}"                          [Admin Agent User]   => subscribers::get;
    POST   "/v1/subscribers/{id}/test"                     [Admin Agent User]   => subscribers::test;
    GET    "/v1/users/{id}/settings"                       [Admin User]         => users::settings;
    PATCH  "/v1/users/{id}/settings"                       [Admin User]         => users::patch_settings;
    DELETE "/v1/users/{id}"                                [Admin User]         => users::erase;
    POST   "/v1/tokens"                                    [Admin]              => tokens::create;
    GET    "/v1/tokens"                                    [Admin]              => tokens::list;
    DELETE "/v1/tokens/{id}"                               [Admin]              => tokens::revoke;
    GET    "/healthz"                                                           => health::healthz;
    GET    "/readyz"                                                            => health::readyz;
    GET    "/metrics"                                                           => metrics::metrics;
}

pub(crate) fn router(hub: Hub, config: &Config) -> Router {
    table()
        .method_not_allowed_fallback(|| async {
            ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", "this path has no such method")
        })
        .layer(middleware::from_fn_with_state(hub.clone(), authorize))
        .fallback(|| async { ApiError::not_found("path") })
        .layer(middleware::from_fn_with_state(hub.clone(), overload::shed))
        .layer(origin::cors(config))
        .layer(middleware::from_fn_with_state(Arc::new(Doorkeeper::new(config)), origin::check))
        .layer(RequestBodyLimitLayer::new(config.limits.body_bytes))
        .layer(CompressionLayer::new())
        .layer(TimeoutLayer::with_status_code(StatusCode::GATEWAY_TIMEOUT, config.limits.request_timeout()))
        .layer(CatchPanicLayer::custom(|_: Box<dyn std::any::Any + Send>| {
            ApiError::new(StatusCode::INTERNAL_SERVER_ERROR, "internal_error", "the hub failed; its log says why")
                .into_response()
        }))
        .layer(middleware::from_fn_with_state(hub.clone(), metrics::count))
        .layer(middleware::from_fn(correlation::correlate))
        .with_state(hub)
}

/// Finds who asks and whether the table lets them; handlers get the identity and never see the secret.
async fn authorize(State(hub): State<Hub>, mut request: Request, next: Next) -> Result<Response, ApiError> {
    let path = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned()).unwrap_or_default();
    let method = match *request.method() {
        // Axum answers HEAD where there is GET.
        Method::HEAD => Method::GET,
        ref method => method.clone(),
    };
    let route = ROUTES.iter().find(|route| route.path == path && route.method == method.as_str());
    let Some(route) = route else { return Ok(next.run(request).await) };
    if route.scopes.is_empty() {
        return Ok(next.run(request).await);
    }
    let secret = request.headers().get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    let secret = secret.and_then(|value| value.strip_prefix("Bearer ")).ok_or_else(ApiError::unauthorized)?;
    let identity = hub.tokens.identify(secret.trim()).await?.ok_or_else(ApiError::unauthorized)?;
    if !route.scopes.contains(&identity.scope) {
        let message = format!("a token of scope {} may not do this", identity.scope.as_str());
        return Err(ApiError::forbidden(message));
    }
    request.extensions_mut().insert(identity);
    Ok(next.run(request).await)
}

//! What browsers need in an answer, and answers that are packed: for whoever asks for one of them.
//!
//! An agent that says something brings neither an `Origin` nor an `Accept-Encoding`, so it need not pass what handles
//! them. Whatever only asks passes in any case: its answer may be kept by somebody between, for others than who asked.

use std::convert::Infallible;
use std::task::{Context, Poll};

use axum::Router;
use axum::http::{Method, Request, header};
use axum::routing::future::RouteFuture;
use hyper::body::Incoming;
use tower::{Service, ServiceBuilder};
use tower_http::compression::CompressionLayer;
use tower_http::compression::predicate::{DefaultPredicate, Predicate as _, SizeAbove};

use super::origin;
use crate::config::Config;

/// A shorter answer fits into one packet as it is.
const COMPRESS_FROM_BYTES: u16 = 1024;

/// The API as connections reach it.
#[derive(Clone)]
pub(crate) struct Api {
    plain: Router,
    layered: Router,
}

impl Api {
    pub(super) fn new(plain: Router, config: &Config) -> Self {
        let worth_it = DefaultPredicate::new().and(SizeAbove::new(COMPRESS_FROM_BYTES));
        let dress =
            ServiceBuilder::new().layer(origin::cors(config)).layer(CompressionLayer::new().compress_when(worth_it));
        Self { layered: plain.clone().layer(dress), plain }
    }
}

impl Service<Request<Incoming>> for Api {
    type Response = axum::response::Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<Incoming>) -> Self::Future {
        match needs_no_layers(&request) {
            true => self.plain.call(request),
            false => self.layered.call(request),
        }
    }
}

fn needs_no_layers<B>(request: &Request<B>) -> bool {
    let says_something = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    let asks_for = |name| request.headers().contains_key(name);
    says_something && !asks_for(header::ORIGIN) && !asks_for(header::ACCEPT_ENCODING)
}

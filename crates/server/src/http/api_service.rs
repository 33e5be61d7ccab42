//! The service that connections call: the router, with CORS and compression only for requests that need them.
//!
//! A write request (POST, PUT, PATCH, DELETE) without `Origin` and `Accept-Encoding` skips both layers, because they
//! would not change its response. Read requests always pass them: a cache may reuse their responses for other clients,
//! so the `Vary` header must be there.

use std::convert::Infallible;
use std::net::IpAddr;
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
use crate::wrong_codes::Peer;

/// A shorter response fits into one packet, so compressing it saves nothing.
const COMPRESS_FROM_BYTES: u16 = 1024;

/// The router twice: without and with the CORS and compression layers.
#[derive(Clone)]
pub(crate) struct Api {
    plain: Router,
    layered: Router,
    /// The client of the connection.
    peer: Option<Peer>,
}

impl Api {
    /// The service for the connection of this client.
    pub(crate) fn for_peer(&self, address: IpAddr) -> Self {
        Self { peer: Some(Peer(address)), ..self.clone() }
    }

    pub(super) fn new(plain: Router, config: &Config) -> Self {
        let compressible = DefaultPredicate::new().and(SizeAbove::new(COMPRESS_FROM_BYTES));
        let compression = CompressionLayer::new().compress_when(compressible);
        let layers = ServiceBuilder::new().layer(origin::cors(config)).layer(compression);
        Self { layered: plain.clone().layer(layers), plain, peer: None }
    }
}

impl Service<Request<Incoming>> for Api {
    type Response = axum::response::Response;
    type Error = Infallible;
    type Future = RouteFuture<Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, mut request: Request<Incoming>) -> Self::Future {
        if let Some(peer) = self.peer {
            request.extensions_mut().insert(peer);
        }
        match needs_no_layers(&request) {
            true => self.plain.call(request),
            false => self.layered.call(request),
        }
    }
}

fn needs_no_layers<B>(request: &Request<B>) -> bool {
    let is_write = matches!(*request.method(), Method::POST | Method::PUT | Method::PATCH | Method::DELETE);
    let has_header = |name| request.headers().contains_key(name);
    is_write && !has_header(header::ORIGIN) && !has_header(header::ACCEPT_ENCODING)
}

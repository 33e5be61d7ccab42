use axum::body::Bytes;
use axum::http::HeaderMap;
use bellwire_store::StoreError;

/// A call of a provider to the hub.
#[derive(Clone, Debug)]
pub struct WebhookCall {
    /// The headers. The channel authenticates the call by them.
    pub headers: HeaderMap,
    /// The body.
    pub body: Bytes,
}

/// What a channel says about a call of its provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WebhookAnswer {
    /// What it brought is stored.
    Taken,
    /// The channel takes no calls.
    NotFound,
    /// The call is not from the provider.
    Unauthorized,
    /// The body cannot be read; the text says what is wrong.
    Invalid(&'static str),
    /// It could not be stored; the provider calls again.
    Failed(StoreError),
}

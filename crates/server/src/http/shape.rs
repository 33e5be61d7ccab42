//! Request and response types of handlers, as traits. The route table lists the types, the compiler checks the handlers
//! against them, and the OpenAPI document is generated from them.

use std::sync::Arc;

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Serialize;

use super::body::Body;
use super::field::PathId;
use super::openapi::Operation;
use super::{ApiError, Hub};
use crate::auth::Identity;

/// The part of a request besides its path, as the route table lists it: a [`Body`], a [`Query`](super::query::Query), or `()`.
pub(super) trait RequestShape {
    /// Whether it is a query.
    const HAS_QUERY: bool = false;
    /// Adds it to the OpenAPI document.
    fn describe(operation: &mut Operation<'_>);
}

/// A successful response.
pub(super) trait ResponseShape {
    /// The HTTP status.
    const STATUS: StatusCode;
    /// Adds its body to the OpenAPI document.
    fn describe(operation: &mut Operation<'_>);
}

/// The last argument of a handler, linked to the request type that the route table must list.
pub(super) trait HandlerArgument {
    /// The type in the route table.
    type Request: RequestShape;
}

/// A handler with request type `Q` and response type `R`.
pub(super) trait HandlerShape<Arguments, Q, R> {}

/// Returns the handler. It only compiles if the handler has the types of the route table.
pub(super) fn shaped<Arguments, Q: RequestShape, R: ResponseShape, H: HandlerShape<Arguments, Q, R>>(handler: H) -> H {
    handler
}

/// The usual size of the response to one event, in bytes.
const RESPONSE_BYTES_USUAL: usize = 512;

/// 201. The response may contain a secret that is shown only once, so it has `Cache-Control: no-store`.
pub(super) struct Created<T>(pub(super) T);

/// 202. The data is durable.
pub(super) struct Accepted<T>(pub(super) T);

/// 204.
pub(super) struct NoContent;

/// What every list answers.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "{T}List")]
pub(super) struct List<T> {
    /// What there is, in order.
    pub(super) items: Vec<T>,
    /// Where to go on: the `cursor` of the next call. Null at the end.
    pub(super) next_cursor: Option<String>,
}

impl<T> List<T> {
    /// A list with a single page.
    pub(super) fn whole(items: Vec<T>) -> Self {
        Self { items, next_cursor: None }
    }
}

impl RequestShape for () {
    fn describe(_: &mut Operation<'_>) {}
}

impl<T: JsonSchema> RequestShape for Body<T> {
    fn describe(operation: &mut Operation<'_>) {
        let schema = operation.requests.subschema_for::<T>();
        operation.body("application/json", schema.to_value());
    }
}

impl<T: JsonSchema> ResponseShape for Json<T> {
    const STATUS: StatusCode = StatusCode::OK;
    fn describe(operation: &mut Operation<'_>) {
        operation.answer_json::<T>();
    }
}

impl<T: JsonSchema> ResponseShape for Created<T> {
    const STATUS: StatusCode = StatusCode::CREATED;
    fn describe(operation: &mut Operation<'_>) {
        operation.answer_json::<T>();
    }
}

impl<T: JsonSchema> ResponseShape for Accepted<T> {
    const STATUS: StatusCode = StatusCode::ACCEPTED;
    fn describe(operation: &mut Operation<'_>) {
        operation.answer_json::<T>();
    }
}

impl ResponseShape for NoContent {
    const STATUS: StatusCode = StatusCode::NO_CONTENT;
    fn describe(_: &mut Operation<'_>) {}
}

impl<T: Serialize> IntoResponse for Created<T> {
    fn into_response(self) -> Response {
        (StatusCode::CREATED, [(header::CACHE_CONTROL, "no-store")], Json(self.0)).into_response()
    }
}

impl<T: Serialize> IntoResponse for Accepted<T> {
    fn into_response(self) -> Response {
        // This is the most frequent response, so serialize into one allocation of the usual size.
        let mut json = Vec::with_capacity(RESPONSE_BYTES_USUAL);
        serde_json::to_writer(&mut json, &self.0).expect("a response can be serialized");
        let mut response = Response::new(json.into());
        *response.status_mut() = StatusCode::ACCEPTED;
        response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
        response
    }
}

impl IntoResponse for NoContent {
    fn into_response(self) -> Response {
        StatusCode::NO_CONTENT.into_response()
    }
}

impl HandlerArgument for State<Hub> {
    type Request = ();
}
impl HandlerArgument for Extension<Arc<Identity>> {
    type Request = ();
}
impl HandlerArgument for HeaderMap {
    type Request = ();
}
impl HandlerArgument for PathId {
    type Request = ();
}
impl<T: JsonSchema> HandlerArgument for Body<T> {
    type Request = Self;
}

impl<F, Answer, R> HandlerShape<(), (), R> for F
where
    F: Fn() -> Answer,
    Answer: Future<Output = Result<R, ApiError>>,
{
}

macro_rules! shaped {
    ($($argument:ident)* ; $last:ident) => {
        impl<F, Answer, R, $($argument,)* $last> HandlerShape<($($argument,)* $last,), $last::Request, R> for F
        where
            F: Fn($($argument,)* $last) -> Answer,
            Answer: Future<Output = Result<R, ApiError>>,
            $last: HandlerArgument,
        {
        }
    };
}

shaped!(; A);
shaped!(A; B);
shaped!(A B; C);
shaped!(A B C; D);
shaped!(A B C D; E);
shaped!(A B C D E; G);

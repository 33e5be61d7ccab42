//! What a handler takes and what it answers, said in types: the router's table names them, the compiler holds the
//! handler to them, and the description of the API is made from them.

use std::sync::Arc;

use axum::extract::{FromRequestParts, State};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::{Extension, Json};
use schemars::JsonSchema;
use serde::Serialize;
use serde::de::DeserializeOwned;

use super::body::Body;
use super::field::PathId;
use super::openapi::Operation;
use super::{ApiError, Hub};
use crate::auth::Identity;

/// What a request carries besides its path, as the table names it: a [`Body`], a [`Query`], or nothing.
pub(super) trait RequestShape {
    /// Whether it is in the URL.
    const HAS_QUERY: bool = false;
    /// Writes it into the description.
    fn describe(operation: &mut Operation<'_>);
}

/// What a handler answers when all is well.
pub(super) trait ResponseShape {
    /// Its status.
    const STATUS: StatusCode;
    /// Writes its body into the description.
    fn describe(operation: &mut Operation<'_>);
}

/// An argument of a handler, and what it asks of the request.
pub(super) trait HandlerArgument {
    /// What the table must name.
    type Request: RequestShape;
}

/// A handler whose last argument takes a `Q` and which answers an `R`.
pub(super) trait HandlerShape<Arguments, Q, R> {}

/// The handler itself; it does not compile unless it is what the table says.
pub(super) fn shaped<Arguments, Q: RequestShape, R: ResponseShape, H: HandlerShape<Arguments, Q, R>>(handler: H) -> H {
    handler
}

/// The query of a URL.
#[derive(Clone, Debug)]
pub(super) struct Query<T>(pub(super) T);

/// The most that a page of any list holds.
pub(super) const PAGE_MAX: usize = 100;
const PAGE_DEFAULT: usize = 20;
/// How many bytes the answer to one event has at most, as a rule.
const ANSWER_USUAL: usize = 512;

/// How many a page holds.
pub(super) fn limit(asked: Option<usize>) -> Result<usize, ApiError> {
    let limit = asked.unwrap_or(PAGE_DEFAULT);
    match (1..=PAGE_MAX).contains(&limit) {
        true => Ok(limit),
        false => Err(ApiError::invalid("limit", format!("is {limit}; 1 to {PAGE_MAX} is allowed"))),
    }
}

/// 201: made. The answer may show a secret that is shown only once, so no cache may keep it.
pub(super) struct Created<T>(pub(super) T);

/// 202: on disk, with what it came to.
pub(super) struct Accepted<T>(pub(super) T);

/// 204: done, and nothing to say.
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
    /// A list that is all on one page.
    pub(super) fn whole(items: Vec<T>) -> Self {
        Self { items, next_cursor: None }
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = axum::extract::Query::<T>::from_request_parts(parts, state).await;
        query.map(|query| Self(query.0)).map_err(|rejection| {
            let text = rejection.body_text();
            let message = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
            // Either `limit: not a number`, or an unknown field between backquotes.
            let named = message.split_once(": ").filter(|(field, _)| !field.contains(' '));
            let field = named.map(|(field, _)| field).or_else(|| message.split('`').nth(1)).unwrap_or("query");
            let message = match named {
                // Every list has the same limit, and it is the only number in a query.
                Some(("limit", _)) => format!("must be a whole number from 1 to {PAGE_MAX}"),
                named => named.map_or(message, |(_, message)| message).to_owned(),
            };
            ApiError::invalid(field, message)
        })
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

impl<T: JsonSchema> RequestShape for Query<T> {
    const HAS_QUERY: bool = true;
    fn describe(operation: &mut Operation<'_>) {
        let schema = T::json_schema(operation.requests);
        operation.query(&schema.to_value());
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
        // The most frequent answer of all, written straight into memory that is nearly always enough.
        let mut json = Vec::with_capacity(ANSWER_USUAL);
        serde_json::to_writer(&mut json, &self.0).expect("an answer is JSON");
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
impl<T: JsonSchema> HandlerArgument for Query<T> {
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

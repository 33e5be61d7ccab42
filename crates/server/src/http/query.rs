//! Query parameters: deserialized into the handler's type, or refused with the name of the invalid parameter.

use std::collections::HashSet;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::{DeserializeOwned, Deserializer, Error as _};

use super::ApiError;
use super::body::clipped;
use super::field::BoundedInteger;
use super::openapi::Operation;
use super::shape::{HandlerArgument, RequestShape};

/// An extractor for the URL's query.
#[derive(Clone, Debug)]
pub(super) struct Query<T>(pub(super) T);

const PAGE_MAX: usize = 100;
const PAGE_DEFAULT: usize = 20;

/// The parameter `limit` of every list: a page size from 1 to [`PAGE_MAX`].
#[derive(Copy, Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(inline)]
pub(super) struct PageLimit(#[schemars(with = "BoundedInteger<1, { PAGE_MAX as u64 }>")] pub(super) usize);

impl Default for PageLimit {
    fn default() -> Self {
        Self(PAGE_DEFAULT)
    }
}

impl<'de> Deserialize<'de> for PageLimit {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let limit = String::deserialize(deserializer)?.parse().ok();
        let limit = limit.filter(|limit| (1..=PAGE_MAX).contains(limit)).map(Self);
        limit.ok_or_else(|| D::Error::custom(format_args!("must be a whole number from 1 to {PAGE_MAX}")))
    }
}

impl<T: DeserializeOwned, S: Send + Sync> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        read(parts.uri.query().unwrap_or_default()).map(Self)
    }
}

fn read<T: DeserializeOwned>(query: &str) -> Result<T, ApiError> {
    let parameters = form_urlencoded::parse(query.as_bytes());
    let mut names = HashSet::new();
    if let Some((name, _)) = parameters.clone().find(|(name, _)| !names.insert(name.clone())) {
        return Err(ApiError::invalid(clipped(&name), "is there twice; send it once"));
    }
    let deserializer = serde_urlencoded::Deserializer::new(parameters);
    serde_path_to_error::deserialize(deserializer)
        .map_err(|error| ApiError::invalid(clipped(&error.path().to_string()), clipped(&error.inner().to_string())))
}

impl<T: JsonSchema> RequestShape for Query<T> {
    const HAS_QUERY: bool = true;
    fn describe(operation: &mut Operation<'_>) {
        let schema = T::json_schema(operation.requests);
        operation.query(&schema.to_value());
    }
}

impl<T: JsonSchema> HandlerArgument for Query<T> {
    type Request = Self;
}

#[cfg(test)]
mod tests {
    use super::super::field::EnumText;
    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Page {
        state: Option<EnumText<bellwire_core::Severity>>,
        limit: Option<PageLimit>,
    }

    #[test]
    fn parameters_are_optional_and_percent_decoded() {
        let page: Page = read("limit=%35&state=error").expect("the query is valid");
        assert_eq!(
            (page.limit, page.state.map(|state| state.0)),
            (Some(PageLimit(5)), Some(bellwire_core::Severity::Error))
        );
        let page: Page = read("").expect("nothing is required");
        assert!(page.limit.is_none() && page.state.is_none());
    }

    #[test]
    fn an_invalid_parameter_is_named() {
        let range = "must be a whole number from 1 to 100";
        let wrong = [
            ("limit=0", "limit", range),
            ("limit=101", "limit", range),
            ("limit=abc", "limit", range),
            ("limit=-1", "limit", range),
            ("limit=", "limit", range),
            ("limit=5&limit=5", "limit", "is there twice; send it once"),
            ("state=x:%20y", "state", "'x: y' must be one of: debug, info, warning, error, critical"),
            ("colour=red", "colour", "unknown field `colour`, expected `state` or `limit`"),
            ("a%60b:%20c=1", "a`b: c", "unknown field `a`b: c`, expected `state` or `limit`"),
        ];
        for (query, field, message) in wrong {
            let error = read::<Page>(query).expect_err("the query is invalid");
            assert_eq!((error.field.as_deref(), &*error.message), (Some(field), message), "{query}");
        }
    }
}

//! What a 404 or 405 tells the caller to do.
//!
//! A hint depends on the token and the request only, never on whether the resource exists: others' resources look the
//! same as missing ones.

use axum::extract::{MatchedPath, Request};
use axum::http::StatusCode;
use bellwire_core::nearest;

use super::ApiError;
use super::router::{ROUTES, Route};
use crate::auth::Identity;

/// The most bytes of a path that are compared with the known paths and repeated in the error.
const PATH_MAX: usize = 200;

/// Adds a hint to the 404 of a handler, unless the handler gave one.
pub(super) fn explained(error: ApiError, route: &Route, identity: &Identity, names_owner: bool) -> ApiError {
    if error.hint.is_some() || !route.path.starts_with("/v1/") {
        return error;
    }
    let caller = &identity.caller;
    let sees = match (&caller.user_id, &caller.conversation_id) {
        (Some(user), Some(conversation)) => Some(format!("the conversation '{conversation}' of the user '{user}'")),
        (Some(user), None) => Some(format!("what belongs to the user '{user}'")),
        (None, Some(conversation)) => Some(format!("the conversation '{conversation}'")),
        (None, None) => None,
    };
    let sees = sees.map(|sees| format!("this token can see only {sees}"));
    let create = "PUT /v1/conversations/{id} creates a conversation";
    let creation = match (route.path, &caller.user_id) {
        _ if caller.conversation_id.is_some() => None,
        ("/v1/events", None) => Some(format!("name the owner too, with user_id; or {create}")),
        (path, None) if path.starts_with("/v1/conversations/") && !names_owner => {
            Some(format!("name the owner with ?user_id=; {create}"))
        }
        (path, _) if path.starts_with("/v1/conversations/") => Some(create.to_owned()),
        _ => None,
    };
    let parts: Vec<String> = sees.into_iter().chain(creation).collect();
    ApiError { hint: (!parts.is_empty()).then(|| parts.join("; ")), ..error }
}

/// The error for a path that no route has: names the nearest path.
pub(super) async fn unknown_path(request: Request) -> ApiError {
    let path = request.uri().path();
    let nearest = (path.len() <= PATH_MAX).then(|| nearest_path(path)).flatten();
    let nearest = nearest.map_or_else(String::new, |path| format!("did you mean {path}? "));
    let shown: String = path.chars().take(PATH_MAX).collect();
    let error = ApiError::new(StatusCode::NOT_FOUND, "not_found", format!("there is no path {shown}"));
    ApiError { hint: Some(format!("{nearest}GET /docs describes every path")), ..error }
}

/// The error for a method that the path does not have: names those it has.
pub(super) async fn unknown_method(request: Request) -> ApiError {
    let path = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let methods: Vec<&str> = ROUTES.iter().filter(|route| route.path == path).map(|route| route.method).collect();
    let message = format!("this path has no method {}; it has {}", request.method(), methods.join(", "));
    ApiError::new(StatusCode::METHOD_NOT_ALLOWED, "method_not_allowed", message)
}

/// The path of the route table that is most like this one. A parameter equals every segment.
fn nearest_path(path: &str) -> Option<&'static str> {
    let filled = |route: &Route| {
        let mut segments = path.split('/').map(Some).chain(std::iter::repeat(None));
        let segments = route.path.split('/').map(|segment| match segments.next().flatten() {
            Some(given) if segment.starts_with('{') => given,
            _ => segment,
        });
        segments.collect::<Vec<_>>().join("/")
    };
    let candidates: Vec<(String, &'static str)> = ROUTES.iter().map(|route| (filled(route), route.path)).collect();
    let found = nearest(path, candidates.iter().map(|(filled, _)| filled.as_str()))?;
    candidates.iter().find(|(filled, _)| filled == found).map(|(_, path)| *path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_mistyped_path_finds_the_nearest_one() {
        assert_eq!(nearest_path("/v1/event"), Some("/v1/events"));
        assert_eq!(nearest_path("/v1/users/ada/setings"), Some("/v1/users/{id}/settings"));
        assert_eq!(nearest_path("/v1/conversation/chat/inject"), Some("/v1/conversations/{id}/inject"));
        assert_eq!(nearest_path("/health"), Some("/healthz"));
        assert_eq!(nearest_path("/wp-login.php"), None);
    }
}

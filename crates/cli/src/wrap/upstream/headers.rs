//! The headers of MCP's HTTP transport.

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::wrap::message::{fields, string};

pub(super) const SESSION: &str = "mcp-session-id";
const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// What the answer to `initialize` settles for all further requests.
pub(super) fn settled(response: &HeaderMap, body: &str) -> HeaderMap {
    let version = fields(body, ["result"]).and_then(|[result]| fields(result?, ["protocolVersion"]));
    let version = version.and_then(|[version]| HeaderValue::from_str(&string(version)?).ok());
    let session = response.get(SESSION).cloned();
    let session = session.map(|id| (HeaderName::from_static(SESSION), id));
    version.map(|version| (VERSION, version)).into_iter().chain(session).collect()
}

/// What a request of the revision 2026-07-28 and later says of itself in headers: there, each names its revision in `_meta`.
pub(super) fn of_request(message: &str) -> HeaderMap {
    stateless(message).unwrap_or_default()
}

fn stateless(message: &str) -> Option<HeaderMap> {
    let [method, params] = fields(message, ["method", "params"])?;
    let (method, [meta]) = (string(method)?, fields(params?, ["_meta"])?);
    let [version] = fields(meta?, ["io.modelcontextprotocol/protocolVersion"])?;
    let source = match method.as_str() {
        "tools/call" | "prompts/get" => "name",
        "resources/read" => "uri",
        "tasks/get" | "tasks/update" | "tasks/cancel" => "taskId",
        _ => "",
    };
    let name = fields(params?, [source]).and_then(|[name]| string(name));
    let each = [(VERSION, string(version)), (METHOD, Some(method)), (NAME, name)];
    Some(each.into_iter().filter_map(|(header, text)| Some((header, value(&text?)?))).collect())
}

/// A text as a header's value: in Base64 between marks, where it could not be read back as it is.
fn value(text: &str) -> Option<HeaderValue> {
    let is_plain = text.bytes().all(|byte| matches!(byte, b' '..=b'~'))
        && text.trim() == text
        && !(text.starts_with("=?base64?") && text.ends_with("?="));
    let encoded = || format!("=?base64?{}?=", BASE64_STANDARD.encode(text));
    HeaderValue::from_str(&if is_plain { text.to_owned() } else { encoded() }).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handshake_settles_the_session_and_the_revision() {
        let mut response = HeaderMap::new();
        response.insert(SESSION, HeaderValue::from_static("s1"));
        let found = settled(&response, r#"{"id":0,"result":{"protocolVersion":"2025-06-18"}}"#);
        assert!(found[SESSION] == "s1" && found[VERSION] == "2025-06-18", "{found:?}");
        assert!(settled(&HeaderMap::new(), "nonsense").is_empty());
    }

    #[test]
    fn a_stateless_request_names_itself_in_headers() {
        let meta = r#""_meta":{"io.modelcontextprotocol/protocolVersion":"2026-07-28"}"#;
        let found = of_request(&format!(r#"{{"id":1,"method":"tools/call","params":{{"name":"grün",{meta}}}}}"#));
        assert!(found[VERSION] == "2026-07-28" && found[METHOD] == "tools/call", "{found:?}");
        assert_eq!(found[NAME], "=?base64?Z3LDvG4=?=");
        let listed = of_request(&format!(r#"{{"id":1,"method":"tools/list","params":{{{meta}}}}}"#));
        assert!(!listed.contains_key(NAME));
        assert!(of_request(r#"{"id":1,"method":"tools/call","params":{"name":"a"}}"#).is_empty());
    }
}

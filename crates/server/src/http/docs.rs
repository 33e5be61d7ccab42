//! The API documentation as one HTML page, rendered once at start from the OpenAPI document. It works without scripts and
//! loads nothing from other origins.

mod call;
mod schema;

use std::fmt::Write as _;

use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::ApiError;
use super::openapi::Operation;
use super::shape::{HandlerArgument, ResponseShape};

const STYLE: &str = include_str!("docs/page.css");
const SCRIPT: &str = include_str!("docs/page.js");

/// The rendered page and its content security policy.
#[derive(Clone)]
pub(super) struct DocsPage {
    html: Bytes,
    policy: HeaderValue,
}

impl DocsPage {
    pub(super) fn of(document: &Value) -> Self {
        // Only the page's own inline script and style may run; nothing may be fetched.
        let policy = format!(
            "default-src 'none'; style-src 'sha256-{}'; script-src 'sha256-{}'; img-src data:; base-uri 'none'; \
             form-action 'none'; frame-ancestors 'none'",
            digest(STYLE),
            digest(SCRIPT)
        );
        let policy = HeaderValue::from_str(&policy).expect("the policy is ASCII");
        Self { html: page(document).into(), policy }
    }
}

/// Serves the documentation page.
pub(super) async fn serve(State(page): State<DocsPage>) -> Result<DocsPage, ApiError> {
    Ok(page)
}

impl HandlerArgument for State<DocsPage> {
    type Request = ();
}

impl ResponseShape for DocsPage {
    const STATUS: StatusCode = StatusCode::OK;
    fn describe(operation: &mut Operation<'_>) {
        operation.answer("text/html", json!({ "type": "string" }));
    }
}

impl IntoResponse for DocsPage {
    fn into_response(self) -> Response {
        let headers = [
            (header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8")),
            (header::CONTENT_SECURITY_POLICY, self.policy),
            (header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff")),
            (header::REFERRER_POLICY, HeaderValue::from_static("no-referrer")),
        ];
        (headers, self.html).into_response()
    }
}

fn page(document: &Value) -> String {
    let info = &document["info"];
    let (title, version) = (text(&info["title"]), text(&info["version"]));
    let mut contents = String::new();
    let mut calls = String::new();
    for tag in list(&document["tags"]) {
        let (name, id) = (text(&tag["name"]), anchor(text(&tag["name"])));
        let (mut links, mut articles) = (String::new(), String::new());
        for (path, method, operation) in operations(document).filter(|(.., one)| one["tags"][0] == tag["name"]) {
            links += &call::link(path, method, operation);
            articles += &call::article(document, path, method, operation);
        }
        add(&mut contents, format_args!("<div data-group><h2>{}</h2><ul>{links}</ul></div>", escape(name)));
        let heading = format_args!("<h2 id=\"{id}\">{}</h2>", escape(name)).to_string();
        add(&mut calls, format_args!("<section data-group aria-labelledby=\"{id}\">{heading}{articles}</section>"));
    }
    let (mut links, mut shapes) = (String::new(), String::new());
    for (name, one) in document["components"]["schemas"].as_object().into_iter().flatten() {
        links += &schema::link(name);
        shapes += &schema::article(name, one);
    }
    add(&mut contents, format_args!("<div data-group><h2>Shapes</h2><ul>{links}</ul></div>"));
    add(
        &mut calls,
        format_args!("<section data-group aria-labelledby=\"shapes\"><h2 id=\"shapes\">Shapes</h2>{shapes}</section>"),
    );
    let about = prose(text(&info["description"]));
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{title} API</title>\n\
         <link rel=\"icon\" href=\"data:,\">\n<style>{STYLE}</style>\n\
         <a class=\"skip\" href=\"#main\">To the calls</a>\n\
         <div class=\"page\"><div class=\"side\"><h1>{title} API</h1>\
         <p>Version {version} · <a href=\"/openapi.json\">openapi.json</a></p>\
         <label class=\"filter\" hidden>Filter (press /)<input id=\"filter\" type=\"search\" autocomplete=\"off\" \
         spellcheck=\"false\"><span class=\"found\" id=\"found\" role=\"status\"></span></label>\
         <nav aria-label=\"Calls and shapes\" tabindex=\"-1\">{contents}</nav></div>\n\
         <main id=\"main\"><section class=\"about\"><h2>About</h2>{about}</section>\n{calls}</main></div>\n\
         <script>{SCRIPT}</script>\n</html>\n"
    )
}

/// Every operation of the OpenAPI document as (path, method, operation).
fn operations(document: &Value) -> impl Iterator<Item = (&str, &str, &Value)> {
    let paths = document["paths"].as_object().into_iter().flatten();
    paths.flat_map(|(path, methods)| {
        let methods = methods.as_object().into_iter().flatten();
        methods.map(move |(method, operation)| (path.as_str(), method.as_str(), operation))
    })
}

/// Follows a `$ref`; any other value is returned unchanged.
fn resolved<'a>(document: &'a Value, value: &'a Value) -> &'a Value {
    let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    pointer.and_then(|pointer| document.pointer(pointer)).unwrap_or(value)
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn list(value: &Value) -> impl Iterator<Item = &Value> {
    value.as_array().into_iter().flatten()
}

fn anchor(name: &str) -> String {
    name.to_ascii_lowercase().replace(' ', "-")
}

fn add(html: &mut String, more: std::fmt::Arguments<'_>) {
    html.write_fmt(more).expect("writing to a String never fails");
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Renders paragraphs as HTML; text between backquotes becomes `<code>`.
fn prose(text: &str) -> String {
    let paragraphs = text.split("\n\n").map(|paragraph| format!("<p>{}</p>", inline(paragraph)));
    paragraphs.collect()
}

/// Renders one paragraph's text as HTML; text between backquotes becomes `<code>`.
fn inline(text: &str) -> String {
    let part = |(at, part): (usize, &str)| match at % 2 {
        0 => escape(part),
        _ => format!("<code>{}</code>", escape(part)),
    };
    text.split('`').enumerate().map(part).collect()
}

/// Renders an example value as a `<pre>` block.
fn example(value: &Value) -> String {
    let shown = match value {
        Value::String(text) => text.clone(),
        other => serde_json::to_string_pretty(other).expect("a JSON value can always be serialized"),
    };
    format!("<pre tabindex=\"0\" aria-label=\"Example\"><code>{}</code></pre>", escape(shown.trim_end()))
}

/// The SHA-256 of an inline script or style in base64, as a content security policy lists it.
pub(super) fn digest(text: &str) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut base64 = String::new();
    for bytes in Sha256::digest(text).chunks(3) {
        let bits = bytes.iter().fold(0_u32, |bits, byte| bits << 8 | u32::from(*byte)) << (8 * (3 - bytes.len()));
        for at in 0..4 {
            let letter = char::from(LETTERS[(bits >> (18 - 6 * at) & 63) as usize]);
            base64.push(if at <= bytes.len() { letter } else { '=' });
        }
    }
    base64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_are_standard_base64_with_padding() {
        assert_eq!(digest(""), "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
        assert_eq!(digest("abc"), "ungWv48Bz+pBQUDeXa4iI7ADYaOWF3qctBD/YfIAFa0=");
    }

    #[test]
    fn descriptions_are_escaped() {
        assert_eq!(inline("a <b> `c < d` \"e\""), "a &lt;b&gt; <code>c &lt; d</code> &quot;e&quot;");
    }
}

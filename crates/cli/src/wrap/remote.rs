//! A wrapped server that is reached over streamable HTTP.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};

use crate::client::http_for;

/// An unused connection is closed after so long.
const IDLE_MAX: Duration = Duration::from_secs(60);

/// The URL of a server, and what is said in each request to it.
pub(crate) struct Remote {
    pub(super) http: reqwest::Client,
    pub(super) url: reqwest::Url,
    pub(super) headers: HeaderMap,
}

impl Remote {
    /// `headers` are written `NAME: VALUE`; `${VARIABLE}` in a value stands for a variable of the environment.
    pub(crate) fn new(url: &str, headers: &[String]) -> Result<Self> {
        let http =
            http_for(url)?.pool_idle_timeout(IDLE_MAX).tcp_nodelay(true).build().context("cannot start the client")?;
        let headers: Result<HeaderMap> =
            headers.iter().map(|text| header(text, |name| std::env::var(name).ok())).collect();
        Ok(Self { http, url: reqwest::Url::parse(url).context("--url is not an address")?, headers: headers? })
    }

    /// The address without what may be a secret in it: user, path and query.
    pub(super) fn shown(&self) -> String {
        self.url.origin().ascii_serialization()
    }
}

/// A header of the command line. Errors do not show the value: it may be a secret.
fn header(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<(HeaderName, HeaderValue)> {
    let Some((name, value)) = text.split_once(':') else {
        bail!("--header is written 'NAME: VALUE', such as 'Authorization: Bearer ${{TOKEN}}'");
    };
    let name = HeaderName::from_bytes(name.trim().as_bytes())
        .with_context(|| format!("--header: '{}' is not the name of a header", name.trim()))?;
    let mut filled = String::new();
    let mut rest = value.trim();
    while let Some((before, (variable_name, after))) =
        rest.split_once("${").and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
    {
        filled.push_str(before);
        let value = variable(variable_name).filter(|value| !value.is_empty());
        filled.push_str(&value.with_context(|| format!("--header {name}: the variable {variable_name} is not set"))?);
        rest = after;
    }
    filled.push_str(rest);
    let mut value = HeaderValue::from_str(&filled).with_context(|| format!("--header {name}: not a header's value"))?;
    value.set_sensitive(true);
    Ok((name, value))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_in_a_header_are_filled_in_and_errors_show_no_value() {
        let variable = |name: &str| (name == "TOKEN").then(|| "s3cret".to_owned());
        let (name, value) = header("Authorization: Bearer ${TOKEN}!", variable).expect("it is valid");
        assert_eq!((name.as_str(), value.to_str().ok()), ("authorization", Some("Bearer s3cret!")));
        assert!(value.is_sensitive());
        for (wrong, expected) in [
            ("no colon", "--header is written 'NAME: VALUE', such as 'Authorization: Bearer ${TOKEN}'"),
            ("X-Key: ${NONE}", "--header x-key: the variable NONE is not set"),
            ("a b: c", "--header: 'a b' is not the name of a header"),
            ("X-Key: ${TOKEN}\u{7}", "--header x-key: not a header's value"),
        ] {
            assert_eq!(header(wrong, variable).expect_err("it is wrong").to_string(), expected);
        }
    }
}

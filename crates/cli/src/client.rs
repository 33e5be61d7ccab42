use anyhow::{Context as _, Result, bail};
use reqwest::Method;
use serde_json::Value;

use crate::args::Connection;
use crate::data_dir;

/// A running hub, as a command talks to it.
pub(crate) struct Client {
    http: reqwest::Client,
    runtime: tokio::runtime::Runtime,
    url: String,
    token: String,
}

impl Client {
    pub(crate) fn new(connection: &Connection) -> Result<Self> {
        let token = match &connection.token {
            Some(token) => token.clone(),
            None => {
                let dir = data_dir::resolve(connection.data_dir.as_deref())?;
                data_dir::admin_token(&dir)?.with_context(|| {
                    format!("no token: say --token or BELLWIRE_TOKEN ({} has no admin.token)", dir.display())
                })?
            }
        };
        let runtime = tokio::runtime::Runtime::new().context("cannot start")?;
        let url = connection.url.trim_end_matches('/').to_owned();
        Ok(Self { http: reqwest::Client::new(), runtime, url, token })
    }

    /// One call. What the hub refuses becomes an error in its own words.
    pub(crate) fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
        self.runtime.block_on(async {
            let mut request = self.http.request(method, format!("{}{path}", self.url)).bearer_auth(&self.token);
            if let Some(body) = body {
                request = request.json(body);
            }
            let sent = request.send().await;
            let response =
                sent.with_context(|| format!("no hub answers at {} (start one: bellwire serve)", self.url))?;
            let status = response.status();
            let text = response.text().await.context("the hub's answer broke off")?;
            let answer: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
            if status.is_success() {
                return Ok(answer);
            }
            let error = &answer["error"];
            let message = error["message"].as_str().unwrap_or("the hub gave no reason");
            match error["field"].as_str() {
                Some(field) => bail!("{field}: {message} ({status})"),
                None => bail!("{message} ({status})"),
            }
        })
    }
}

/// A text as one part of a path: everything that could mean something there is escaped.
pub(crate) fn segment(text: &str) -> String {
    let escape = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => char::from(byte).to_string(),
        _ => format!("%{byte:02X}"),
    };
    text.bytes().map(escape).collect()
}

//! The HTTP client of the commands that talk to a running hub.

mod failure;
mod mcp;
mod sse;

pub(crate) use sse::SseReader;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use bellwire_server::config::Secret;
use clap::Args;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use reqwest::header::{CONTENT_TYPE, HeaderMap, HeaderValue};
use reqwest::{Method, Url};
use serde_json::{Value, json};

use crate::data_dir;
use crate::output::items;
use crate::settings::Settings;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
/// How many pages are read to fill a list. For a page the hub reads at most 5,000 stored rows, so one can be short.
const PAGES_MAX: usize = 40;
/// The hub sends a keep-alive every 15 seconds; after three missed ones the connection counts as lost.
const SILENCE_MAX: Duration = Duration::from_secs(45);

/// How to reach a running hub
#[derive(Args, Clone)]
#[command(next_help_heading = "Connection")]
pub(crate) struct Connection {
    /// The hub's address; by default the hub of this machine's data folder
    #[arg(long, global = true, env = "BELLWIRE_URL", value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The token; by default the admin token of this machine's data folder
    #[arg(long, global = true, env = "BELLWIRE_TOKEN", hide_env_values = true, value_name = "SECRET")]
    pub(crate) token: Option<Secret>,
    #[command(flatten)]
    pub(crate) settings: Settings,
}

pub(crate) struct Client {
    http: reqwest::Client,
    runtime: tokio::runtime::Runtime,
    url: String,
    token: Option<Secret>,
    /// The origin to speak as, instead of the token's.
    origin: Option<HeaderValue>,
}

/// Names the origin of a request.
const ORIGIN_HEADER: &str = "Bellwire-Origin";

/// The headers and JSON body of a 2xx response; the body is null if it was empty.
pub(crate) struct HubResponse {
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Connection {
    /// The hub's URL: from the flag or environment, else from the data folder's `hub.json`, else from `server.listen`.
    pub(crate) fn url(&self) -> Result<String> {
        if let Some(url) = self.url.as_deref().filter(|url| !url.is_empty()) {
            return Ok(url.trim_end_matches('/').to_owned());
        }
        let config = self.settings.load(Vec::new())?.config;
        let noted = config.data_dir.as_deref().and_then(data_dir::note);
        let noted = noted.and_then(|note| note["url"].as_str().map(str::to_owned));
        Ok(noted.unwrap_or_else(|| reachable(config.listen)))
    }

    pub(crate) fn data_dir(&self) -> Result<PathBuf> {
        self.settings.load(Vec::new())?.config.data_dir.context("there is no data folder; say --data-dir")
    }

    /// The token of the flag or the environment.
    pub(crate) fn explicit_token(&self) -> Option<&Secret> {
        self.token.as_ref().filter(|token| !token.reveal().is_empty())
    }

    pub(crate) fn token(&self) -> Result<Secret> {
        if let Some(token) = self.explicit_token() {
            return Ok(token.clone());
        }
        let dir = self.data_dir()?;
        // The first start of a hub makes it.
        data_dir::admin_token(&dir)?.with_context(|| {
            let dir = dir.display();
            format!("no token: {dir} has no admin.token; run bellwire start, or say --token or BELLWIRE_TOKEN")
        })
    }
}

impl Client {
    pub(crate) fn new(connection: &Connection) -> Result<Self> {
        Self::open(connection.url()?, Some(connection.token()?))
    }

    /// A client for this URL; without a token it can call only the public routes.
    pub(crate) fn open(url: String, token: Option<Secret>) -> Result<Self> {
        let http = http_for(&url)?.read_timeout(SILENCE_MAX).build().context("cannot start the client")?;
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        Ok(Self { http, runtime: runtime.context("cannot start")?, url, token, origin: None })
    }

    /// Speaks as this origin. The hub accepts any from an admin's token, and only its own from an agent's.
    pub(crate) fn speaking_as(mut self, origin: Option<&str>) -> Result<Self> {
        let header = origin.map(|origin| HeaderValue::from_bytes(origin.as_bytes())).transpose();
        self.origin = header.context("--origin has characters that no name has")?;
        Ok(self)
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    pub(crate) fn get(&self, path: &str) -> Result<Value> {
        self.call(Method::GET, path, None)
    }

    /// Reads pages until there are `limit` items, or no more. `path` gets how many are missing, and the cursor.
    pub(crate) fn list(
        &self,
        limit: usize,
        mut cursor: Option<String>,
        path: impl Fn(usize, Option<&str>) -> String,
    ) -> Result<Value> {
        let mut found = Vec::new();
        for _ in 0..PAGES_MAX {
            let page = self.get(&path(limit - found.len(), cursor.as_deref()))?;
            found.extend_from_slice(items(&page));
            cursor = page["next_cursor"].as_str().map(str::to_owned);
            if cursor.is_none() || found.len() >= limit {
                break;
            }
        }
        Ok(json!({ "items": found, "next_cursor": cursor }))
    }

    pub(crate) fn post(&self, path: &str, body: &Value) -> Result<Value> {
        self.call(Method::POST, path, Some(body))
    }

    /// Sends a JSON request. A refused request becomes an error with the hub's message.
    pub(crate) fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value> {
        self.send(method, path, body.map(|body| ("application/json", body.to_string()))).map(|answer| answer.body)
    }

    /// Sends a request with an optional body, given as content type and text.
    pub(crate) fn send(&self, method: Method, path: &str, body: Option<(&str, String)>) -> Result<HubResponse> {
        self.runtime.block_on(self.send_async(method, path, body))
    }

    /// [`Client::send`] for callers inside the runtime.
    pub(crate) async fn send_async(
        &self,
        method: Method,
        path: &str,
        body: Option<(&str, String)>,
    ) -> Result<HubResponse> {
        let mut request = self.request(method, path).timeout(CALL_TIMEOUT);
        if let Some((kind, body)) = body {
            request = request.header(CONTENT_TYPE, kind).body(body);
        }
        let response = request.send().await.map_err(|error| failure::describe(&error, &self.url))?;
        let (status, headers) = (response.status(), response.headers().clone());
        let text = response.text().await.map_err(|error| failure::describe(&error, &self.url))?;
        let body = serde_json::from_str::<Value>(&text);
        match (status.is_success(), body) {
            (true, Ok(body)) => Ok(HubResponse { headers, body }),
            (true, Err(_)) if text.is_empty() => Ok(HubResponse { headers, body: Value::Null }),
            (false, Ok(body)) if body["error"]["message"].is_string() => {
                Err(HubRefused::new(status, &headers, &body).into())
            }
            _ => bail!("{} answers ({status}), but not like a Bellwire hub; check the address", self.url),
        }
    }

    /// Opens a stream of server-sent events. Fails with [`HubRefused`] if the hub refuses it.
    pub(crate) async fn stream(&self, path: &str) -> Result<SseReader> {
        let sent = self.request(Method::GET, path).header("Accept", "text/event-stream").send().await;
        let response = sent.map_err(|error| failure::describe(&error, &self.url))?;
        let status = response.status();
        if status.is_success() {
            return Ok(SseReader::new(response));
        }
        let headers = response.headers().clone();
        let text = response.text().await.unwrap_or_default();
        let body: Value = serde_json::from_str(&text).unwrap_or(Value::Null);
        Err(HubRefused::new(status, &headers, &body).into())
    }

    /// [`Client::get`] for callers inside the runtime.
    pub(crate) async fn get_async(&self, path: &str) -> Result<Value> {
        let sent = self.request(Method::GET, path).timeout(CALL_TIMEOUT).send().await;
        let response = sent.and_then(reqwest::Response::error_for_status);
        let response = response.map_err(|error| failure::describe(&error, &self.url))?;
        response.json().await.map_err(|error| failure::describe(&error, &self.url))
    }

    pub(crate) fn block_on<T>(&self, future: impl Future<Output = T>) -> T {
        self.runtime.block_on(future)
    }

    fn request(&self, method: Method, path: &str) -> reqwest::RequestBuilder {
        let mut request = self.http.request(method, format!("{}{path}", self.url));
        if let Some(origin) = &self.origin {
            request = request.header(ORIGIN_HEADER, origin);
        }
        match &self.token {
            Some(token) => request.bearer_auth(token.reveal()),
            None => request,
        }
    }
}

pub(crate) use failure::{HubRefused, describe};

/// An HTTP client for this URL. It follows no redirects: one to another host would send the token there.
pub(crate) fn http_for(url: &str) -> Result<reqwest::ClientBuilder> {
    let parsed = Url::parse(url).ok().filter(|url| matches!(url.scheme(), "http" | "https") && url.has_host());
    let parsed = parsed.with_context(|| format!("'{url}' is not an address; write it like http://127.0.0.1:2355"))?;
    let builder =
        reqwest::Client::builder().connect_timeout(CONNECT_TIMEOUT).redirect(reqwest::redirect::Policy::none());
    let is_here = matches!(parsed.host_str(), Some("localhost" | "127.0.0.1" | "[::1]"));
    Ok(if is_here { builder.no_proxy() } else { builder })
}

/// The URL under which a hub with this listen address is reached from the same machine.
pub(crate) fn reachable(listen: SocketAddr) -> String {
    match (listen.ip().is_unspecified(), listen.is_ipv6()) {
        (true, true) => format!("http://[::1]:{}", listen.port()),
        (true, false) => format!("http://127.0.0.1:{}", listen.port()),
        _ => format!("http://{listen}"),
    }
}

/// The path of a conversation's route such as `/inject`, with `?user_id=` if the owner is given.
pub(crate) fn conversation_path(id: &str, call: &str, user: Option<&str>) -> String {
    let owner = user.map(|user| format!("?user_id={}", segment(user))).unwrap_or_default();
    format!("/v1/conversations/{}{call}{owner}", segment(id))
}

/// A path with the query parameters that have a value.
pub(crate) fn with_query(path: &str, parameters: &[(&str, Option<&str>)]) -> String {
    let given = parameters.iter().filter_map(|(name, value)| Some(format!("{name}={}", segment((*value)?))));
    let query: Vec<String> = given.collect();
    if query.is_empty() { path.to_owned() } else { format!("{path}?{}", query.join("&")) }
}

/// Percent-encodes a text as one path segment or query value.
pub(crate) fn segment(text: &str) -> String {
    const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
    utf8_percent_encode(text, ESCAPED).to_string()
}

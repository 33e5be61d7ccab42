//! A small HTTP/1.1 client for calls to other processes. It tells apart what callers must know: whether a request was sent.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use axum::http::{HeaderMap, Request, StatusCode, Uri};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// The timeout of connecting, with the TLS handshake.
pub(crate) const CONNECT_MAX: Duration = Duration::from_secs(10);
/// A connection that was unused for longer is not used again: the server may be closing it just now.
const IDLE_MAX: Duration = Duration::from_secs(15);
/// How many unused connections stay open.
const IDLE_COUNT_MAX: usize = 64;

type Connection = SendRequest<Full<Bytes>>;

/// The client of one server. Connections are used again.
pub(crate) struct HttpClient {
    /// Host and port, as they stand in the URL.
    authority: String,
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
    idle: Mutex<Vec<(Connection, Instant)>>,
}

/// An answer, with its whole body.
pub(crate) struct HttpAnswer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Bytes,
}

/// Why there is no answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum HttpError {
    /// No byte of the request was sent.
    NotSent {
        /// What went wrong.
        reason: String,
        /// Whether the time was up.
        is_timeout: bool,
    },
    /// The request went out, and no whole answer came.
    Unknown(String),
}

impl HttpError {
    fn not_sent(reason: String) -> Self {
        Self::NotSent { reason, is_timeout: false }
    }
}

impl HttpClient {
    /// A client for a URL without a path.
    pub(crate) fn new(url: &str) -> Result<Self, String> {
        let wrong = || format!("'{url}' is no address like https://bell.example.org");
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let host = uri.host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        let is_https = uri.scheme_str() == Some("https");
        let tls = is_https.then(|| ServerName::try_from(host.clone()).map(|name| (connector(), name))).transpose();
        Ok(Self {
            authority: uri.authority().ok_or_else(wrong)?.to_string(),
            host,
            port: uri.port_u16().unwrap_or(if is_https { 443 } else { 80 }),
            tls: tls.map_err(|_| wrong())?,
            idle: Mutex::default(),
        })
    }

    /// Host and port, for the `Host` header.
    pub(crate) fn authority(&self) -> &str {
        &self.authority
    }

    /// Sends a request once and reads an answer of at most `body_max` bytes within `wait`.
    pub(crate) async fn send(
        &self,
        request: Request<Full<Bytes>>,
        wait: Duration,
        body_max: usize,
    ) -> Result<HttpAnswer, HttpError> {
        let connection = match self.take_idle() {
            Some(connection) => connection,
            None => self.connect().await?,
        };
        match timeout(wait, self.answer(connection, request, body_max)).await {
            Ok(answer) => answer,
            Err(_) => Err(HttpError::Unknown(format!("it did not answer within {} s", wait.as_secs()))),
        }
    }

    /// Sends the request once. A connection that was closed before it took the request is replaced.
    async fn answer(
        &self,
        mut connection: Connection,
        request: Request<Full<Bytes>>,
        body_max: usize,
    ) -> Result<HttpAnswer, HttpError> {
        let lost = |error: hyper::Error| {
            HttpError::Unknown(format!("the connection was lost before its answer came ({error})"))
        };
        let response = match connection.try_send_request(request).await {
            Ok(response) => response,
            Err(mut error) => {
                // The request comes back only if no byte of it was sent.
                let Some(request) = error.take_message() else { return Err(lost(error.into_error())) };
                connection = self.connect().await?;
                connection.try_send_request(request).await.map_err(|mut error| match error.take_message() {
                    Some(_) => HttpError::not_sent("it closed the connection at once".to_owned()),
                    None => lost(error.into_error()),
                })?
            }
        };
        let (parts, body) = response.into_parts();
        let body = Limited::new(body, body_max).collect().await;
        let status = parts.status.as_u16();
        let body = body.map_err(|error| {
            HttpError::Unknown(format!("its answer (status {status}) is incomplete or too long ({error})"))
        });
        let answer = HttpAnswer { status: parts.status, headers: parts.headers, body: body?.to_bytes() };
        self.keep_idle(connection);
        Ok(answer)
    }

    async fn connect(&self) -> Result<Connection, HttpError> {
        let connecting = async {
            let stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
            let _ = stream.set_nodelay(true);
            match &self.tls {
                Some((connector, name)) => begin(connector.connect(name.clone(), stream).await?).await,
                None => begin(stream).await,
            }
        };
        match timeout(CONNECT_MAX, connecting).await {
            Ok(connected) => connected.map_err(|error| HttpError::not_sent(error.to_string())),
            Err(_) => {
                let reason = format!("no connection within {} s", CONNECT_MAX.as_secs());
                Err(HttpError::NotSent { reason, is_timeout: true })
            }
        }
    }

    #[cfg(test)]
    pub(crate) fn idle_count(&self) -> usize {
        self.idle.lock().unwrap_or_else(PoisonError::into_inner).len()
    }

    fn take_idle(&self) -> Option<Connection> {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        idle.retain(|(connection, since)| !connection.is_closed() && now.duration_since(*since) < IDLE_MAX);
        let ready = idle.iter().position(|(connection, _)| connection.is_ready())?;
        Some(idle.swap_remove(ready).0)
    }

    fn keep_idle(&self, connection: Connection) {
        let mut idle = self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        if !connection.is_closed() && idle.len() < IDLE_COUNT_MAX {
            idle.push((connection, Instant::now()));
        }
    }
}

impl fmt::Debug for HttpClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HttpClient").field("authority", &self.authority).finish()
    }
}

async fn begin(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> std::io::Result<Connection> {
    let (sender, connection) = handshake(TokioIo::new(stream)).await.map_err(std::io::Error::other)?;
    // It ends with its last request, or when the server closes it; the request has the error.
    tokio::spawn(connection);
    Ok(sender)
}

fn connector() -> TlsConnector {
    let roots = RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() };
    let provider = Arc::new(crypto::ring::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let versions = versions.expect("the provider has ciphers for the default versions");
    TlsConnector::from(Arc::new(versions.with_root_certificates(roots).with_no_client_auth()))
}

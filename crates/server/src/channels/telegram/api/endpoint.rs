use std::sync::Arc;

use axum::http::Uri;
use http_body_util::Full;
use hyper::body::Bytes;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore, crypto};

/// An open connection.
pub(super) type Connection = SendRequest<Full<Bytes>>;

/// The server of the API.
pub(super) struct Endpoint {
    /// Host and port, as they stand in the URL.
    authority: String,
    host: String,
    port: u16,
    tls: Option<(TlsConnector, ServerName<'static>)>,
}

impl Endpoint {
    /// Parses a URL without a path.
    pub(super) fn new(url: &str) -> Result<Self, String> {
        let wrong = || format!("telegram.api_url is '{url}'; write it like https://api.telegram.org");
        let uri: Uri = url.parse().map_err(|_| wrong())?;
        let host = uri.host().ok_or_else(wrong)?.trim_matches(['[', ']']).to_owned();
        let is_https = uri.scheme_str() == Some("https");
        let tls = is_https.then(|| ServerName::try_from(host.clone()).map(|name| (connector(), name))).transpose();
        Ok(Self {
            authority: uri.authority().ok_or_else(wrong)?.to_string(),
            host,
            port: uri.port_u16().unwrap_or(if is_https { 443 } else { 80 }),
            tls: tls.map_err(|_| wrong())?,
        })
    }

    pub(super) fn authority(&self) -> &str {
        &self.authority
    }

    /// Connects. The error is for people and does not contain the token.
    pub(super) async fn connect(&self) -> Result<Connection, String> {
        let failed = |error: std::io::Error| format!("Telegram cannot be reached at {}: {error}", self.authority);
        let stream = TcpStream::connect((self.host.as_str(), self.port)).await.map_err(failed)?;
        let _ = stream.set_nodelay(true);
        match &self.tls {
            Some((connector, name)) => begin(connector.connect(name.clone(), stream).await.map_err(failed)?).await,
            None => begin(stream).await,
        }
    }
}

async fn begin(stream: impl AsyncRead + AsyncWrite + Send + Unpin + 'static) -> Result<Connection, String> {
    let begun = handshake(TokioIo::new(stream)).await;
    let (sender, connection) = begun.map_err(|error| format!("the connection to Telegram was lost: {error}"))?;
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

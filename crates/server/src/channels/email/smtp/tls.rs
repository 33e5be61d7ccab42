use std::io;
use std::path::Path;
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, crypto};

use super::super::SmtpStep;
use super::SetupError;
use super::session::{SmtpError, SmtpErrorCause, SmtpSession};

/// TLS settings: the trusted certificates and the expected server name.
#[derive(Clone)]
pub(super) struct Tls {
    connector: TlsConnector,
    name: ServerName<'static>,
}

impl Tls {
    /// Trusts the public authorities, or only the certificates in `ca_file` if it is set.
    pub(super) fn new(host: &str, ca_file: Option<&Path>) -> Result<Self, SetupError> {
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| SetupError(format!("email.host '{host}' is no host name or address")))?;
        let roots = match ca_file {
            None => RootCertStore { roots: webpki_roots::TLS_SERVER_ROOTS.to_vec() },
            Some(path) => certificates(path)?,
        };
        let provider = Arc::new(crypto::ring::default_provider());
        let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
        let versions = versions.expect("the provider has ciphers for the default versions");
        let config = versions.with_root_certificates(roots).with_no_client_auth();
        Ok(Self { connector: TlsConnector::from(Arc::new(config)), name })
    }

    /// Sends STARTTLS and starts TLS. A server without STARTTLS gets neither password nor mail.
    pub(super) async fn start(&self, mut session: SmtpSession, offers: &[String]) -> Result<SmtpSession, SmtpError> {
        if !offers.iter().any(|offer| offer == "STARTTLS") {
            let reason = "the server does not offer STARTTLS, and nothing is sent unencrypted; set email.tls to \
                          \"implicit\" if it encrypts from the first byte (port 465), or to \"none\" if it is yours"
                .to_owned();
            return Err(SmtpError::at(SmtpStep::StartTls, SmtpErrorCause::Setup(reason)));
        }
        session.command(SmtpStep::StartTls, "STARTTLS").await?.expect(SmtpStep::StartTls, 220)?;
        self.encrypt(session).await
    }

    /// Starts TLS on the connection.
    pub(super) async fn encrypt(&self, session: SmtpSession) -> Result<SmtpSession, SmtpError> {
        let limit = session.step_max();
        let (stream, ahead) = session.into_parts();
        // Plaintext that follows the reply to STARTTLS would be read as if it were encrypted (command injection).
        if !ahead.is_empty() {
            let error = io::Error::new(io::ErrorKind::InvalidData, "the server sent data before the TLS handshake");
            return Err(SmtpError::at(SmtpStep::Tls, SmtpErrorCause::Lost(error)));
        }
        match tokio::time::timeout(limit, self.connector.connect(self.name.clone(), stream)).await {
            Ok(Ok(stream)) => Ok(SmtpSession::new(stream, limit)),
            Ok(Err(error)) => Err(SmtpError::at(SmtpStep::Tls, cause(error))),
            Err(_) => Err(SmtpError::at(SmtpStep::Tls, SmtpErrorCause::TimedOut(limit))),
        }
    }
}

/// An untrusted certificate or a port without TLS is a configuration error; a lost connection is not.
fn cause(error: io::Error) -> SmtpErrorCause {
    match error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>()) {
        Some(rustls::Error::InvalidCertificate(why)) => SmtpErrorCause::Setup(format!(
            "the server's certificate is not trusted ({why}); check email.host, or name the certificates to trust in \
             email.ca_file"
        )),
        Some(rustls::Error::InvalidMessage(_)) => SmtpErrorCause::Setup(
            "the server does not speak TLS on this port; check email.port and email.tls (465 is usually \"implicit\", \
             587 \"starttls\")"
                .to_owned(),
        ),
        _ => SmtpErrorCause::Lost(error),
    }
}

fn certificates(path: &Path) -> Result<RootCertStore, SetupError> {
    let wrong = |why: String| SetupError(format!("email.ca_file {}: {why}", path.display()));
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(path).map_err(|error| wrong(error.to_string()))? {
        let certificate = certificate.map_err(|error| wrong(error.to_string()))?;
        roots.add(certificate).map_err(|error| wrong(error.to_string()))?;
    }
    match roots.is_empty() {
        true => Err(wrong("there is no certificate in it (-----BEGIN CERTIFICATE-----)".into())),
        false => Ok(roots),
    }
}

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use bellwire_server::Config;
use bellwire_server::channels::email::Smtp;
use bellwire_server::config::{EmailConfig, EmailTls};
use serde_json::{Value, json};

/// An SMTP server on the loopback interface, with a port for each fault. Dropping it stops the server.
pub(crate) struct MailServer {
    process: Child,
    ports: BTreeMap<String, u16>,
    folder: tempfile::TempDir,
}

/// A port with STARTTLS, without authentication, with these faults.
pub(crate) fn listener(name: &str, faults: Value) -> Value {
    json!({"name": name, "tls": "starttls", "faults": faults})
}

impl MailServer {
    /// Starts the server and waits until every port accepts connections.
    pub(crate) fn start(listeners: &[Value]) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        // It installs what the tests need, openssl too.
        let python = python();
        certificate(folder.path());
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../server/tests/peers/smtp_server.py");
        let mut process = Command::new(python)
            .arg(script)
            .arg(folder.path())
            .arg(Value::from(listeners).to_string())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("python runs");
        let mut ports = String::new();
        let output = process.stdout.take().expect("its output is ours");
        BufReader::new(output).read_line(&mut ports).expect("the server says its ports");
        let ports = serde_json::from_str(&ports).unwrap_or_else(|_| panic!("the mail server did not start: {ports}"));
        Self { process, ports, folder }
    }

    /// The configuration that matches this port.
    pub(crate) fn settings(&self, name: &str) -> EmailConfig {
        EmailConfig {
            host: "127.0.0.1".into(),
            port: self.ports[name],
            ca_file: Some(self.folder.path().join("cert.pem")),
            step_seconds: 60,
            answer_seconds: 60,
            ..Config::default().email
        }
    }

    pub(crate) fn smtp(&self, name: &str) -> Smtp {
        smtp(&self.settings(name))
    }

    /// The mails that arrived at this port, as parsed by Python's email package.
    pub(crate) fn received(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.path().join(format!("{name}.jsonl"))).unwrap_or_default();
        // Skip a line that the server is still writing.
        let whole = text.split_inclusive('\n').filter(|line| line.ends_with('\n'));
        whole.map(|line| serde_json::from_str(line).expect("a record is JSON")).collect()
    }

    /// Lets a paused port continue.
    pub(crate) fn go(&self, name: &str) {
        std::fs::write(self.folder.path().join(format!("{name}.go")), "").expect("the folder is there");
    }

    /// The SMTP commands that this port received.
    pub(crate) fn heard(&self, name: &str) -> Vec<String> {
        let text = std::fs::read_to_string(self.folder.path().join(format!("{name}.heard"))).unwrap_or_default();
        text.lines().map(str::to_owned).collect()
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

pub(crate) fn smtp(settings: &EmailConfig) -> Smtp {
    Smtp::new(settings).expect("the settings are right").expect("email is on")
}

pub(crate) fn unencrypted(settings: EmailConfig) -> EmailConfig {
    EmailConfig { tls: EmailTls::None, ca_file: None, ..settings }
}

/// The Python interpreter of a virtual environment with the server, created on first use.
fn python() -> PathBuf {
    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/python-env");
    let made = Command::new(&script).args(["smtp", "aiosmtpd==1.4.6"]).stderr(Stdio::inherit()).output();
    let made = made.unwrap_or_else(|error| panic!("{} cannot be run: {error}", script.display()));
    assert!(
        made.status.success(),
        "the mail tests need Python 3.9 or newer with venv: install python3 and python3-venv, then run {} smtp \
         aiosmtpd==1.4.6 to see what it says",
        script.display()
    );
    Path::new(String::from_utf8_lossy(&made.stdout).trim()).join("python")
}

/// Creates a self-signed certificate for 127.0.0.1.
fn certificate(folder: &Path) {
    let made = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2"])
        .args(["-subj", "/CN=peer.example", "-addext", "subjectAltName=IP:127.0.0.1"])
        .args(["-addext", "basicConstraints=critical,CA:FALSE", "-keyout", "key.pem", "-out", "cert.pem"])
        .current_dir(folder)
        .stderr(Stdio::null())
        .status();
    let made = made.unwrap_or_else(|error| panic!("the mail tests need the openssl program: {error}"));
    assert!(made.success(), "openssl makes a certificate");
}

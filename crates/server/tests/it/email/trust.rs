use bellwire_server::channels::email::{Smtp, SmtpOutcome};
use bellwire_server::config::{EmailConfig, EmailTls, Secret};
use serde_json::json;

use super::note;
use super::peer::{MailServer, listener, smtp, unencrypted};

fn misconfigured(outcome: SmtpOutcome) -> String {
    match outcome {
        SmtpOutcome::Misconfigured { reason } => reason,
        other => panic!("{other:?}"),
    }
}

fn logged_in(settings: EmailConfig, password: &str) -> EmailConfig {
    EmailConfig { username: "bell".into(), password: Some(Secret::new(password)), ..settings }
}

#[tokio::test]
async fn a_refused_login_is_a_configuration_error_without_the_recipient() {
    let server = MailServer::start(&[json!({"name": "x", "tls": "starttls", "login": "bell:right"})]);
    let reason = misconfigured(smtp(&logged_in(server.settings("x"), "wrong")).deliver(&note("x")).await);
    assert!(reason.starts_with("the server said 535 ") && reason.contains("at AUTH"), "{reason}");
    assert!(!reason.contains("wrong") && !reason.contains("ada@"), "{reason}");
    let heard = server.heard("x");
    assert!(heard.contains(&"auth".to_owned()) && !heard.contains(&"mail".to_owned()), "{heard:?}");
}

#[tokio::test]
async fn a_temporary_login_failure_is_retried() {
    let fault = json!([{"at": "auth", "do": "454 4.7.0 the directory sleeps"}]);
    let server = MailServer::start(&[json!({"name": "x", "tls": "starttls", "login": "bell:right", "faults": fault})]);
    let outcome = smtp(&logged_in(server.settings("x"), "right")).deliver(&note("x")).await;
    assert!(matches!(outcome, SmtpOutcome::TryAgain { .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_missing_login_is_a_configuration_error() {
    let server = MailServer::start(&[json!({"name": "x", "tls": "starttls", "login": "bell:right"})]);
    let reason = misconfigured(server.smtp("x").deliver(&note("x")).await);
    assert!(reason.contains("530") && reason.contains("[email]"), "{reason}");
}

#[tokio::test]
async fn neither_password_nor_mail_goes_out_in_the_clear() {
    let server = MailServer::start(&[json!({"name": "x", "tls": "none", "login": "bell:right"})]);
    let settings = logged_in(server.settings("x"), "right");
    assert_eq!(settings.tls, EmailTls::Starttls, "that is the default");
    let reason = misconfigured(smtp(&settings).deliver(&note("x")).await);
    assert!(reason.contains("does not offer STARTTLS"), "{reason}");
    let heard = server.heard("x");
    assert!(heard.iter().all(|word| ["greeting", "ehlo", "quit"].contains(&word.as_str())), "{heard:?}");
    assert_eq!(server.received("x").len(), 0);
}

#[tokio::test]
async fn an_untrusted_certificate_gets_no_data() {
    let server = MailServer::start(&[listener("x", json!([])), json!({"name": "implicit", "tls": "implicit"})]);
    let implicit = EmailConfig { tls: EmailTls::Implicit, ..server.settings("implicit") };
    for settings in [server.settings("x"), implicit] {
        let public = EmailConfig { ca_file: None, ..settings.clone() };
        let reason = misconfigured(smtp(&public).deliver(&note("x")).await);
        assert!(reason.contains("certificate is not trusted") && reason.contains("email.ca_file"), "{reason}");
        // The certificate is trusted but valid for another host name.
        let other_name = EmailConfig { host: "localhost".into(), ..settings };
        let reason = misconfigured(smtp(&other_name).deliver(&note("x")).await);
        assert!(reason.contains("certificate is not trusted") && reason.contains("email.host"), "{reason}");
    }
    assert_eq!(server.received("x").len() + server.received("implicit").len(), 0);
    assert!(!server.heard("x").contains(&"mail".to_owned()));
}

#[tokio::test]
async fn a_port_that_speaks_no_tls_says_so() {
    let server = MailServer::start(&[json!({"name": "x", "tls": "none"})]);
    let settings = EmailConfig { tls: EmailTls::Implicit, ..server.settings("x") };
    let reason = misconfigured(smtp(&settings).deliver(&note("x")).await);
    assert!(reason.contains("does not speak TLS") && reason.contains("email.port"), "{reason}");
}

#[tokio::test]
async fn replies_injected_before_tls_end_the_connection() {
    let server = MailServer::start(&[listener("x", json!([{"at": "starttls", "do": "inject"}]))]);
    let outcome = server.smtp("x").deliver(&note("x")).await;
    let SmtpOutcome::TryAgain { reason, .. } = &outcome else { panic!("{outcome:?}") };
    assert!(reason.contains("the server sent data before the TLS handshake"), "{reason}");
    assert_eq!(server.received("x").len(), 0);
}

#[tokio::test]
async fn an_unsupported_login_method_is_a_configuration_error() {
    let server = MailServer::start(&[json!({"name": "x", "tls": "none"})]);
    let settings = logged_in(unencrypted(server.settings("x")), "right");
    let reason = misconfigured(smtp(&settings).deliver(&note("x")).await);
    assert!(reason.contains("offers no AUTH"), "{reason}");
    assert!(!server.heard("x").contains(&"mail".to_owned()));
}

#[test]
fn settings_that_name_files_are_checked_when_they_are_read() {
    let on = EmailConfig { host: "127.0.0.1".into(), ..bellwire_server::Config::default().email };
    let missing = Some(std::path::PathBuf::from("no-such-file"));
    let refused = |settings: EmailConfig| Smtp::new(&settings).expect_err("it is refused").to_string();
    let no_password = refused(EmailConfig { username: "bell".into(), password_file: missing.clone(), ..on.clone() });
    assert!(no_password.starts_with("email.password_file no-such-file cannot be read: "), "{no_password}");
    assert!(refused(EmailConfig { ca_file: missing, ..on.clone() }).starts_with("email.ca_file no-such-file: "));
    let no_certificate = Some(std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml"));
    assert!(refused(EmailConfig { ca_file: no_certificate, ..on.clone() }).contains("no certificate in it"));
    assert!(Smtp::new(&EmailConfig { host: String::new(), ..on }).expect("it is off").is_none());
}

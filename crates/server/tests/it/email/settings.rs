use std::path::PathBuf;

use bellwire_server::config::{ConfigSources, EmailTls, LoadedConfig, load};

fn file(text: &str) -> ConfigSources {
    let text = format!("[email]\n{text}\n");
    ConfigSources { file: Some((PathBuf::from("/etc/bellwire/bellwire.toml"), text)), ..ConfigSources::default() }
}

fn loaded(text: &str) -> LoadedConfig {
    load(&file(text)).unwrap_or_else(|problems| panic!("{problems}"))
}

fn refused(text: &str) -> String {
    load(&file(text)).expect_err("this must be refused").to_string()
}

#[test]
fn email_is_set_up_by_a_file_and_variables() {
    let mut sources =
        file("host = \"smtp.example.org\"\nport = 465\ntls = \"implicit\"\nfrom = \"\\\"Bell, Wire\\\" <b@x.org>\"");
    sources.environment = vec![
        ("BELLWIRE_EMAIL_USERNAME".into(), "bell".into()),
        ("BELLWIRE_EMAIL_PASSWORD_FILE".into(), "/run/secrets/mail".into()),
    ];
    let email = load(&sources).unwrap_or_else(|problems| panic!("{problems}")).config.email;
    assert_eq!((email.host.as_str(), email.port, email.tls), ("smtp.example.org", 465, EmailTls::Implicit));
    assert_eq!(email.from.name.as_deref(), Some("Bell, Wire"));
    assert_eq!((email.username.as_str(), email.password_file), ("bell", Some("/run/secrets/mail".into())));
}

#[test]
fn contradictions_are_refused_with_the_way_out() {
    let on = "host = \"smtp.example.org\"\n";
    for (text, said) in [
        ("username = \"a\"\npassword = \"b\"\ntls = \"none\"", "use \"starttls\" or \"implicit\""),
        ("password = \"b\"", "email.password is set without email.username"),
        ("username = \"a\"", "set email.password_file or email.password"),
        ("username = \"a\"\npassword = \"b\"\npassword_file = \"c\"", "keep one"),
        ("tls = \"none\"\nca_file = \"c\"", "remove one of them"),
    ] {
        let error = refused(&format!("{on}{text}"));
        assert!(error.contains(said), "{text}: {error}");
    }
    assert!(refused("username = \"a\"\npassword = \"b\"").contains("email.host names no server"));
    loaded("host = \"127.0.0.1\"\nusername = \"a\"\npassword = \"b\"\ntls = \"none\"");
}

#[test]
fn wrong_values_are_refused_and_say_what_is_allowed() {
    for (text, said) in [
        ("from = \"Bellwire\"", "email.from is wrong: 'Bellwire' has no @; write one address"),
        ("from = \"a@x.org, b@x.org\"", "is more than one address"),
        ("host = \"smtp://x.org\"", "email.host has 'smtp://x.org', which has a scheme"),
        ("host = \"x.org:25\"", "which has a port"),
        ("port = 0", "email.port is 0; a whole number from 1 to 65535 is allowed"),
        ("port = 70000", "email.port is 70000"),
        ("tls = \"ssl\"", "email.tls is 'ssl'; starttls, implicit or none is allowed"),
        ("username = \"a\\nb\"", "a text on one line is allowed"),
        ("answer_seconds = 9", "email.answer_seconds is 9; a whole number from 10 to 1800 is allowed"),
        ("workers = 0", "email.workers is 0; a whole number from 1 to 64 is allowed"),
        ("pasword = \"x\"", "email.pasword is not a setting; did you mean email.password?"),
    ] {
        let error = refused(text);
        assert!(error.contains(said), "{text}: {error}");
    }
}

#[test]
fn a_password_is_shown_nowhere() {
    let loaded = loaded("host = \"smtp.example.org\"\nusername = \"bell\"\npassword = \"hunter2\"");
    for shown in [loaded.to_toml(), loaded.to_json().to_string(), format!("{loaded:?}")] {
        assert!(shown.contains("(hidden)") && !shown.contains("hunter2"), "{shown}");
    }
    for wrong in ["password = \"hunter2\\u0000\"", "password = 2222222"] {
        let error = refused(wrong);
        assert!(
            error.contains("email.password") && !error.contains("2222222") && !error.contains("hunter2"),
            "{error}"
        );
    }
    assert!(refused("password = \"(hidden)\"").contains("write the password"));
}

#[test]
fn risky_pairs_are_warned_of() {
    let texts = |text: &str| {
        let warnings = loaded(text).warnings.into_iter();
        warnings.map(|warning| warning.to_string()).collect::<Vec<_>>()
    };
    let warnings = |text: &str| texts(&format!("host = \"smtp.example.org\"\nfrom = \"b@x.org\"\n{text}"));
    assert_eq!(warnings("").len(), 1, "{:?}", warnings(""));
    let said =
        "without server.public_url: the link that stops emails works only on this machine; set server.public_url";
    assert!(warnings("")[0].contains(said), "{:?}", warnings(""));
    for (text, said) in [
        ("tls = \"none\"", "unencrypted; set email.tls"),
        ("port = 465", "unusual on port 465; set email.tls to \"implicit\""),
    ] {
        assert!(warnings(text).iter().any(|warning| warning.contains(said)), "{text}: {:?}", warnings(text));
    }
    let nowhere = texts("host = \"smtp.example.org\"");
    assert!(nowhere.iter().any(|warning| warning.contains("most servers refuse")), "{nowhere:?}");
    assert!(loaded("").warnings.is_empty(), "while it is off there is nothing to warn of");
}

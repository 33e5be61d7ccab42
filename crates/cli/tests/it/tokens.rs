use crate::hub::Hub;
use crate::program::{assert_output, shown, text};

#[test]
fn tokens_are_made_listed_and_revoked() {
    let hub = Hub::start();
    let made = hub.json(&["token", "create", "--scope", "user", "--user", "ada", "--expires", "30d", "--json"]);
    assert!(made["expires_at"].is_string() && made["token"].is_string(), "{made}");
    let ingest =
        hub.run(&["token", "create", "--scope", "ingest", "--name", "ci", "--expires", "2999-01-01T00:00:00Z"]);
    let list = hub.run(&["token", "list"]);
    let revoked = hub.run(&["token", "revoke", made["id"].as_str().expect("an id")]);
    let again = hub.run(&["token", "list"]);
    let secret = made["token"].as_str().expect("a secret");
    let refused = hub.run(&["trace", "x", "--token", secret]);
    let told = [&ingest, &list, &revoked, &again, &refused].map(shown).join("\n");
    assert!(!told.contains(secret), "a list has no secrets");
    assert_output!(told);
    let items = hub.json(&["token", "list", "--json"]);
    assert_eq!(items["items"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_sign_in_link_has_its_code_in_the_fragment() {
    let hub = Hub::start();
    let link = hub.run(&["token", "link", "ada"]);
    let printed = text(&link.stdout);
    let code = printed.trim().strip_prefix(&format!("{}/sign-in#code=", hub.url)).expect("the hub's own address");
    assert!(text(&link.stderr).starts_with("signs in ada, once, until "), "{}", shown(&link));
    let made = hub.json(&["token", "link", "me", "--admin", "--json"]);
    assert_eq!((&made["scope"], &made["user_id"]), (&"admin".into(), &"me".into()), "{made}");
    assert!(made["link"].as_str().expect("a link").ends_with(made["code"].as_str().expect("a code")), "{made}");
    assert!(code.len() == 22 && made["code"] != code, "{code}");
}

#[test]
fn what_a_token_needs_is_said() {
    let hub = Hub::start();
    let mistakes: [&[&str]; 4] = [
        &["--scope", "king"],
        &["--scope", "agent", "--user", "ada"],
        &["--scope", "user"],
        &["--scope", "ingest", "--expires", "soon"],
    ];
    let said: Vec<String> =
        mistakes.iter().map(|arguments| text(&hub.run(&[&["token", "create"], *arguments].concat()).stderr)).collect();
    assert_output!(said.concat());
}

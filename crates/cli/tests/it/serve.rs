use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::hub::Hub;
use crate::program::{assert_output, command, finish, shown, text};

fn mode(path: &Path) -> u32 {
    std::fs::metadata(path).expect("it is there").permissions().mode() & 0o777
}

fn data(home: &Path) -> PathBuf {
    home.join(".local/share/bellwire")
}

#[test]
fn the_first_start_says_what_to_do_next_and_the_second_keeps_the_token_to_itself() {
    let hub = Hub::start();
    let data = data(hub.home.path());
    assert_eq!((mode(&data), mode(&data.join("admin.token"))), (0o700, 0o600));
    let first = hub.said.clone();
    let secret = std::fs::read_to_string(data.join("admin.token")).expect("it was kept");
    let (home, rest) = hub.stop();
    assert!(!format!("{first}{rest}").contains(secret.trim()), "a log keeps no secret: {first}{rest}");
    assert!(!data.join("hub.json").exists(), "a hub that stopped leaves no note");
    let second = Hub::start_in(home, &["--port", "0"]);
    assert_output!(format!("{first}{rest}=== again\n{}", second.said));
}

#[test]
fn a_program_that_stays_where_it_is_offers_to_connect_an_agent() {
    let home = tempfile::tempdir().expect("a folder");
    let program = home.path().join("bellwire");
    // A link is as good as a copy, and faster.
    std::fs::hard_link(env!("CARGO_BIN_EXE_bellwire"), &program)
        .or_else(|_| std::fs::copy(env!("CARGO_BIN_EXE_bellwire"), &program).map(drop))
        .expect("it can be copied");
    let run = |word: &str| {
        let mut command = std::process::Command::new(&program);
        command.env_clear().env("HOME", home.path()).env("BELLWIRE_SERVER_LISTEN", "127.0.0.1:0").arg(word);
        let output = finish(&mut command, "");
        assert!(output.status.success(), "{}", shown(&output));
    };
    run("start");
    run("stop");
    let log = std::fs::read_to_string(data(home.path()).join("hub.log")).expect("the log");
    assert!(log.contains("bellwire install claude-code   # connect an agent"), "{log}");
}

#[test]
fn the_mode_of_a_readable_token_file_is_corrected() {
    let (home, _) = Hub::start().stop();
    let token = data(home.path()).join("admin.token");
    std::fs::set_permissions(&token, PermissionsExt::from_mode(0o644)).expect("the mode is changed");
    let hub = Hub::start_in(home, &["--port", "0"]);
    assert_eq!(mode(&token), 0o600);
    assert!(hub.said.contains("others could read"), "{}", hub.said);
}

#[test]
fn a_second_hub_on_the_same_data_or_port_is_refused() {
    let hub = Hub::start();
    let same_data = hub.run(&["serve", "--port", "0"]);
    let port = hub.url.rsplit(':').next().expect("a port");
    let other = tempfile::tempdir().expect("a folder");
    let same_port = finish(command(other.path()).args(["serve", "--port", port]), "");
    assert_output!(format!("{}=== the same port\n{}", shown(&same_data), shown(&same_port)));
}

#[test]
fn migrate_creates_the_database_once() {
    let home = tempfile::tempdir().expect("a folder");
    let migrate = || finish(command(home.path()).arg("migrate"), "");
    let (first, second) = (migrate(), migrate());
    // How many steps there are is the store's business, and grows.
    let applied = text(&first.stdout);
    assert!(applied.starts_with("applied 0001_initial\n"), "{}", shown(&first));
    assert!(applied.lines().all(|line| line.starts_with("applied ")), "{}", shown(&first));
    assert!(first.status.success() && text(&first.stderr).contains("is up to date; "), "{}", shown(&first));
    assert!(second.status.success() && second.stdout.is_empty(), "{}", shown(&second));
    assert!(text(&second.stderr).ends_with("was up to date; nothing was done\n"), "{}", shown(&second));
    let hub = Hub::start_in(home, &["--port", "0"]);
    let busy = hub.run(&["migrate"]);
    assert_eq!(busy.status.code(), Some(2));
    assert!(text(&busy.stderr).contains("another Bellwire serves this data"), "{}", shown(&busy));
}

#[test]
fn the_log_is_json_without_a_terminal() {
    let hub = Hub::start();
    let (_, rest) = hub.stop();
    for line in rest.lines().filter(|line| line.starts_with('{')) {
        let line: serde_json::Value = serde_json::from_str(line).expect("a line of the log is JSON");
        assert!(line["level"].is_string(), "{line}");
    }
}

#[test]
fn a_token_of_another_database_is_replaced_with_a_message() {
    let (home, _) = Hub::start().stop();
    let (token, database) = (data(home.path()).join("admin.token"), data(home.path()).join("bellwire.db"));
    let old = std::fs::read_to_string(&token).expect("it was kept");
    std::fs::remove_file(database).expect("it is there");
    let hub = Hub::start_in(home, &["--port", "0"]);
    assert_ne!(std::fs::read_to_string(&token).expect("it is kept"), old);
    assert!(hub.said.contains("is not one of this database"), "{}", hub.said);
    assert!(hub.run(&["token", "list"]).status.success());
}

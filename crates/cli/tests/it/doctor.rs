use std::os::unix::fs::PermissionsExt;

use crate::hub::Hub;
use crate::program::{assert_output, command, finish, shown, text};

#[test]
fn a_healthy_hub_is_well() {
    let hub = Hub::start();
    assert_output!(shown(&hub.run(&["doctor"])));
}

#[test]
fn before_the_first_start_nothing_is_wrong() {
    let home = tempfile::tempdir().expect("a folder");
    // A port on which nothing listens; the default port may be in use.
    let output = finish(command(home.path()).arg("doctor").env("BELLWIRE_LISTEN", "127.0.0.1:1"), "");
    assert_output!(shown(&output));
}

#[test]
fn what_is_wrong_is_named_with_the_fix_and_the_exit_code_says_so() {
    let (home, _) = Hub::start().stop();
    let data = home.path().join(".local/share/bellwire");
    let subscribers = home.path().join("subscribers");
    std::fs::create_dir(&subscribers).expect("a folder");
    std::fs::write(subscribers.join("mine.toml"), "[subscriber]\nid = \"Mine\"\n").expect("it is written");
    std::fs::set_permissions(data.join("admin.token"), PermissionsExt::from_mode(0o644)).expect("the mode is changed");
    std::fs::set_permissions(&data, PermissionsExt::from_mode(0o755)).expect("the mode is changed");
    let mut command = command(home.path());
    command.env("BELLWIRE_SUBSCRIBERS_DIR", &subscribers).env("BELLWIRE_LISTEN", "127.0.0.1:1");
    assert_output!(shown(&finish(command.arg("doctor"), "")));
}

#[test]
fn a_subscriber_that_could_not_be_loaded_again_is_a_warning() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join("subscribers");
    std::fs::create_dir(&folder).expect("a folder");
    let write = |name: &str, text: &str| std::fs::write(folder.join(name), text).expect("it is written");
    write("ci.j2", "build: {{ count }}");
    let ci = "[subscriber]\nid = \"ci\"\nname = \"CI\"\ndescription = \"Builds\"\nversion = \"1.0.0\"\n[events]\n\
              types = [\"ci.build.failed\"]\n[output]\npriority = \"high\"\ninject_at = \"after_tool\"\n\
              template = \"ci.j2\"\n";
    write("ci.toml", ci);
    let arguments = ["--port", "0", "--subscribers", folder.to_str().expect("the path is text")].map(str::to_owned);
    let hub = Hub::start_in(home, &arguments.each_ref().map(String::as_str));
    write("ci.j2", "{% if %}");
    let said = (0..200).find_map(|_| {
        std::thread::sleep(std::time::Duration::from_millis(50));
        Some(text(&hub.run(&["doctor"]).stdout)).filter(|said| said.contains("the last valid version"))
    });
    let said = said.expect("the hub notices the edit within ten seconds");
    assert!(said.contains("warn subscribers     the hub uses the last valid version of ci: ci.j2:1: "), "{said}");
}

#[test]
fn a_damaged_database_is_found() {
    let (home, _) = Hub::start().stop();
    // Closing the writer moves the write-ahead log into the file.
    assert!(finish(command(home.path()).arg("migrate"), "").status.success());
    let path = home.path().join(".local/share/bellwire/bellwire.db");
    let mut bytes = std::fs::read(&path).expect("the database");
    // After the first page, where the tables are.
    bytes.iter_mut().skip(4096).step_by(7).for_each(|byte| *byte ^= 0xff);
    std::fs::write(&path, bytes).expect("it is written");
    let mut command = command(home.path());
    let output = finish(command.args(["doctor", "--json"]).env("BELLWIRE_LISTEN", "127.0.0.1:1"), "");
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    let report: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let checks = report["checks"].as_array().expect("checks");
    let database = checks.iter().find(|check| check["check"] == "database").expect("the database was looked at");
    assert_eq!(
        (&report["ok"], &database["level"]),
        (&serde_json::json!(false), &serde_json::json!("fail")),
        "{report}"
    );
}

#[test]
fn an_unreachable_hub_given_by_url_is_a_failure() {
    let home = tempfile::tempdir().expect("a folder");
    let output = finish(command(home.path()).args(["doctor", "--url", "http://127.0.0.1:1"]), "");
    assert_eq!(output.status.code(), Some(1), "{}", shown(&output));
    assert!(text(&output.stdout).contains("fail hub"), "{}", shown(&output));
}

#[test]
fn a_wrong_configuration_is_the_first_check() {
    let home = tempfile::tempdir().expect("a folder");
    let output = finish(command(home.path()).arg("doctor").env("BELLWIRE_LIMITS_STREAMS", "0"), "");
    assert_eq!(output.status.code(), Some(1));
    let said = text(&output.stdout);
    assert!(said.starts_with("fail configuration") && said.contains("1 to 1000000"), "{said}");
}

#[test]
fn a_risky_setting_is_a_warning_that_says_what_to_set() {
    let home = tempfile::tempdir().expect("a folder");
    let mut command = command(home.path());
    command.env("BELLWIRE_EMAIL_HOST", "smtp.example.org").env("BELLWIRE_EMAIL_TLS", "none");
    command.env("BELLWIRE_LIMITS_STREAM", "5").env("BELLWIRE_LISTEN", "127.0.0.1:1");
    assert_output!(shown(&finish(command.arg("doctor"), "")));
}

#[test]
fn an_unreachable_redis_is_a_warning_without_its_password() {
    let home = tempfile::tempdir().expect("a folder");
    let folder = home.path().join(".config/bellwire");
    std::fs::create_dir_all(&folder).expect("a folder");
    let file = "[redis]\nurl = \"redis://:hunter2@127.0.0.1:1\"\n";
    std::fs::write(folder.join("bellwire.toml"), file).expect("it is written");
    let hub = Hub::start_in(home, &["--port", "0"]);
    let output = hub.run(&["doctor"]);
    let said = text(&output.stdout);
    assert!(output.status.success(), "a hub runs without Redis: {}", shown(&output));
    assert!(said.contains("warn redis           is away: "), "{said}");
    assert!(said.contains("warn readiness       it can accept, but redis is away"), "{said}");
    let config = hub.run(&["config"]);
    assert!(text(&config.stdout).contains("url = \"(hidden)\""), "{}", shown(&config));
    let early = hub.said.clone();
    let log = early + &hub.stop().1;
    assert!(log.contains("Redis is away"), "the log says so: {log}");
    for words in [said, text(&config.stdout), log] {
        assert!(!words.contains("hunter2"), "{words}");
    }
}

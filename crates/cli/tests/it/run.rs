//! `bellwire run`.

use serde_json::json;

use crate::hub::Hub;
use crate::program::{finish, text};

fn open(hub: &Hub, id: &str, folder: &std::path::Path) {
    let token = hub.agent_token_of("me");
    let body = json!({ "user_id": "me", "folder": folder }).to_string();
    let host = hub.url.trim_start_matches("http://");
    let request = format!(
        "PUT /v1/conversations/{id} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\ncontent-type: \
         application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut stream = std::net::TcpStream::connect(host).expect("the hub listens");
    std::io::Write::write_all(&mut stream, request.as_bytes()).expect("it can be sent");
    let mut answer = String::new();
    std::io::Read::read_to_string(&mut stream, &mut answer).expect("it answers");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
}

#[test]
fn output_and_exit_code_pass_and_the_agent_of_the_folder_is_told() {
    let hub = Hub::start();
    let folder = std::fs::canonicalize(hub.home.path()).expect("a folder").join("project");
    std::fs::create_dir_all(folder.join("web")).expect("it can be made");
    open(&hub, "chat", &folder);
    let script = "read line; echo \"out $line\"; printf 'no newline' >&2; exit 3";
    let mut command = hub.command(&["run", "--name", "tests", "--", "sh", "-c", script]);
    let output = finish(command.current_dir(folder.join("web")), "in\n");
    assert_eq!((output.status.code(), text(&output.stdout).as_str()), (Some(3), "out in\n"));
    assert_eq!(text(&output.stderr), "no newline");
    let told = text(&hub.run(&["inject", "chat", "after_tool", "c1", "--user", "me"]).stdout);
    assert!(told.contains("task_failed: ") && told.contains("tests - exit status: 3"), "{told}");
    assert!(told.contains("out in") && told.contains("no newline"), "{told}");

    let mut command = hub.command(&["run", "--", "sh", "-c", "kill -TERM $$"]);
    let output = finish(command.current_dir(&folder), "");
    assert_eq!(output.status.code(), Some(128 + 15), "as a shell reports it");
    let mut command = hub.command(&["run", "--name", "fine", "--", "true"]);
    assert!(finish(command.current_dir(&folder), "").status.success());
    let told = text(&hub.run(&["inject", "chat", "after_tool", "c2", "--user", "me"]).stdout);
    assert!(told.contains("task_done: fine"), "{told}");
}

#[test]
fn without_anybody_to_tell_the_command_does_not_run() {
    let hub = Hub::start();
    let mark = hub.home.path().join("mark");
    let refused = finish(hub.command(&["run", "--", "touch"]).arg(&mark).current_dir(hub.home.path()), "");
    assert_eq!(refused.status.code(), Some(2));
    assert!(text(&refused.stderr).contains("no agent works in"), "{}", text(&refused.stderr));
    assert!(!mark.exists());
    let missing = hub.run(&["run", "--conversation", "chat", "--user", "me", "--", "no-such-program"]);
    assert!(text(&missing.stderr).contains("'no-such-program' cannot be started"), "{}", text(&missing.stderr));
}

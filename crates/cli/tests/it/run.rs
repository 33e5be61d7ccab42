//! `bellwire run`.

use std::io::{Read as _, Write as _};
use std::process::Stdio;
use std::time::Duration;

use serde_json::json;

use crate::hub::Hub;
use crate::program::{finish, shown, text};

pub(crate) fn open(hub: &Hub, id: &str, folder: &std::path::Path) {
    open_of(hub, "me", id, folder);
}

fn open_of(hub: &Hub, user: &str, id: &str, folder: &std::path::Path) {
    let token = hub.agent_token_of(user);
    let body = json!({ "user_id": user, "folder": folder }).to_string();
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

/// The command has long ended when its output is read, as in a pager.
#[test]
fn a_slow_reader_gets_everything() {
    let hub = Hub::start();
    let words = ["run", "--conversation", "chat", "--user", "me", "--", "seq", "1", "20000"];
    let mut child = hub.command(&words).stdout(Stdio::piped()).spawn().expect("it starts");
    // More than the pipes hold: the rest is still in this program.
    std::thread::sleep(Duration::from_millis(2_500));
    let mut output = String::new();
    child.stdout.take().expect("an output").read_to_string(&mut output).expect("text");
    assert!(child.wait().expect("it ends").success());
    assert_eq!(output.lines().count(), 20_000);
}

#[test]
fn a_program_that_the_command_leaves_behind_is_not_waited_for() {
    let hub = Hub::start();
    let words = ["run", "--conversation", "chat", "--user", "me", "--", "sh", "-c", "sleep 600 & echo $!"];
    let mut child = hub.command(&words).stdout(Stdio::piped()).spawn().expect("it starts");
    assert!(child.wait().expect("it ends").success());
    let mut left = String::new();
    child.stdout.take().expect("an output").read_to_string(&mut left).expect("text");
    let ended = std::process::Command::new("kill").arg(left.trim()).status().expect("kill runs");
    assert!(ended.success(), "it was still there");
}

#[test]
fn agents_of_other_people_in_the_same_folder_are_not_told() {
    let hub = Hub::start();
    let folder = std::fs::canonicalize(hub.home.path()).expect("a folder");
    open_of(&hub, "ada", "hers", &folder);
    let run = |words: &[&str]| finish(hub.command(words).current_dir(&folder), "");
    let refused = run(&["run", "--", "true"]);
    assert!(text(&refused.stderr).contains("no agent works in"), "{}", shown(&refused));
    open(&hub, "mine", &folder);
    assert!(run(&["run", "--name", "secret", "--", "true"]).status.success());
    let pending = |id: &str, user: &str| text(&hub.run(&["inject", id, "after_tool", "c1", "--user", user]).stdout);
    assert!(pending("mine", "me").contains("task_done: secret"));
    assert!(!pending("hers", "ada").contains("secret"));
    assert!(run(&["run", "--user", "ada", "--name", "public", "--", "true"]).status.success());
    let own = ["run", "--token", &hub.agent_token_of("ada"), "--name", "own", "--", "true"];
    assert!(run(&own).status.success(), "the person of the token");
    let told = text(&hub.run(&["inject", "hers", "after_tool", "c2", "--user", "ada"]).stdout);
    assert!(told.contains("public") && told.contains("own"), "{told}");
}

#[test]
fn output_that_is_no_text_and_has_no_lines_passes_and_is_told() {
    let hub = Hub::start();
    let script = "head -c 100000 /dev/zero | tr '\\0' 'x'; printf '\\000\\033[31m\\377end'; exit 4";
    let output = hub.run(&["run", "--conversation", "chat", "--user", "me", "--", "sh", "-c", script]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(4), 100_000 + 10));
    assert!(output.stdout.ends_with(b"x\0\x1b[31m\xffend") && output.stderr.is_empty(), "{:?}", output.stderr);
    let told = text(&hub.run(&["inject", "chat", "after_tool", "c1", "--user", "me"]).stdout);
    assert!(told.contains("task_failed: ") && told.contains("exit status: 4"), "{told}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_terminal_stays_a_terminal() {
    let hub = Hub::start();
    let (mut keyboard, terminal) = crate::program::terminal("typed\n");
    let script = "test -t 0 && test -t 1 && test -t 2 && read line && test \"$line\" = typed";
    let mut command = hub.command(&["run", "--conversation", "chat", "--user", "me", "--", "sh", "-c", script]);
    let (input, output) = (terminal.try_clone().expect("a terminal"), terminal.try_clone().expect("a terminal"));
    let mut child = command.stdin(input).stdout(output).stderr(terminal).spawn().expect("it starts");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    keyboard.flush().expect("it is open");
}

/// A polite kill reaches the command, Ctrl-C is the command's own business, and both ends are told.
#[cfg(target_os = "linux")]
#[test]
fn signals_reach_the_command_and_its_end_is_told() {
    let hub = Hub::start();
    let trap = "trap 'echo caught; exit 9' TERM; echo ready; while :; do sleep 0.05; done";
    for name in ["TERM", "INT", "QUIT"] {
        let words = ["run", "--conversation", "chat", "--user", "me", "--name", name, "--", "sh", "-c", trap];
        let mut child = hub.command(&words).stdout(Stdio::piped()).spawn().expect("it starts");
        let mut output = std::io::BufReader::new(child.stdout.take().expect("an output"));
        let mut line = String::new();
        std::io::BufRead::read_line(&mut output, &mut line).expect("text");
        assert_eq!(line, "ready\n");
        while !handles_signals(child.id()) {
            std::thread::yield_now();
        }
        crate::hub::terminate(&child, &format!("-{name}"));
        // What is sent to this program alone does not end it, except for a polite kill.
        if name != "TERM" {
            crate::hub::terminate(&child, "-TERM");
        }
        assert_eq!(child.wait().expect("it ends").code(), Some(9), "{name}");
        let told = text(&hub.run(&["inject", "chat", "after_tool", name, "--user", "me"]).stdout);
        assert!(told.contains(&format!("{name} - exit status: 9")), "{told}");
    }
}

/// Whether a process has handlers for SIGINT, SIGQUIT and SIGTERM.
#[cfg(target_os = "linux")]
fn handles_signals(process: u32) -> bool {
    let status = std::fs::read_to_string(format!("/proc/{process}/status")).expect("it runs");
    let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:")).expect("a mask").trim();
    let wanted = [2, 3, 15].iter().fold(0_u64, |mask, signal| mask | 1 << (signal - 1));
    u64::from_str_radix(caught, 16).expect("a mask") & wanted == wanted
}

#[test]
fn a_hub_that_goes_away_meanwhile_costs_a_warning() {
    let mut hub = Hub::start();
    let words = ["run", "--conversation", "chat", "--user", "me", "--", "sh", "-c", "read line; exit 5"];
    let mut child = hub.command(&words).stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    hub.kill();
    child.stdin.take().expect("an input").write_all(b"go\n").expect("it reads");
    let output = child.wait_with_output().expect("it ends");
    assert_eq!(output.status.code(), Some(5));
    assert!(text(&output.stderr).contains("the hub could not be told"), "{}", text(&output.stderr));
}

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::Stdio;

use crate::hub::{Hub, terminate};
use crate::program::{assert_output, bellwire, shown, text};

#[test]
fn the_demo_shows_every_kind_of_notification_and_clears_up() {
    let hub = Hub::start();
    let token = hub.agent_token();
    let before = hub.run(&["emit", "tool.call.failure", "-c", "mine", "--token", &token]);
    assert!(before.status.success(), "{}", shown(&before));
    let output = hub.run(&["demo", "--fast"]);
    assert!(output.status.success(), "{}", shown(&output));
    let played = text(&output.stdout);
    for subscriber in [
        "tool_fails[",
        "files_modified[",
        "[user] ",
        "loop detected",
        "budget_warn:",
        "turn_summary:",
        "task_done:",
        "session_resumed:",
        "subagent_done:",
        "budget exceeded",
        "context_warn:",
        "delivery_failed:",
        "more\n",
    ] {
        assert!(played.contains(subscriber), "{subscriber} is not shown in\n{played}");
    }
    let name = played.split("conversation demo-").nth(1).and_then(|rest| rest.split(',').next()).expect("its name");
    let gone = hub.run(&["inject", &format!("demo-{name}"), "turn_start", "t", "--token", &token]);
    assert!(!text(&gone.stdout).contains("<notifications"), "nothing of the demo is left: {}", shown(&gone));
    let mine = hub.run(&["inject", "mine", "turn_start", "t", "--token", &token]);
    assert!(mine.status.success(), "what is not the demo's is left alone: {}", shown(&mine));
    assert_output!(shown(&output));
}

#[test]
fn without_a_hub_the_demo_says_what_it_needs() {
    assert_output!(shown(&bellwire(&["demo", "--url", "http://127.0.0.1:1", "--token", "bw_1"], "")));
}

#[test]
fn ctrl_c_ends_the_demo_and_erases_its_user() {
    let hub = Hub::start();
    let mut command = hub.command(&["demo"]);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
    let mut first = String::new();
    let mut lines = BufReader::new(child.stdout.take().expect("it has a standard output"));
    while !first.contains("the agent reads") {
        assert!(lines.read_line(&mut first).expect("it speaks") > 0, "it ended by itself:\n{first}");
    }
    terminate(&child, "-INT");
    let mut said = String::new();
    child.stderr.take().expect("it has a standard error").read_to_string(&mut said).expect("text");
    assert!(child.wait().expect("it ends").success(), "{said}");
    assert!(said.contains("is erased"), "{said}");
}

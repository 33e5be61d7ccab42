//! Runs the commands of README.md and of the guides in docs as printed.

use std::io::{BufRead as _, BufReader};
use std::process::{Command, Stdio};

use crate::hub::{Hub, terminate};
use crate::program::{VARYING, root, text};

/// The fenced blocks of a section, each with its language.
fn blocks(document: &str, section: &str) -> Vec<(String, String)> {
    let text = std::fs::read_to_string(root().join(document)).expect("the document");
    let section = text.split("\n## ").find(|one| one.starts_with(section)).expect("the section is there");
    let mut parts = section.split("\n```");
    parts.next();
    let fenced = parts.step_by(2).filter_map(|block| block.split_once('\n'));
    fenced.map(|(language, body)| (language.to_owned(), body.to_owned())).collect()
}

/// The text without the parts that differ between runs, and with normalized white space.
fn essential(text: &str) -> String {
    let mut text = text.trim().to_owned();
    for (what, name) in VARYING {
        let expression = regex::Regex::new(what).expect("an expression");
        text = expression.replace_all(&text, *name).into_owned();
    }
    text
}

#[test]
fn the_walk_through_works_as_printed() {
    let hub = Hub::start();
    let mut commands = blocks("README.md", "One event for an agent");
    // The first block starts the hub, which the test has done.
    assert!(commands.remove(0).1.contains("make run"));
    let mut explained = blocks("docs/hub.md", "Why was the agent told?");
    // `tail` never ends.
    let tail = explained.split_off(2);
    commands.extend(explained);
    works_as_printed(&hub, &commands);
    assert_eq!(essential(&follow(&hub, &tail[0].1, &tail[1].1)), essential(&tail[1].1));
}

#[test]
fn the_toast_of_the_readme_works_as_printed() {
    let mut commands = blocks("README.md", "One event for an agent");
    commands.retain(|(_, body)| !body.contains("make run") && !body.contains("bellwire demo"));
    commands.extend(blocks("README.md", "One toast for a person"));
    works_as_printed(&Hub::start(), &commands);
}

#[test]
fn the_tools_answer_as_the_guide_prints() {
    let hub = Hub::start();
    let sections = ["The tools by example", "Calling again", "What becomes of a notification"];
    let blocks: Vec<_> = sections.iter().flat_map(|section| blocks("docs/tools.md", section)).collect();
    works_as_printed(&hub, &blocks);
}

/// Runs the command blocks in one shell and checks that their output contains the text blocks.
fn works_as_printed(hub: &Hub, blocks: &[(String, String)]) {
    let address = hub.url.trim_start_matches("http://");
    let commands = blocks.iter().filter(|(kind, _)| kind == "sh").map(|(_, body)| {
        let command = body.replace("localhost:2355", address).replace("bellwire demo", "bellwire demo --fast");
        format!("{command}\necho; echo '=== end of block'\n")
    });
    let output = essential(&run(hub, &commands.collect::<String>()));
    for (_, expected) in blocks.iter().filter(|(kind, _)| kind == "text") {
        let expected = essential(expected);
        assert!(in_order(&expected, &output), "the guide promises\n{expected}\n\nbut the commands print\n{output}");
    }
}

/// Whether the output contains every expected line, in this order.
fn in_order(expected: &str, output: &str) -> bool {
    let mut said = output.lines().map(str::trim_end);
    expected.lines().all(|line| said.any(|one| one == line.trim_end()))
}

/// The first lines of a command that never ends, as many as are expected.
fn follow(hub: &Hub, command: &str, expected: &str) -> String {
    let arguments: Vec<&str> = command.split_whitespace().skip(1).collect();
    let mut child = hub.command(&arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().expect("it starts");
    let lines = BufReader::new(child.stdout.take().expect("it has a standard output")).lines();
    let lines: Vec<String> = lines.take(expected.lines().count()).collect::<Result<_, _>>().expect("text");
    terminate(&child, "-INT");
    assert_eq!(child.wait().expect("it ends").code(), Some(0));
    lines.join("\n")
}

fn run(hub: &Hub, script: &str) -> String {
    let program = std::path::Path::new(env!("CARGO_BIN_EXE_bellwire")).parent().expect("its folder");
    let path = std::env::var("PATH").unwrap_or_default();
    let output = Command::new("bash")
        .args(["-eu", "-o", "pipefail", "-c", script])
        .env_clear()
        .env("HOME", hub.home.path())
        .env("PATH", format!("{}:{path}", program.display()))
        .current_dir(root())
        .stdin(Stdio::null())
        .output()
        .expect("bash runs");
    assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

//! Runs the commands of README.md and of the guides in docs as printed.

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

use crate::documents::{Block, Check, Story, blocks_with};
use crate::hub::{Hub, terminate};
use crate::mail_server::MailServer;
use crate::program::{VARYING, root, text};
use telegram_standin::Standin;

#[test]
fn the_walk_through_works_as_printed() {
    play(Story::Walkthrough);
}

#[test]
fn the_toast_of_the_readme_works_as_printed() {
    play(Story::Toast);
}

#[test]
fn the_tools_answer_as_the_guide_prints() {
    play(Story::Tools);
}

#[test]
fn the_commands_of_the_agent_loop_work_as_printed() {
    play(Story::AgentLoop);
}

#[test]
fn the_subscriber_of_the_guide_is_right() {
    play(Story::Subscribers);
}

#[test]
fn the_commands_for_people_work_as_printed() {
    play(Story::People);
}

#[test]
fn the_telegram_chat_of_the_guide_works_as_printed() {
    play(Story::Telegram);
}

#[test]
fn a_stored_webhook_is_shown_as_printed() {
    play(Story::Ingest);
}

#[test]
fn the_commands_for_frameworks_work_as_printed() {
    play(Story::Frameworks);
}

#[test]
fn the_observed_call_is_accepted_as_printed() {
    let blocks = blocks_with(Check::By("walkthrough::the_observed_call_is_accepted_as_printed"));
    let [block] = &blocks[..] else { panic!("{blocks:?}") };
    let body = format!(r#"{{"point": "after_tool", "call_id": "1", "observed": {}}}"#, block.body);
    let hub = Hub::start();
    let inject =
        "curl -s --fail-with-body localhost:2355/v1/conversations/chat/inject -H \"Authorization: Bearer $token\"";
    let token = "token=$(bellwire token create --scope agent --user ada --origin butler)";
    let answer = Shell::new(&hub).run(&format!("{token}\n{inject} -d '{body}'"));
    assert!(answer.contains("tool_fail: search HTTPError - 502 from the search service"), "{answer}");
}

#[test]
fn every_example_event_is_published_and_shown() {
    let blocks = blocks_with(Check::By("walkthrough::every_example_event_is_published_and_shown"));
    let [block] = &blocks[..] else { panic!("{blocks:?}") };
    let hub = Hub::start();
    let token = hub.agent_token();
    let output = hub.run_with(&["emit", "--ndjson", "-", "--json", "--token", &token], &block.body);
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let events = answer["events"].as_array().expect("events");
    assert_eq!(events.len(), block.body.lines().count());
    for (event, line) in events.iter().zip(block.body.lines()) {
        let verdicts = event["verdicts"].as_array().expect("verdicts");
        let silent = ["tool.call.pending", "agent.turn."].iter().any(|kind| line.contains(kind));
        assert_eq!(verdicts.is_empty(), silent, "{line}: {event}");
        assert!(
            verdicts.iter().all(|one| one["notification_id"].is_string() && one["hint"].is_null()),
            "{line}: {event}"
        );
    }
}

/// Runs the commands of a story in one shell and checks that their output contains the text blocks.
fn play(story: Story) {
    let mut blocks = blocks_with(Check::Play(story));
    if story == Story::Toast {
        // The toast needs the token and the conversation of the first event.
        let mut before = blocks_with(Check::Play(Story::Walkthrough));
        before.retain(|block| block.document == "README.md" && !block.body.contains("bellwire demo"));
        blocks.splice(..0, before);
    }
    let telegram = (story == Story::Telegram).then(Standin::start);
    let hub = match (story, &telegram) {
        (Story::People, _) => Hub::configured(&MailServer::start(|_| None).config()),
        (_, Some(telegram)) => Hub::configured(&format!(
            "[telegram]\ntoken = \"{}\"\napi_url = \"{}\"\nchat_interval_ms = 0\n",
            telegram.token(),
            telegram.url()
        )),
        _ => Hub::start(),
    };
    let mut shell = Shell::new(&hub);
    shell.telegram = telegram.as_ref().map(|telegram| telegram.address().to_string());
    let files = blocks.iter().filter_map(|block| Some((block.file.as_ref()?, &block.body)));
    files.for_each(|(path, body)| shell.write(path, body));
    // `tail` never ends.
    let endless = blocks.iter().position(|block| block.body.starts_with("bellwire tail")).unwrap_or(blocks.len());
    let followed = blocks.split_off(endless);
    let output = essential(&shell.run(&blocks.iter().map(script).collect::<String>()));
    for block in blocks.iter().filter(|block| block.language == "text") {
        let expected = essential(&block.body);
        assert!(in_order(&expected, &output), "the guide promises\n{expected}\n\nbut the commands print\n{output}");
    }
    if let [command, expected] = &followed[..] {
        assert_eq!(essential(&follow(&hub, &command.body, &expected.body)), essential(&expected.body));
    }
}

/// The block as shell commands; empty if it has none.
fn script(block: &Block) -> String {
    match block.language.as_str() {
        "sh" => {
            format!("{}\necho; echo '=== end of block'\n", block.body.replace("bellwire demo", "bellwire demo --fast"))
        }
        _ => String::new(),
    }
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

/// A shell as a reader of the guide has it: in a folder with the project's examples, and with `bellwire` in its path.
struct Shell<'a> {
    hub: &'a Hub,
    /// The address of the stand-in for Telegram.
    telegram: Option<String>,
    folder: tempfile::TempDir,
}

impl<'a> Shell<'a> {
    fn new(hub: &'a Hub) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        std::os::unix::fs::symlink(root().join("examples"), folder.path().join("examples")).expect("a link");
        Self { hub, telegram: None, folder }
    }

    fn write(&self, path: &str, body: &str) {
        let path = self.folder.path().join(path);
        std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
        std::fs::write(path, body).expect("it is written");
    }

    fn run(&self, script: &str) -> String {
        let script = script.replace("localhost:2355", self.hub.url.trim_start_matches("http://"));
        let script = script.replace("localhost:8081", self.telegram.as_deref().unwrap_or("localhost:8081"));
        let program = Path::new(env!("CARGO_BIN_EXE_bellwire")).parent().expect("its folder");
        let path = std::env::var("PATH").unwrap_or_default();
        let output = Command::new("bash")
            .args(["-eu", "-o", "pipefail", "-c", &script])
            .env_clear()
            .env("HOME", self.hub.home.path())
            .env("PATH", format!("{}:{path}", program.display()))
            .current_dir(self.folder.path())
            .stdin(Stdio::null())
            .output()
            .expect("bash runs");
        assert!(output.status.success(), "{}\n{}", text(&output.stdout), text(&output.stderr));
        text(&output.stdout)
    }
}

//! The fenced blocks of the documentation, and what a test does with each.
//!
//! Every block has one row in [`CHECKED`] or [`NOT_RUN`]: a new example without one fails a test. The rows are what the
//! tests read, so a block in [`CHECKED`] is checked.

use std::path::{Path, PathBuf};

use crate::program::root;

/// A fenced block.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// The path of the document.
    pub(crate) document: String,
    /// The heading before it, of any level.
    pub(crate) section: String,
    /// The first word after the fence.
    pub(crate) language: String,
    /// The second word after the fence: the file that the block is.
    pub(crate) file: Option<String>,
    pub(crate) body: String,
}

/// What a test does with a block.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Check {
    /// Its commands run in this story, in one shell, and their output contains its `text` blocks. Blocks that are files
    /// are written before.
    Play(Story),
    /// It is a part of this file.
    PartOf(&'static str),
    /// `bellwire config` accepts it.
    Configuration,
    /// This test of this crate checks it.
    By(&'static str),
}

/// Commands that belong together, each story with a hub of its own.
#[derive(Copy, Clone, Debug, PartialEq)]
pub(crate) enum Story {
    Walkthrough,
    Toast,
    Tools,
    AgentLoop,
    Subscribers,
    /// With a mail server.
    People,
    /// With a stand-in for Telegram.
    Telegram,
    Frameworks,
    Ingest,
}

use Check::{By, Configuration, PartOf, Play};

/// Document, section and languages of the blocks that are checked, in the order of the documents.
pub(crate) const CHECKED: &[(&str, &str, &[&str], Check)] = &[
    ("README.md", "One event for an agent", &["sh", "text"], Play(Story::Walkthrough)),
    ("README.md", "One toast for a person", &["sh", "text"], Play(Story::Toast)),
    ("docs/agent-loop.md", "What you need", &["sh", "text"], Play(Story::AgentLoop)),
    ("docs/agent-loop.md", "observed", &["json"], By("walkthrough::the_observed_call_is_accepted_as_printed")),
    ("docs/agent-loop.md", "Working, idle, and being woken", &["sh", "text"], Play(Story::AgentLoop)),
    ("docs/agent-loop.md", "Working, idle, and being woken", &["python"], PartOf(PYTHON_LOOP)),
    ("docs/agent-loop.md", "immediate", &["python"], PartOf(PYTHON_LOOP)),
    ("docs/agent-loop.md", "Lost answers and crashes", &["python"], PartOf(PYTHON_LOOP)),
    ("docs/agent-loop.md", "Parallel tool calls", &["python"], PartOf(PYTHON_LOOP)),
    ("docs/agent-loop.md", "Sub-agents", &["sh"], Play(Story::AgentLoop)),
    ("docs/agent-loop.md", "Approach B: synthetic tool calls", &["sh", "text"], Play(Story::AgentLoop)),
    ("docs/cli.md", "Why was the agent not told?", &["sh", "text"], Play(Story::People)),
    ("docs/cli.md", "A person's inbox", &["sh", "text"], Play(Story::People)),
    ("docs/cli.md", "A person's settings", &["sh", "text"], Play(Story::People)),
    ("docs/cli.md", "Does the hub send email?", &["sh", "text"], Play(Story::People)),
    ("docs/cli.md", "Erasing a person", &["sh", "text"], Play(Story::People)),
    ("docs/configuration.md", "Running it for others", &["toml"], Configuration),
    ("docs/configuration.md", "Email", &["toml"], Configuration),
    ("docs/events.md", "Examples", &["json"], By("walkthrough::every_example_event_is_published_and_shown")),
    ("docs/frameworks.md", "Agents built with a framework", &["sh"], Play(Story::Frameworks)),
    ("docs/hub.md", "Why was the agent told?", &["sh", "text"], Play(Story::Walkthrough)),
    ("docs/ingest.md", "Webhooks from other systems", &["toml"], Configuration),
    ("docs/ingest.md", "Trying it out", &["json", "toml", "sh", "text"], Play(Story::Ingest)),
    ("docs/ingest.md", "Alertmanager", &["toml"], Configuration),
    ("docs/ingest.md", "Any JSON", &["toml"], Configuration),
    ("docs/library.md", "A timeline", &["text"], By("tidy::the_guide_shows_what_the_first_timeline_prints")),
    ("docs/subscribers.md", "Writing a subscriber", &["toml", "sh", "text"], Play(Story::Subscribers)),
    ("docs/subscribers.md", "The template", &["jinja"], Play(Story::Subscribers)),
    ("docs/subscribers.md", "The text for people", &["jinja"], Play(Story::Subscribers)),
    ("docs/telegram.md", "Setting it up", &["toml"], Configuration),
    ("docs/telegram.md", "Several programs, or a webhook", &["toml"], Configuration),
    ("docs/telegram.md", "Trying it without Telegram", &["sh", "text"], Play(Story::Telegram)),
    // After the chat of docs/telegram.md.
    ("docs/notify.md", "From a script", &["sh", "text"], Play(Story::Telegram)),
    ("docs/notify.md", "The ledger", &["sh", "text"], Play(Story::Telegram)),
    ("docs/notify.md", "Who can be reached", &["toml"], Configuration),
    ("docs/notify.md", "Three processes", &["toml"], Configuration),
    ("docs/tools.md", "Connecting an agent", &["sh"], Play(Story::Tools)),
    ("docs/tools.md", "The tools by example", &["sh", "text"], Play(Story::Tools)),
    ("docs/tools.md", "Calling again", &["sh", "text"], Play(Story::Tools)),
    ("docs/tools.md", "What becomes of a notification", &["sh", "text"], Play(Story::Tools)),
];

const PYTHON_LOOP: &str = "examples/python-loop/loop.py";

const WEB: &str = "make test-web runs it, in tests/web/docs.test.mjs";

const WEB_EXAMPLES: &str = "starts servers for a browser; make test-web opens the page, in tests/web/examples.test.mjs";

const AGENTS: &str = "make test-agents follows the steps with the real programs, in tests/agents/walkthrough.mjs";

const FRAMEWORKS: &str = "make test-examples runs it, in tests/examples/frameworks.py";

const SDKS: &str = "make test-agents runs it, in tests/agents/sdks.mjs";

const LOOPS: &str = "make test-examples runs it, in tests/examples/loops.py";

/// Document, beginning of the block, and why no test of this binary runs it.
pub(crate) const NOT_RUN: &[(&str, &str, &str)] = &[
    ("README.md", "make run", "the test starts a hub of its own"),
    (
        "README.md",
        "cargo install",
        "builds a release; make test-agents runs the other two with the program of the tests",
    ),
    ("docs/agent-loop.md", "  the user's text, or a wake", "a picture"),
    ("docs/agent-loop.md", "import json, os", LOOPS),
    ("docs/agent-loop.md", "--- user", LOOPS),
    (
        "docs/agents.md",
        "cargo install",
        "builds a release; the steps after it are followed with the program of the tests",
    ),
    ("docs/agents.md", "bellwire start", AGENTS),
    ("docs/agents.md", "bellwire install ", AGENTS),
    ("docs/agents.md", "claude -p", AGENTS),
    ("docs/agents.md", "codex exec", AGENTS),
    ("docs/agents.md", "gemini --approval-mode", AGENTS),
    ("docs/agents.md", "opencode run", AGENTS),
    ("docs/agents.md", "bellwire run --name build", AGENTS),
    ("docs/agents.md", "Notifications from Bellwire", AGENTS),
    (
        "docs/agents.md",
        "{ \"mcpServers\"",
        "a harness's configuration; make test-mcp runs such commands, in tests/mcp/wrap.mjs",
    ),
    ("docs/agents.md", "bellwire doctor", AGENTS),
    ("docs/agents.md", "ok   ", AGENTS),
    ("docs/agents.md", "bellwire uninstall ", AGENTS),
    ("docs/block.md", "<notifications id=", "a picture; the timelines of the core render such blocks"),
    ("docs/frameworks.md", "import json, logging", FRAMEWORKS),
    ("docs/frameworks.md", "import asyncio\nfrom dataclasses", FRAMEWORKS),
    ("docs/frameworks.md", "@function_tool", FRAMEWORKS),
    ("docs/frameworks.md", "from bellwire import Conversation", FRAMEWORKS),
    ("docs/frameworks.md", "def build()", FRAMEWORKS),
    ("docs/frameworks.md", "import asyncio\nimport uuid", FRAMEWORKS),
    ("docs/frameworks.md", "export class Conversation", SDKS),
    ("docs/frameworks.md", "import { query }", SDKS),
    ("docs/frameworks.md", "export async function turn(conversation", SDKS),
    ("docs/frameworks.md", "import { isStepCount", SDKS),
    ("docs/frameworks.md", "export async function turn(model", SDKS),
    ("docs/ingest.md", "receivers:", "a file of Alertmanager"),
    (
        "docs/library.md",
        "use bellwire_core::",
        "a sketch of the programs in crates/core/examples, which make test runs",
    ),
    ("docs/notify.md", "bellwire token create --scope daemon", "the test of three processes makes such tokens"),
    ("docs/telegram.md", "cargo run --package telegram-standin", "the test starts both of its own"),
    ("docs/tools.md", "claude mcp add --transport http", "needs Claude Code; make test-mcp connects clients over HTTP"),
    (
        "docs/tools.md",
        "claude mcp add bellwire --env",
        "needs Claude Code; the tests of `bellwire mcp` run the command",
    ),
    ("docs/tools.md", "[mcp_servers.bellwire]", "a file of Codex"),
    ("docs/tools.md", "# Codex", "a file of Codex; the tests of `bellwire mcp` run the command"),
    ("docs/tools.md", "{\n  \"mcpServers\"", "a file of Gemini CLI; make test-mcp connects it"),
    ("docs/tools.md", "{\n  \"mcp\"", "a file of OpenCode"),
    ("docs/tools.md", "{ \"mcpServers\"", "a file of Gemini CLI; the tests of `bellwire mcp` run the command"),
    ("docs/tools.md", "{ \"mcp\"", "a file of OpenCode; the tests of `bellwire mcp` run the command"),
    ("docs/web.md", "<bellwire-inbox>", WEB),
    ("docs/web.md", "// page.js", WEB),
    ("docs/web.md", "default-src 'none'", "make test-web serves every page under it"),
    ("docs/web.md", "connect({\n  …", "a sketch of examples/web-page, which make test-web runs"),
    ("docs/web.md", "import { connect, notificationsFrom }", "a sketch of examples/web-chat, which make test-web runs"),
    ("docs/web.md", "import { BellwireInbox", "a sketch of examples/web-react, which make test-web runs"),
    ("docs/web.md", "document.querySelector(", "make test-web replaces texts in tests/web/inbox.test.mjs"),
    ("examples/openai-agents/README.md", "python3 -m venv", "installs packages; make test-examples runs the example"),
    ("examples/openai-agents/README.md", "--- the model reads", "the output of the block before"),
    ("examples/openai-agents/README.md", "ada=$(bellwire token create", "belongs to the run of the example"),
    ("examples/openai-agents/README.md", "from bellwire import", "a sketch of run.py, which make test-examples runs"),
    ("examples/python-loop/README.md", "token=$(bellwire token create", LOOPS),
    ("examples/python-loop/README.md", "--- butler: tool", LOOPS),
    ("examples/python-loop/README.md", "BELLWIRE_TOKEN=$token python3", LOOPS),
    ("examples/python-loop/README.md", "bellwire emit task.background", LOOPS),
    ("examples/typescript-loop/README.md", "token=$(bellwire token create", LOOPS),
    ("examples/web-chat/README.md", "python3 -m http.server", WEB_EXAMPLES),
    ("examples/web-page/README.md", "BELLWIRE_SERVER_ALLOWED_ORIGINS=", WEB_EXAMPLES),
    ("examples/web-page/README.md", "token=$(bellwire token create", WEB_EXAMPLES),
    ("examples/web-proxy/README.md", "BELLWIRE_TOKEN=$(bellwire token create", WEB_EXAMPLES),
    ("examples/web-react/README.md", "cd examples/web-react", WEB_EXAMPLES),
];

impl Block {
    /// The reason why no test runs it.
    pub(crate) fn not_run(&self) -> Option<&'static str> {
        let own = |(document, begin, _): &&(&str, &str, &str)| {
            self.document == *document && self.body.trim_start_matches('\n').starts_with(begin)
        };
        NOT_RUN.iter().find(own).map(|(_, _, reason)| *reason)
    }

    /// The checks of its rows, unless it is not run.
    pub(crate) fn checks(&self) -> Vec<Check> {
        let own = |(document, section, languages, _): &&(&str, &str, &[&str], Check)| {
            self.document == *document && self.section == *section && languages.contains(&self.language.as_str())
        };
        match self.not_run() {
            Some(_) => Vec::new(),
            None => CHECKED.iter().filter(own).map(|(_, _, _, check)| *check).collect(),
        }
    }
}

/// The blocks with this check, in the order of [`CHECKED`].
pub(crate) fn blocks_with(wanted: Check) -> Vec<Block> {
    let rows = CHECKED.iter().filter(|(_, _, _, check)| *check == wanted);
    let blocks = blocks();
    let of_row = |(document, section, _, _): &(&str, &str, &[&str], Check)| {
        let own = |block: &&Block| block.document == *document && block.section == *section;
        blocks.iter().filter(own).filter(|block| block.checks().contains(&wanted)).cloned().collect::<Vec<_>>()
    };
    rows.flat_map(of_row).collect()
}

/// Every fenced block of the repository's Markdown files.
pub(crate) fn blocks() -> Vec<Block> {
    let folders = ["", "docs", "bench"].map(PathBuf::from).into_iter();
    let examples = std::fs::read_dir(root().join("examples")).expect("a folder of the project").flatten();
    let examples =
        examples.filter(|entry| entry.path().is_dir()).map(|entry| Path::new("examples").join(entry.file_name()));
    let mut documents: Vec<PathBuf> = folders.chain(examples).flat_map(|folder| markdown_in(&folder)).collect();
    documents.sort();
    documents.iter().flat_map(|document| blocks_of(document)).collect()
}

fn markdown_in(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(root().join(folder)).expect("a folder of the project").flatten();
    let names = entries.map(|entry| folder.join(entry.file_name()));
    names.filter(|path| path.extension().is_some_and(|ending| ending == "md")).collect()
}

fn blocks_of(document: &Path) -> Vec<Block> {
    let text = std::fs::read_to_string(root().join(document)).expect("the document");
    let (mut blocks, mut section, mut open) = (Vec::new(), String::new(), None::<Block>);
    for line in text.lines() {
        match (line.strip_prefix("```"), &mut open) {
            (Some(_), Some(_)) => blocks.extend(open.take()),
            (Some(info), None) => {
                let mut words = info.split_whitespace().map(str::to_owned);
                open = Some(Block {
                    document: document.display().to_string().replace('\\', "/"),
                    section: section.clone(),
                    language: words.next().unwrap_or_default(),
                    file: words.next(),
                    body: String::new(),
                });
            }
            (None, Some(block)) => block.body.extend([line, "\n"]),
            (None, None) if line.starts_with('#') => section = line.trim_start_matches('#').trim().to_owned(),
            (None, None) => {}
        }
    }
    assert!(open.is_none(), "{}: a fence is not closed", document.display());
    blocks
}

#[test]
fn every_example_is_run_by_a_test_or_says_why_not() {
    let blocks = blocks();
    for block in &blocks {
        let Block { document, section, language, body, .. } = block;
        let rows = block.checks().len() + usize::from(block.not_run().is_some());
        assert_eq!(
            rows, 1,
            "one row of CHECKED or NOT_RUN for this block of {document}, {section} ({language}):\n{body}"
        );
    }
    for row @ (document, section, languages, check) in CHECKED {
        for language in *languages {
            let own = |block: &&Block| {
                block.document == *document && block.section == *section && block.language == *language
            };
            assert!(
                blocks.iter().filter(own).any(|block| block.checks() == [*check]),
                "no block for {row:?}: {language}"
            );
        }
    }
    for (document, begin, reason) in NOT_RUN {
        let own = |block: &&Block| block.document == *document && block.not_run() == Some(reason);
        assert!(blocks.iter().any(|block| own(&block)), "no block of {document} begins with {begin}");
    }
}

#[test]
fn fragments_are_parts_of_their_file() {
    for (_, _, _, check) in CHECKED {
        let PartOf(path) = check else { continue };
        let file = std::fs::read_to_string(root().join(path)).expect("the file");
        for block in blocks_with(*check) {
            assert!(file.contains(&block.body), "{} shows what {path} does not have:\n{}", block.document, block.body);
        }
    }
}

#[test]
fn tests_that_check_blocks_exist() {
    let walkthrough = std::fs::read_to_string(root().join("crates/cli/tests/it/walkthrough.rs")).expect("the module");
    for (document, _, _, check) in CHECKED {
        if let Play(story) = check {
            assert!(walkthrough.contains(&format!("play(Story::{story:?})")), "no test plays {story:?} of {document}");
        }
        let By(test) = check else { continue };
        let (module, name) = test.split_once("::").expect("a module and a test");
        let source =
            std::fs::read_to_string(root().join(format!("crates/cli/tests/it/{module}.rs"))).expect("the module");
        assert!(
            source.contains(&format!("#[test]\nfn {name}()")),
            "{document} is checked by {test}, which does not exist"
        );
    }
}

#[test]
fn configurations_are_accepted() {
    let folder = tempfile::tempdir().expect("a folder");
    for block in blocks_with(Configuration) {
        let file = folder.path().join("bellwire.toml");
        std::fs::write(&file, &block.body).expect("it is written");
        let mut command = crate::program::command(folder.path());
        let output = crate::program::finish(command.arg("config").arg("--config").arg(&file), "");
        let shown = crate::program::shown(&output);
        let is_silent = output.stderr.is_empty();
        assert!(output.status.success() && is_silent, "{}:\n{shown}", block.body);
    }
}

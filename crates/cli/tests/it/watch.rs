//! `bellwire watch` in a real folder, with a real hub.
//!
//! That something is not told is shown by a later change that is: the lines come in order.

use std::io::{BufRead as _, BufReader, Read as _};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::json;

use crate::hub::{Hub, terminate};
use crate::program::{finish, text};
use crate::run::open;

/// Long enough for a hook to report an edit, and short enough for a test.
const QUIET: &str = "700";

struct Watch {
    child: Child,
    /// The lines of its standard output.
    lines: Receiver<String>,
    stderr: BufReader<ChildStderr>,
}

/// A line that does not come in this time is missing.
const PATIENCE: Duration = Duration::from_secs(60);

impl Watch {
    fn start(command: &mut Command) -> Self {
        let command = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("it starts");
        let stdout = BufReader::new(child.stdout.take().expect("an output"));
        let (sender, lines) = channel();
        std::thread::spawn(move || stdout.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        let stderr = BufReader::new(child.stderr.take().expect("an error output"));
        let mut watch = Self { child, lines, stderr };
        watch.read_stderr("watching ");
        watch
    }

    fn here(hub: &Hub, folder: &Path, arguments: &[&str]) -> Self {
        let all = [&["watch", "--quiet", QUIET], arguments].concat();
        Self::start(hub.command(&all).current_dir(folder))
    }

    /// Reads standard error up to a line with this text.
    fn read_stderr(&mut self, expected: &str) -> String {
        let mut said = String::new();
        while !said.contains(expected) {
            assert_ne!(self.stderr.read_line(&mut said).expect("it speaks"), 0, "it ended: {said}");
        }
        said
    }

    /// The next lines that it prints.
    fn told(&self, count: usize) -> Vec<String> {
        let mut lines = Vec::new();
        for _ in 0..count {
            let line = self.lines.recv_timeout(PATIENCE);
            lines.push(line.unwrap_or_else(|_| panic!("nothing came after {lines:?}")));
        }
        lines
    }

    /// Ends it with this signal. Returns the exit code and what it still said.
    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        terminate(&self.child, signal);
        let mut rest: String = self.lines.iter().collect();
        self.stderr.read_to_string(&mut rest).expect("text");
        (self.child.wait().expect("it ends").code(), rest)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A repository in the home folder of the hub, as git makes it.
fn repository(hub: &Hub) -> PathBuf {
    let folder = hub.home.path().canonicalize().expect("a folder").join("project");
    std::fs::create_dir_all(folder.join(".git/info")).expect("a folder");
    std::fs::create_dir_all(folder.join("src")).expect("a folder");
    folder
}

fn write(folder: &Path, path: &str, text: &str) {
    let path = folder.join(path);
    std::fs::create_dir_all(path.parent().expect("a folder")).expect("it can be made");
    std::fs::write(path, text).expect("it can be written");
}

fn inject(hub: &Hub, conversation: &str, call: &str) -> String {
    text(&hub.run(&["inject", conversation, "after_tool", call, "--user", "me"]).stdout)
}

#[test]
fn agents_of_the_folder_read_what_others_changed_and_not_what_git_ignores() {
    let hub = Hub::start();
    let folder = repository(&hub);
    write(&folder, ".gitignore", "target/\n*.log\n");
    write(&folder, "src/.gitignore", "!keep.log\n");
    write(&folder, ".git/info/exclude", "private.txt\n");
    write(&hub.home.path().canonicalize().expect("a folder"), ".config/git/ignore", "*.mine\n");
    write(&folder, "src/old.rs", "old");
    write(&folder, "src/a.rs", "a");
    open(&hub, "chat", &folder);
    let watch = Watch::here(&hub, &folder, &[]);
    for ignored in ["target/debug/x.o", "build.log", "private.txt", "notes.mine", ".git/index", "src/.a.rs.swp"] {
        write(&folder, ignored, "x");
    }
    write(&folder, "src/passing.tmp", "x");
    std::fs::remove_file(folder.join("src/passing.tmp")).expect("it is there");
    // An atomic save, a rename, a removed file, a new folder.
    write(&folder, "src/a.rs.tmp", "a2");
    std::fs::rename(folder.join("src/a.rs.tmp"), folder.join("src/a.rs")).expect("it is renamed");
    std::fs::rename(folder.join("src/old.rs"), folder.join("src/new.rs")).expect("it is renamed");
    write(&folder, "src/keep.log", "x");
    write(&folder, "deep/er/b.rs", "b");
    let told = watch.told(4);
    let expected = ["chat: deep/er/b.rs", "chat: src/a.rs", "chat: src/keep.log", "chat: src/old.rs → src/new.rs"];
    assert_eq!(told, expected);
    let block = inject(&hub, "chat", "c1");
    let line = "- [file_watcher] files_modified[4]: deep/er/b.rs,src/a.rs,src/keep.log,src/old.rs → src/new.rs";
    assert!(block.contains(line), "{block}");

    // Rules and folders that change while it runs.
    write(&folder, "deep/er/c.rs", "c");
    std::fs::remove_file(folder.join("src/a.rs")).expect("it is there");
    assert_eq!(watch.told(2), ["chat: deep/er/c.rs", "chat: src/a.rs (removed)"]);
    write(&folder, ".gitignore", "deep/\n");
    assert_eq!(watch.told(1), ["chat: .gitignore"]);
    write(&folder, "deep/er/c.rs", "c2");
    write(&folder, "target/debug/y.o", "y");
    assert_eq!(watch.told(1), ["chat: target/debug/y.o"]);
    let (code, rest) = watch.end("-INT");
    assert_eq!((code, rest.as_str()), (Some(0), ""));
}

#[test]
fn an_agent_is_not_told_of_its_own_edits_and_others_are() {
    let hub = Hub::start();
    let folder = repository(&hub);
    let token = hub.agent_token_of("me");
    let hosts = hub.home.path().join(".config/bellwire/hosts");
    std::fs::create_dir_all(&hosts).expect("a folder");
    let file = format!("url = \"{}\"\ntoken = \"{token}\"\nuser = \"me\"\ntimeout_ms = 20000\n", hub.url);
    std::fs::write(hosts.join("claude-code.toml"), file).expect("it is written");
    let hook = |call: &str, tool: &str, path: &Path, content: &str| {
        let input = json!({
            "session_id": "s1", "cwd": folder, "hook_event_name": "PostToolUse", "tool_name": tool, "tool_use_id": call,
            "tool_input": {"file_path": path, "content": content}, "tool_response": {"success": true},
        });
        let output = hub.run_with(&["hook", "claude-code"], &input.to_string());
        assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(0), ""));
    };
    let begin = json!({"session_id": "s1", "cwd": folder, "hook_event_name": "SessionStart", "source": "startup"});
    hub.run_with(&["hook", "claude-code"], &begin.to_string());
    open(&hub, "other", &folder);
    let watch = Watch::here(&hub, &folder, &[]);
    write(&folder, "src/mine.rs", "mine");
    hook("t1", "Write", &folder.join("src/mine.rs"), "mine");
    // Arguments that are too long to be stored whole still name the file.
    let long = "x".repeat(20_000);
    write(&folder, "src/long.rs", &long);
    hook("t2", "Write", &folder.join("src/long.rs"), &long);
    write(&folder, "src/read.rs", "read");
    hook("t3", "Read", &folder.join("src/read.rs"), "");
    let mut told = watch.told(4);
    told.sort();
    let expected = ["claude-code:s1: src/read.rs", "other: src/long.rs", "other: src/mine.rs", "other: src/read.rs"];
    assert_eq!(told, expected);
}

#[test]
fn a_flood_is_one_sum() {
    let hub = Hub::start();
    let folder = repository(&hub);
    let watch = Watch::here(&hub, &folder, &["--conversation", "chat", "--user", "me"]);
    for at in 0..2000 {
        write(&folder, &format!("{}/{}/{at}.rs", ["src", "docs"][at % 2], at % 50), "x");
    }
    let mut seen = 0;
    while seen < 2000 {
        let line = watch.told(1).remove(0);
        let count = line.trim_start_matches("chat: ").split(' ').next().and_then(|text| text.parse::<usize>().ok());
        let count = count.unwrap_or_else(|| panic!("no sum: {line}"));
        assert!(line.contains(" in src/") || line.contains(" in docs/"), "{line}");
        seen += count;
    }
    assert_eq!(seen, 2000);
    let (code, rest) = watch.end("-TERM");
    assert_eq!((code, rest.as_str()), (Some(0), ""));
    let block = inject(&hub, "chat", "c1");
    assert!(block.contains(" files: "), "{block}");
}

#[test]
fn what_cannot_be_watched_is_named() {
    let hub = Hub::start();
    let folder = repository(&hub);
    let nobody = finish(hub.command(&["watch"]).current_dir(&folder), "");
    assert_eq!(nobody.status.code(), Some(2));
    assert!(text(&nobody.stderr).contains("no agent works in"), "{}", text(&nobody.stderr));
    let missing = finish(hub.command(&["watch", "absent", "-c", "chat", "--user", "me"]).current_dir(&folder), "");
    assert_eq!(missing.status.code(), Some(2));
    assert!(text(&missing.stderr).contains("absent cannot be watched: No such file"), "{}", text(&missing.stderr));

    // A loop of symbolic links, and a root that goes away.
    let tree = folder.join("src/tree");
    std::fs::create_dir_all(&tree).expect("a folder");
    #[cfg(unix)]
    std::os::unix::fs::symlink(&folder, tree.join("up")).expect("a link");
    let mut watch = Watch::here(&hub, &folder, &["src/tree", "-c", "chat", "--user", "me"]);
    write(&tree, "a.rs", "a");
    assert_eq!(watch.told(1), ["chat: src/tree/a.rs"]);
    std::fs::remove_dir_all(&tree).expect("it is removed");
    let said = watch.read_stderr("everything that was watched is gone");
    assert!(said.contains("src/tree is gone, and is not watched any more"), "{said}");
    assert_eq!(watch.child.wait().expect("it ends").code(), Some(2));
}

#[test]
fn a_single_file_is_watched_although_editors_replace_it() {
    let hub = Hub::start();
    let folder = repository(&hub);
    write(&folder, ".gitignore", "notes.txt\n");
    write(&folder, "notes.txt", "1");
    let watch = Watch::here(&hub, &folder, &["notes.txt", "-c", "chat", "--user", "me"]);
    for _ in 0..2 {
        write(&folder, "other.txt", "x");
        write(&folder, "notes.new", "2");
        std::fs::rename(folder.join("notes.new"), folder.join("notes.txt")).expect("it is renamed");
        assert_eq!(watch.told(1), ["chat: notes.txt"]);
    }
}

#[test]
fn changes_wait_for_a_hub_that_is_away() {
    let mut hub = Hub::start();
    let folder = repository(&hub);
    let mut watch = Watch::here(&hub, &folder, &["-c", "chat", "--user", "me"]);
    hub.kill();
    write(&folder, "src/a.rs", "a");
    let said = watch.read_stderr("changes wait until they can be told");
    assert!(said.contains("no hub answers"), "{said}");
    let hub = hub.restart();
    assert_eq!(watch.told(1), ["chat: src/a.rs"]);
    assert!(inject(&hub, "chat", "c1").contains("src/a.rs"));
}

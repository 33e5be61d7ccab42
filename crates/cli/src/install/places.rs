//! What `install` writes for each harness, and where.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::codex_trust;
use crate::hosts::Host;

/// With what the name of the program begins: by that, our hooks are found again.
pub(super) const PROGRAM: &str = "bellwire";

/// The scope of an installation.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Scope {
    /// All sessions of this user.
    User,
    /// Sessions in one folder.
    Project,
}

/// Where and for which program to install.
pub(super) struct Site<'a> {
    pub(super) host: Host,
    pub(super) scope: Scope,
    /// The home folder.
    pub(super) home: &'a Path,
    /// The folder of the project.
    pub(super) project: &'a Path,
    /// The absolute path of this program.
    pub(super) binary: &'a str,
}

/// A file of a harness and our entries in it.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) path: PathBuf,
    pub(super) entries: Vec<Entry>,
}

/// One of our entries.
#[derive(Debug)]
pub(super) enum Entry {
    /// A member of a JSON object.
    Member(Vec<String>, Value),
    /// A member that the file needs to be valid. It is set if it is missing and stays.
    Needed(Vec<String>, Value),
    /// An element of a JSON array: a hook.
    Hook(Vec<String>, Value),
    /// A table of TOML: the stdio server `bellwire mcp`.
    TomlServer(Vec<String>),
    /// The whole file is ours.
    File(String),
}

impl Site<'_> {
    /// The folder of this harness's files in the home folder, which a variable may change.
    fn folder(&self, variable: &str, default: &str) -> PathBuf {
        Self::named(variable).unwrap_or_else(|| self.home.join(default))
    }

    /// A folder that a variable names. One that is not absolute is passed over, as it would depend on where this runs.
    fn named(variable: &str) -> Option<PathBuf> {
        crate::data_dir::variable(variable).filter(|path| path.is_absolute())
    }

    fn own(&self, variable: &str, in_home: &str, in_project: &str) -> PathBuf {
        match self.scope {
            Scope::User => self.folder(variable, in_home),
            Scope::Project => self.project.join(in_project),
        }
    }

    /// The command line of a hook, for a shell.
    fn command(&self, event: Option<&str>) -> String {
        let event = event.map(|event| format!(" {event}")).unwrap_or_default();
        format!("{} hook {}{event}", shell_quoted(self.binary), self.host.name())
    }

    fn server_arguments(&self) -> [&'static str; 3] {
        ["mcp", "--host", self.host.name()]
    }

    fn server(&self) -> Value {
        json!({ "command": self.binary, "args": self.server_arguments() })
    }

    /// The files and entries of this installation.
    pub(super) fn places(&self) -> Vec<Place> {
        match self.host {
            Host::ClaudeCode => self.claude_code(),
            Host::Codex => self.codex(),
            Host::Gemini => self.gemini(),
            Host::OpenCode => self.opencode(),
            Host::Cursor => self.cursor(),
            Host::Copilot => self.copilot(),
        }
    }

    /// Hooks in Claude Code's form: an event has groups, each with a matcher and handlers.
    fn hook_groups(&self, events: &[&str], timeout: u64) -> Vec<Entry> {
        let handler = json!({ "type": "command", "command": self.command(None), "timeout": timeout });
        let group = json!({ "hooks": [handler] });
        events.iter().map(|event| Entry::Hook(path(&["hooks", event]), group.clone())).collect()
    }

    fn claude_code(&self) -> Vec<Place> {
        let events = [
            "SessionStart",
            "UserPromptSubmit",
            "PostToolUse",
            "PostToolUseFailure",
            "Stop",
            "SubagentStop",
            "SessionEnd",
        ];
        let settings = match self.scope {
            Scope::User => self.folder("CLAUDE_CONFIG_DIR", ".claude").join("settings.json"),
            Scope::Project => self.project.join(".claude/settings.local.json"),
        };
        let state = match Self::named("CLAUDE_CONFIG_DIR") {
            Some(folder) => folder.join(".claude.json"),
            None => self.home.join(".claude.json"),
        };
        let mut server = self.server();
        server["type"] = json!("stdio");
        let at = match self.scope {
            Scope::User => path(&["mcpServers", "bellwire"]),
            Scope::Project => path(&["projects", &self.project.to_string_lossy(), "mcpServers", "bellwire"]),
        };
        vec![
            Place { path: settings, entries: self.hook_groups(&events, 10) },
            Place { path: state, entries: vec![Entry::Member(at, server)] },
        ]
    }

    fn codex(&self) -> Vec<Place> {
        let folder = self.own("CODEX_HOME", ".codex", ".codex");
        let events = ["SessionStart", "UserPromptSubmit", "PostToolUse", "PostCompact", "Stop", "SubagentStop"];
        let mut hooks = self.hook_groups(&events, 10);
        // More is not allowed for this one; Codex would say so at every start.
        hooks.extend(self.hook_groups(&["SessionEnd"], codex_trust::SESSION_END_MAX));
        vec![
            Place { path: folder.join("hooks.json"), entries: hooks },
            Place {
                path: folder.join("config.toml"),
                entries: vec![Entry::TomlServer(path(&["mcp_servers", "bellwire"]))],
            },
        ]
    }

    fn gemini(&self) -> Vec<Place> {
        let events = ["SessionStart", "BeforeAgent", "AfterTool", "AfterAgent", "PreCompress", "SessionEnd"];
        // In milliseconds.
        let mut entries = self.hook_groups(&events, 10_000);
        entries.push(Entry::Needed(path(&["tools", "enableHooks"]), json!(true)));
        entries.push(Entry::Member(path(&["mcpServers", "bellwire"]), self.server()));
        let folder = match self.scope {
            Scope::User => self.folder("GEMINI_CLI_HOME", "").join(".gemini"),
            Scope::Project => self.project.join(".gemini"),
        };
        vec![Place { path: folder.join("settings.json"), entries }]
    }

    fn opencode(&self) -> Vec<Place> {
        let folder = match self.scope {
            Scope::User => match Self::named("XDG_CONFIG_HOME") {
                Some(folder) => folder.join("opencode"),
                None => self.home.join(".config/opencode"),
            },
            Scope::Project => self.project.join(".opencode"),
        };
        let commented = folder.join("opencode.jsonc");
        let settings = if commented.exists() { commented } else { folder.join("opencode.json") };
        let mut command = vec![self.binary];
        command.extend(self.server_arguments());
        let server = json!({ "type": "local", "command": command, "enabled": true });
        let binary = Value::from(self.binary).to_string();
        let plugin = include_str!("opencode_plugin.js").replace("\"bellwire\"", &binary);
        vec![
            Place { path: folder.join("plugin/bellwire.js"), entries: vec![Entry::File(plugin)] },
            Place { path: settings, entries: vec![Entry::Member(path(&["mcp", "bellwire"]), server)] },
        ]
    }

    fn cursor(&self) -> Vec<Place> {
        let events = [
            "sessionStart",
            "beforeSubmitPrompt",
            "postToolUse",
            "postToolUseFailure",
            "preCompact",
            "stop",
            "sessionEnd",
        ];
        let folder = match self.scope {
            Scope::User => self.home.join(".cursor"),
            Scope::Project => self.project.join(".cursor"),
        };
        let hook = json!({ "command": self.command(None), "timeout": 10 });
        let mut entries = vec![Entry::Needed(path(&["version"]), json!(1))];
        entries.extend(events.iter().map(|event| Entry::Hook(path(&["hooks", event]), hook.clone())));
        let server = Entry::Member(path(&["mcpServers", "bellwire"]), self.server());
        vec![
            Place { path: folder.join("hooks.json"), entries },
            Place { path: folder.join("mcp.json"), entries: vec![server] },
        ]
    }

    fn copilot(&self) -> Vec<Place> {
        let events = [
            "sessionStart",
            "userPromptSubmitted",
            "postToolUse",
            "postToolUseFailure",
            "preCompact",
            "agentStop",
            "sessionEnd",
        ];
        let hook = |event: &str| json!([{ "type": "command", "bash": self.command(Some(event)), "timeoutSec": 10 }]);
        let hooks: serde_json::Map<String, Value> =
            events.iter().map(|event| ((*event).to_owned(), hook(event))).collect();
        let file = serde_json::to_string_pretty(&json!({ "version": 1, "hooks": hooks })).unwrap_or_default() + "\n";
        let hooks = match self.scope {
            Scope::User => self.folder("COPILOT_HOME", ".copilot").join("hooks/bellwire.json"),
            Scope::Project => self.project.join(".github/hooks/bellwire.json"),
        };
        let server = json!({
            "type": "local", "command": self.binary, "args": self.server_arguments(), "tools": ["*"],
        });
        let servers = self.folder("COPILOT_HOME", ".copilot").join("mcp-config.json");
        vec![
            Place { path: hooks, entries: vec![Entry::File(file)] },
            Place { path: servers, entries: vec![Entry::Member(path(&["mcpServers", "bellwire"]), server)] },
        ]
    }
}

fn path(parts: &[&str]) -> Vec<String> {
    parts.iter().map(|part| (*part).to_owned()).collect()
}

/// A path for a POSIX shell.
fn shell_quoted(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(is_plain) { text.to_owned() } else { format!("'{}'", text.replace('\'', r"'\''")) }
}

/// Whether a handler of a hook is ours, of this or an earlier version and wherever the program was then.
pub(super) fn is_our_hook(host: Host, handler: &Value) -> bool {
    let command = handler["command"].as_str().unwrap_or_default();
    let Some((program, rest)) = command.rsplit_once(" hook ") else { return false };
    let name = program.trim_end_matches(['\'', '"']).rsplit(['/', '\\', ' ', '\'', '"']).next().unwrap_or_default();
    name.starts_with(PROGRAM) && rest.split(' ').next() == Some(host.name())
}

//! The agent harnesses that `hook`, `install` and `mcp --host` know, and the file that says where each finds its hub.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, Result};
use bellwire_server::config::Secret;
use clap::ValueEnum;
use toml_edit::DocumentMut;

use crate::settings;

/// An agent harness.
#[derive(Copy, Clone, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Host {
    ClaudeCode,
    Codex,
    Gemini,
    #[value(name = "opencode")]
    OpenCode,
    Cursor,
    Copilot,
}

impl Host {
    pub(crate) const ALL: [Self; 6] =
        [Self::ClaudeCode, Self::Codex, Self::Gemini, Self::OpenCode, Self::Cursor, Self::Copilot];

    /// The name in commands, conversation ids and origins.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Gemini => "gemini",
            Self::OpenCode => "opencode",
            Self::Cursor => "cursor",
            Self::Copilot => "copilot",
        }
    }

    /// The name for people.
    pub(crate) const fn title(self) -> &'static str {
        match self {
            Self::ClaudeCode => "Claude Code",
            Self::Codex => "Codex",
            Self::Gemini => "Gemini CLI",
            Self::OpenCode => "OpenCode",
            Self::Cursor => "Cursor",
            Self::Copilot => "Copilot CLI",
        }
    }

    pub(crate) fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|host| host.name() == name)
    }

    /// The session in whose shell a process runs, for harnesses that tell it by a variable.
    pub(crate) fn session_of_shell(variable: impl Fn(&str) -> Option<String>) -> Option<(Self, String)> {
        let known = [("CLAUDE_CODE_SESSION_ID", Self::ClaudeCode), ("CODEX_SESSION_ID", Self::Codex)];
        known.into_iter().find_map(|(name, host)| Some((host, variable(name).filter(|id| !id.is_empty())?)))
    }

    /// Whether `bellwire wake` can start a turn in it by its own means. OpenCode's plugin does it there.
    pub(crate) const fn can_be_woken(self) -> bool {
        matches!(self, Self::ClaudeCode | Self::Codex | Self::OpenCode)
    }

    /// The harness by the name with which its MCP client introduces itself.
    pub(crate) fn of_mcp_client(name: &str) -> Option<Self> {
        let known = [
            ("claude-code", Self::ClaudeCode),
            ("codex", Self::Codex),
            ("gemini-cli", Self::Gemini),
            ("opencode", Self::OpenCode),
            ("cursor", Self::Cursor),
            ("github-copilot", Self::Copilot),
        ];
        let name = name.to_ascii_lowercase();
        known.into_iter().find(|(prefix, _)| name.starts_with(prefix)).map(|(_, host)| host)
    }

    /// The conversation of one of its sessions.
    pub(crate) fn conversation(self, session: &str) -> String {
        format!("{}:{session}", self.name())
    }
}

/// `hosts/HOST.toml` in the configuration folder: the hub of a harness and its token. Mode 600, because no file of a harness
/// may contain a token: those are shared, synchronised and committed.
#[derive(Clone, Debug)]
pub(crate) struct HostFile {
    pub(crate) url: String,
    pub(crate) token: Secret,
    /// The token's id, by which it is revoked.
    pub(crate) token_id: Option<String>,
    /// The person for whom the agent works.
    pub(crate) user: String,
    /// How long a hook waits for the hub.
    pub(crate) timeout_ms: u64,
    /// Whether the harness shows its user a line when notifications were given to the model.
    pub(crate) visible: bool,
    /// Whether idle sessions may be woken.
    pub(crate) wake: bool,
    /// The command that wakes them, instead of the harness's own way.
    pub(crate) wake_command: Option<String>,
}

impl HostFile {
    pub(crate) const TIMEOUT_MS: u64 = 200;

    pub(crate) fn path(host: Host) -> Result<PathBuf> {
        let folder = settings::own_folder().context("there is no home folder, so no configuration folder")?;
        Ok(folder.join("hosts").join(format!("{}.toml", host.name())))
    }

    /// What a harness uses: its file, with the hub of `BELLWIRE_URL` if that is set. The token is always that of the file:
    /// one in the environment may be a person's or the operator's.
    pub(crate) fn load(host: Host) -> Result<Self> {
        let file = Self::read(host)?;
        let url = std::env::var("BELLWIRE_URL").ok().filter(|url| !url.is_empty());
        Ok(Self { url: url.map_or(file.url, |url| url.trim_end_matches('/').to_owned()), ..file })
    }

    /// Reads the file of a harness as it is.
    pub(crate) fn read(host: Host) -> Result<Self> {
        let path = Self::path(host)?;
        let missing = || format!("{} cannot be read; run bellwire install {}", path.display(), host.name());
        let text = std::fs::read_to_string(&path).with_context(missing)?;
        Self::parse(&text).with_context(|| format!("{} is not valid", path.display()))
    }

    fn parse(text: &str) -> Result<Self> {
        let document: DocumentMut = text.parse()?;
        let string = |key: &str| {
            let value = document.get(key).and_then(|item| item.as_str()).filter(|value| !value.is_empty());
            value.map(str::to_owned).with_context(|| format!("{key} is missing"))
        };
        let timeout_ms = document.get("timeout_ms").and_then(|item| item.as_integer());
        Ok(Self {
            url: string("url")?.trim_end_matches('/').to_owned(),
            token: Secret::new(string("token")?),
            token_id: string("token_id").ok(),
            user: string("user")?,
            timeout_ms: timeout_ms.and_then(|millis| u64::try_from(millis).ok()).unwrap_or(Self::TIMEOUT_MS),
            visible: document.get("visible").and_then(|item| item.as_bool()).unwrap_or_default(),
            wake: document.get("wake").and_then(|item| item.as_bool()).unwrap_or_default(),
            wake_command: string("wake_command").ok(),
        })
    }

    pub(crate) fn text(&self) -> String {
        let mut document = DocumentMut::new();
        document["url"] = toml_edit::value(self.url.as_str());
        document["token"] = toml_edit::value(self.token.reveal());
        if let Some(id) = &self.token_id {
            document["token_id"] = toml_edit::value(id.as_str());
        }
        document["user"] = toml_edit::value(self.user.as_str());
        document["timeout_ms"] = toml_edit::value(i64::try_from(self.timeout_ms).unwrap_or(i64::MAX));
        document["visible"] = toml_edit::value(self.visible);
        document["wake"] = toml_edit::value(self.wake);
        if let Some(command) = &self.wake_command {
            document["wake_command"] = toml_edit::value(command.as_str());
        }
        document.to_string()
    }
}

/// The folder for what hooks note between their runs, with mode 700.
pub(crate) fn state_folder() -> Option<PathBuf> {
    use crate::data_dir::variable;
    let base = if cfg!(target_os = "macos") {
        variable("HOME").map(|home| home.join("Library/Application Support/bellwire"))
    } else if cfg!(windows) {
        variable("LOCALAPPDATA").map(|folder| folder.join("bellwire"))
    } else {
        let state = variable("XDG_STATE_HOME").filter(|path| path.is_absolute());
        state.or_else(|| variable("HOME").map(|home| home.join(".local/state"))).map(|folder| folder.join("bellwire"))
    };
    base.map(|base| base.join("hooks"))
}

/// Creates a folder with mode 700.
pub(crate) fn make_private_folder(path: &Path) -> std::io::Result<()> {
    let mut builder = std::fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_file_is_read_as_it_was_written() {
        let file = HostFile {
            url: "http://127.0.0.1:2355".into(),
            token: Secret::new("bw_\"quoted\""),
            token_id: Some("id".into()),
            user: "me".into(),
            timeout_ms: 350,
            visible: true,
            wake: true,
            wake_command: Some("say \"it\"\n".into()),
        };
        let read = HostFile::parse(&file.text()).expect("it is valid");
        assert_eq!((read.url, read.user, read.timeout_ms, read.visible), (file.url, file.user, 350, true));
        assert_eq!((read.wake, read.wake_command), (true, file.wake_command));
        assert_eq!(read.token.reveal(), file.token.reveal());
        let refused = HostFile::parse("url = \"http://127.0.0.1:2355\"").expect_err("no token").to_string();
        assert_eq!(refused, "token is missing");
    }

    #[test]
    fn names_are_those_of_the_command_line() {
        for host in Host::ALL {
            assert_eq!(Host::parse(host.name()), Some(host));
            assert_eq!(host.to_possible_value().expect("it has one").get_name(), host.name());
        }
    }
}

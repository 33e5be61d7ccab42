//! `bellwire hook HOST`: brings notifications into a harness that runs a command at its injection points.
//!
//! It reads what the harness says on standard input, reports it to the hub, takes what waits, and answers in the harness's own
//! form. It must never cost the agent anything: without a hub, with a slow one, or with an input it does not know, it prints
//! nothing and exits with 0. It never decides on a permission and never blocks a tool.

pub(crate) mod call;
mod claude_code;
mod codex;
mod codex_transcript;
mod copilot;
mod cursor;
mod detect;
pub(crate) mod exchange;
mod gemini;
mod hub;
mod input;
pub(crate) mod notes;
mod opencode;
pub(crate) mod processes;
mod time_limit;
pub(crate) mod wakeable;
pub(crate) mod woken;

use std::ffi::OsString;
use std::io::{IsTerminal as _, Write as _};
use std::time::{Duration, Instant};

use anyhow::Result;
use serde_json::Value;

use crate::hosts::{Host, HostFile};
use call::HookCall;
use exchange::Exchange;
use time_limit::TimeLimit;

/// How long the harness may take to send its input, and the hook to parse it. After that, `timeout_ms` of the host file counts.
const INPUT_TIMEOUT: Duration = Duration::from_secs(3);
/// Set to see on standard error why a hook was silent.
const DEBUG: &str = "BELLWIRE_HOOK_DEBUG";

/// Runs the hook if that is what the arguments ask for, without the parser of the other commands, which takes longer than
/// the hook. Returns the exit code. A person who types the command, or asks for help, is left to that parser. A harness never is:
/// the parser refuses arguments with exit code 2, by which harnesses block the prompt or the end of a turn.
pub(crate) fn run_if_asked() -> Option<u8> {
    let arguments: Vec<OsString> = std::env::args_os().skip(1).collect();
    let (first, rest) = arguments.split_first()?;
    if first != "hook" || rest.iter().any(|word| word == "--help" || word == "-h") || std::io::stdin().is_terminal() {
        return None;
    }
    let words: Option<Vec<&str>> = rest.iter().map(|word| word.to_str()).collect();
    let (host, event) = match words.as_deref() {
        Some([host]) => (Host::parse(host), None),
        Some([host, event]) => (Host::parse(host), Some(*event)),
        _ => (None, None),
    };
    Some(host.map_or(0, |host| run(host, event)))
}

/// Runs a hook and returns the exit code. `event` is for harnesses whose input does not name it.
pub(crate) fn run(host: Host, event: Option<&str>) -> u8 {
    let limit = TimeLimit::start(INPUT_TIMEOUT, || std::process::exit(0));
    answer(host, event, &limit).unwrap_or_else(|error| {
        if std::env::var_os(DEBUG).is_some() {
            anstream::eprintln!("bellwire hook {}: {error:#}", host.name());
        }
        0
    })
}

fn answer(host: Host, event: Option<&str>, limit: &TimeLimit) -> Result<u8> {
    let bytes = input::read(std::io::stdin().lock())?;
    limit.set(Instant::now() + INPUT_TIMEOUT);
    let input = input::parse(&bytes)?;
    if let Some(other) = detect::other_host(host, &input) {
        anyhow::bail!("{} runs this hook; bellwire install {} makes one for it", other.title(), other.name());
    }
    let Some(call) = read(host, event, &input) else { return Ok(0) };
    if notes::is_paused(&host.conversation(&call.session)) {
        return Ok(0);
    }
    let file = HostFile::load(host)?;
    let deadline = Instant::now() + Duration::from_millis(file.timeout_ms);
    limit.set(deadline);
    let Some(found) = Exchange::new(host, &file, &call, deadline)?.run(&call.moment)? else { return Ok(0) };
    let line = file.visible.then(|| found.line());
    let (text, code) = shape(host, event, &input, &found.context, line.as_deref());
    limit.lift();
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    found.written();
    Ok(code)
}

fn read(host: Host, event: Option<&str>, input: &Value) -> Option<HookCall> {
    match host {
        Host::ClaudeCode => claude_code::read(input),
        Host::Codex => codex::read(input),
        Host::Gemini => gemini::read(input),
        Host::OpenCode => opencode::read(input),
        Host::Cursor => cursor::read(input),
        Host::Copilot => copilot::read(event?, input),
    }
}

/// The answer in the harness's form, and the exit code.
fn shape(host: Host, event: Option<&str>, input: &Value, context: &str, line: Option<&str>) -> (String, u8) {
    let json = match host {
        Host::ClaudeCode => claude_code::answer(input, context, line),
        Host::Codex => codex::answer(input, context, line),
        Host::Gemini => gemini::answer(input, context, line),
        Host::OpenCode => opencode::answer(context, line),
        Host::Cursor => cursor::answer(input, context),
        Host::Copilot => return copilot::answer(event.unwrap_or_default(), context),
    };
    (json.to_string(), 0)
}

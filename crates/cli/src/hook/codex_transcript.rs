//! How a command of Codex ended. Codex writes it to the session's transcript before it runs the hook, which it does not tell.

use std::fs::File;
use std::io::{Read as _, Seek as _, SeekFrom};

use serde_json::Value;

/// How much of the end of the transcript is read, in bytes. The line of a command has its output, and lines of other calls that
/// ran at the same time may follow it.
const READ_MAX: u64 = 512 * 1024;

/// The exit code of the command with this call id; `None` if the transcript does not have it.
pub(super) fn exit_code(transcript: &str, call_id: &str) -> Option<i64> {
    // Anything else could make the hook wait.
    std::fs::metadata(transcript).ok().filter(std::fs::Metadata::is_file)?;
    let mut file = File::open(transcript).ok()?;
    let length = file.metadata().ok()?.len();
    file.seek(SeekFrom::Start(length.saturating_sub(READ_MAX))).ok()?;
    let mut bytes = Vec::new();
    file.take(READ_MAX).read_to_end(&mut bytes).ok()?;
    let text = String::from_utf8_lossy(&bytes);
    text.lines().rev().filter(|line| line.contains(call_id)).find_map(|line| exit_code_in(line, call_id))
}

fn exit_code_in(line: &str, call_id: &str) -> Option<i64> {
    let line: Value = serde_json::from_str(line).ok()?;
    let payload = &line["payload"];
    let is_end = line["type"] == "event_msg" && payload["type"] == "item_completed";
    let item = Some(&payload["item"]).filter(|_| is_end)?;
    (item["type"] == "CommandExecution" && item["id"] == call_id).then(|| item["exit_code"].as_i64())?
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines as Codex 0.166.0 writes them, shortened.
    const ENDED: &str = r#"{"timestamp":"2026-11-18T13:36:26.360Z","ordinal":11,"type":"event_msg","payload":{"type":"item_completed","thread_id":"t","turn_id":"u","item":{"type":"CommandExecution","id":"call_1","process_id":"84359","command":["/bin/bash","-lc","exit 3"],"source":"unified_exec_startup","status":"failed","aggregated_output":"{\"id\":\"call_2\",\"exit_code\":9}","exit_code":3}}}"#;
    const CALLED: &str = r#"{"type":"response_item","payload":{"type":"function_call","name":"exec_command","arguments":"{\"cmd\":\"exit 3\"}","call_id":"call_1"}}"#;

    fn code(transcript: &str, call_id: &str) -> Option<i64> {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("rollout.jsonl");
        std::fs::write(&path, transcript).expect("it can be written");
        exit_code(path.to_str().expect("text"), call_id)
    }

    #[test]
    fn the_exit_code_is_that_of_the_call_and_not_of_what_it_printed() {
        let transcript = format!("{CALLED}\n{ENDED}\nnot json call_1\n");
        assert_eq!(code(&transcript, "call_1"), Some(3));
        assert_eq!(code(&transcript, "call_2"), None);
        assert_eq!(code(CALLED, "call_1"), None);
        assert_eq!(exit_code("/nowhere", "call_1"), None);
        assert_eq!(exit_code("/dev/zero", "call_1"), None);
    }

    #[test]
    fn only_the_end_of_a_long_transcript_is_read() {
        let rest = format!("{}\n", "é".repeat(50)).repeat(6_000);
        assert_eq!(code(&format!("{rest}{ENDED}"), "call_1"), Some(3));
        assert_eq!(code(&format!("{ENDED}\n{rest}"), "call_1"), None);
    }
}

//! Runs a program that wakes a session, within bounds.

use std::time::Duration;

use anyhow::{Context as _, Result, bail};
use tokio::io::{AsyncRead, AsyncReadExt as _};
use tokio::process::{Child, Command};

/// What a program prints beyond this is dropped, in bytes for each of its two streams.
const OUTPUT_MAX: usize = 4 * 1024;
/// How long the output is read after the program has ended: what it started in the background may keep it open.
const REST: Duration = Duration::from_millis(500);

/// Runs a program to its end; returns what it printed. After `limit`, it and everything that it started is ended.
pub(super) async fn run(mut command: Command, limit: Duration) -> Result<String> {
    use std::process::Stdio;
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).kill_on_drop(true);
    #[cfg(unix)]
    command.process_group(0);
    let program = command.as_std().get_program().to_string_lossy().into_owned();
    let mut child = command.spawn().with_context(|| format!("{program} cannot be started"))?;
    let out = tokio::spawn(read(child.stdout.take()));
    let err = tokio::spawn(read(child.stderr.take()));
    let ended = tokio::time::timeout(limit, child.wait()).await;
    if ended.is_err() {
        end(&mut child).await;
    }
    let said = [rest(out).await, rest(err).await].join("\n").trim().to_owned();
    match ended {
        Err(_) => bail!("{program} still ran after {} s and was ended; it printed: {said}", limit.as_secs()),
        Ok(status) => match status? {
            status if status.success() => Ok(said),
            status => bail!("{program} has failed ({status}); it printed: {said}"),
        },
    }
}

/// Reads a stream to its end, so that the program can write it, and keeps its beginning.
async fn read(stream: Option<impl AsyncRead + Unpin>) -> Vec<u8> {
    let (mut kept, mut part) = (Vec::new(), [0; 1024]);
    let Some(mut stream) = stream else { return kept };
    while let Ok(count @ 1..) = stream.read(&mut part).await {
        let room = OUTPUT_MAX.saturating_sub(kept.len()).min(count);
        kept.extend_from_slice(&part[..room]);
    }
    kept
}

async fn rest(mut reader: tokio::task::JoinHandle<Vec<u8>>) -> String {
    let read = tokio::time::timeout(REST, &mut reader).await;
    reader.abort();
    String::from_utf8_lossy(&read.ok().and_then(Result::ok).unwrap_or_default()).trim_end().to_owned()
}

/// Ends the program and its process group.
async fn end(child: &mut Child) {
    #[cfg(unix)]
    if let Some(group) = child.id().and_then(|id| i32::try_from(id).ok()).and_then(rustix::process::Pid::from_raw) {
        let _ = rustix::process::kill_process_group(group, rustix::process::Signal::KILL);
    }
    let _ = child.kill().await;
}

#[cfg(all(test, unix))]
mod tests {
    use std::time::Instant;

    use super::*;

    fn run_line(line: &str, limit: Duration) -> Result<String> {
        let mut command = Command::new("sh");
        command.args(["-c", line]);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(run(command, limit))
    }

    #[test]
    fn a_program_that_hangs_is_ended_with_what_it_started() {
        let folder = tempfile::tempdir().expect("a folder");
        let pid = folder.path().join("pid");
        let line = format!("sleep 600 & echo $! > '{}'; echo begun; wait", pid.display());
        let refused = run_line(&line, Duration::from_secs(1)).expect_err("it hangs").to_string();
        assert_eq!(refused, "sh still ran after 1 s and was ended; it printed: begun");
        let child = std::fs::read_to_string(pid).expect("it was written");
        let stat = || std::fs::read_to_string(format!("/proc/{}/stat", child.trim())).unwrap_or_default();
        let is_ended = |stat: &str| stat.is_empty() || stat.contains(") Z ");
        // The system takes a moment to end a process that was killed.
        let deadline = Instant::now() + Duration::from_secs(20);
        while !is_ended(&stat()) && Instant::now() < deadline {
            std::thread::sleep(Duration::from_millis(10));
        }
        assert!(is_ended(&stat()), "what it started is ended: {}", stat());
    }

    #[test]
    fn what_a_program_prints_is_bounded_and_its_failure_is_told() {
        let said = run_line("yes | head -c 1000000; echo end >&2", Duration::from_secs(30)).expect("it succeeds");
        assert!(said.len() <= OUTPUT_MAX + "\nend".len() && said.ends_with("end"), "{}", said.len());
        let failed = run_line("echo why >&2; exit 3", Duration::from_secs(30)).expect_err("it fails").to_string();
        assert_eq!(failed, "sh has failed (exit status: 3); it printed: why");
        run_line("sleep 30 >&1 & echo done", Duration::from_secs(10))
            .expect("what stays in the background is not awaited");
    }
}

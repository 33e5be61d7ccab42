//! Runs the binary in an isolated environment.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The binary without the machine's configuration, data and terminal colours.
pub(crate) fn command(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bellwire"));
    command.env_clear().env("HOME", home).env("PATH", std::env::var_os("PATH").unwrap_or_default());
    command.current_dir(root());
    command
}

pub(crate) fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Runs the binary without a hub and a home folder.
pub(crate) fn bellwire(arguments: &[&str], input: &str) -> Output {
    finish(command(Path::new("nowhere")).args(arguments), input)
}

pub(crate) fn finish(command: &mut Command, input: &str) -> Output {
    let piped = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = piped.spawn().expect("the binary starts");
    // Writing fails if the program has exited without reading its input.
    let _ = child.stdin.take().expect("it has a standard input").write_all(input.as_bytes());
    child.wait_with_output().expect("it ends")
}

/// The output of a run as a terminal would show it.
pub(crate) fn transcript(arguments: &[&str], input: &str) -> String {
    shown(&bellwire(arguments, input))
}

pub(crate) fn shown(output: &Output) -> String {
    let (code, stdout, stderr) = (output.status.code().unwrap_or(-1), &output.stdout, &output.stderr);
    format!("exit {code}\n--- stdout\n{}--- stderr\n{}", text(stdout), text(stderr))
}

/// A terminal on which these lines are typed.
#[cfg(target_os = "linux")]
pub(crate) fn terminal(typed: &str) -> (std::fs::File, std::fs::File) {
    use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};
    let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).expect("a terminal");
    grantpt(&keyboard).expect("it is ours");
    unlockpt(&keyboard).expect("it can be opened");
    let name = ptsname(&keyboard, Vec::new()).expect("its name").into_string().expect("a path");
    let terminal = std::fs::File::options().read(true).write(true).open(name).expect("it can be opened");
    let mut keyboard = std::fs::File::from(keyboard);
    keyboard.write_all(typed.as_bytes()).expect("keys can be pressed");
    (keyboard, terminal)
}

pub(crate) fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("the output is text")
}

/// Compares with a snapshot after replacing the parts that differ between runs.
macro_rules! assert_output {
    ($text:expr) => {
        let mut settings = insta::Settings::clone_current();
        for (what, name) in crate::program::VARYING {
            settings.add_filter(what, *name);
        }
        settings.bind(|| insta::assert_snapshot!($text));
    };
}
pub(crate) use assert_output;

/// The parts that differ between runs, with their replacements.
pub(crate) const VARYING: &[(&str, &str)] = &[
    (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "[uuid]"),
    (r"\S*/bellwire (demo|token|doctor)", "bellwire $1"),
    (r"bw_[0-9a-f]{64}", "[secret]"),
    (r"\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d+)?Z", "[time]"),
    (r"\b\d{2}:\d{2}:\d{2}\b", "[clock]"),
    (r#"id=(\\?)"[A-Za-z0-9]{8}\\?""#, r#"id=${1}"[boundary]${1}""#),
    (r#""boundary":"[A-Za-z0-9]{8}""#, r#""boundary":"[boundary]""#),
    (r"notif_[0-9a-f]{32}", "[call]"),
    (r"\+\d+\.\d{3}s", "[offset]"),
    (r"demo-[0-9a-f]+-[0-9a-f]+", "[demo]"),
    (r"127\.0\.0\.1:[1-6]\d{4}", "127.0.0.1:[port]"),
    (r"(cannot be reached: )[^\n]*(lookup|resolve|nodename)[^\n]*", "$1[the resolver's error]"),
    (r"\d+ MiB are free", "[space] are free"),
    (r"(/[\w.-]+)+/\.tmp\w+", "[home]"),
    (r"within \d+ s\)", "within [n] s)"),
];

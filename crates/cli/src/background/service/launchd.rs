//! Agents of launchd.

use super::{MARK, Unit, UnitKind};

pub(super) const fn label(kind: UnitKind) -> &'static str {
    match kind {
        UnitKind::Hub => "dev.bellwire.hub",
        UnitKind::Wake => "dev.bellwire.wake",
    }
}

/// The domain of this user's programs.
pub(super) fn domain() -> String {
    #[cfg(unix)]
    let user = rustix::process::getuid().as_raw();
    #[cfg(not(unix))]
    let user = 0;
    format!("gui/{user}")
}

pub(super) fn target(kind: UnitKind) -> String {
    format!("{}/{}", domain(), label(kind))
}

/// The text of an agent.
pub(super) fn agent(unit: &Unit) -> String {
    let words: String =
        unit.command.iter().map(|word| format!("        <string>{}</string>\n", escaped(word))).collect();
    let log = escaped(&unit.log.to_string_lossy());
    format!(
        r#"<?xml version="1.0" encoding="UTF-8"?>
<!DOCTYPE plist PUBLIC "-//Apple//DTD PLIST 1.0//EN" "http://www.apple.com/DTDs/PropertyList-1.0.dtd">
<!-- {MARK} -->
<plist version="1.0">
<dict>
    <key>Label</key>
    <string>{}</string>
    <key>ProgramArguments</key>
    <array>
{words}    </array>
    <key>RunAtLoad</key>
    <true/>
    <key>KeepAlive</key>
    <dict>
        <key>SuccessfulExit</key>
        <false/>
    </dict>
    <key>ThrottleInterval</key>
    <integer>10</integer>
    <key>Umask</key>
    <integer>63</integer>
    <key>StandardErrorPath</key>
    <string>{log}</string>
    <key>StandardOutPath</key>
    <string>{log}</string>
</dict>
</plist>
"#,
        label(unit.kind)
    )
}

pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_agents_of_launchd() {
        let command = ["/Users/a b/<x> & 100%/bellwire", "serve", "--data-dir", "/Users/a b/Library"];
        let unit = Unit {
            kind: UnitKind::Hub,
            command: command.map(str::to_owned).to_vec(),
            log: "/Users/a b/Library/hub.log".into(),
        };
        let text = agent(&unit);
        insta::assert_snapshot!(text);
        // Read by a parser of property lists, where Python is installed.
        let script = "import plistlib, sys, json; print(json.dumps(plistlib.loads(sys.stdin.buffer.read())))";
        let mut python = std::process::Command::new("python3");
        python.args(["-c", script]).stdin(std::process::Stdio::piped()).stdout(std::process::Stdio::piped());
        let Ok(mut child) = python.spawn() else {
            eprintln!("SKIPPED: there is no python3");
            return;
        };
        std::io::Write::write_all(&mut child.stdin.take().expect("an input"), text.as_bytes()).expect("it reads");
        let output = child.wait_with_output().expect("it ends");
        let read: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        assert_eq!(read["ProgramArguments"], serde_json::json!(command));
        assert_eq!(read["KeepAlive"]["SuccessfulExit"], false);
    }
}

//! Units of systemd's user manager.

use super::{MARK, Unit, UnitKind};

pub(super) const fn name(kind: UnitKind) -> &'static str {
    match kind {
        UnitKind::Hub => "bellwire.service",
        UnitKind::Wake => "bellwire-wake.service",
    }
}

/// The text of a unit.
pub(super) fn unit(unit: &Unit) -> String {
    let (description, after, more) = match unit.kind {
        UnitKind::Hub => ("Bellwire hub", "", "NoNewPrivileges=yes\n"),
        UnitKind::Wake => ("Bellwire wakes idle agents", "After=bellwire.service\n", ""),
    };
    let command: Vec<String> =
        unit.command.iter().enumerate().map(|(at, word)| if at == 0 { program(word) } else { quoted(word) }).collect();
    format!(
        "# {MARK}\n\
         [Unit]\nDescription={description}\n{after}\
         # A hub that cannot start, such as one whose port is taken, is not started for ever.\n\
         StartLimitIntervalSec=60\nStartLimitBurst=5\n\n\
         [Service]\nExecStart={}\nRestart=on-failure\nRestartSec=1\nUMask=0077\n{more}\n\
         [Install]\nWantedBy=default.target\n",
        command.join(" ")
    )
}

/// An argument: in it, systemd reads `%` as a specifier and `$` as a variable.
pub(super) fn quoted(text: &str) -> String {
    program(text).replace('$', "$$")
}

/// The path of a program, in which `$` stands for itself.
fn program(path: &str) -> String {
    format!("\"{}\"", path.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hub(folder: &str) -> Unit {
        // systemd refuses quotes and backslashes in the path of a program, not in arguments.
        let words = [&format!("{folder}/bin/bellwire"), "serve", "--data-dir", &format!("{folder}/d\\a\"ta")];
        Unit { kind: UnitKind::Hub, command: words.map(str::to_owned).to_vec(), log: "hub.log".into() }
    }

    #[test]
    fn the_units_of_systemd() {
        let wake = Unit { kind: UnitKind::Wake, command: vec!["/opt/bellwire".into(), "wake".into()], log: "w".into() };
        insta::assert_snapshot!(format!("{}\n----\n{}", unit(&hub("/srv/a b/100%/$x")), unit(&wake)));
    }

    /// systemd itself reads the unit, where it is installed: it would complain about a program that is not there.
    #[test]
    fn systemd_finds_no_fault_in_a_unit_with_strange_paths() {
        let folder = tempfile::Builder::new().prefix("a b%i$HOME").tempdir().expect("a folder");
        let path = folder.path().to_str().expect("text");
        std::fs::create_dir(folder.path().join("bin")).expect("it can be made");
        let program = folder.path().join("bin/bellwire");
        std::fs::write(&program, "#!/bin/sh\n").expect("it can be written");
        #[cfg(unix)]
        std::fs::set_permissions(&program, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("a mode");
        let file = folder.path().join(name(UnitKind::Hub));
        let verify = |text: &str| {
            std::fs::write(&file, text).expect("it can be written");
            let mut command = std::process::Command::new("systemd-analyze");
            command.args(["verify", "--user", "--man=no"]).arg(&file).env("XDG_RUNTIME_DIR", folder.path()).output()
        };
        let Ok(verified) = verify(&unit(&hub(path))) else {
            eprintln!("SKIPPED: there is no systemd-analyze");
            return;
        };
        let said = String::from_utf8_lossy(&verified.stderr);
        assert!(verified.status.success() && !said.contains("bellwire"), "{said}");
        let broken = verify(&unit(&hub(path)).replace("%%", "%")).expect("it ran before");
        assert!(!broken.status.success(), "an unescaped path is found");
    }
}

//! Repository rules that no lint checks.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Every file with this ending below a folder, except build output.
fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
    fn walk(path: &Path, ending: &str, found: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(path).expect("a folder of the project").flatten() {
            let (path, name) = (entry.path(), entry.file_name().to_string_lossy().into_owned());
            if path.is_dir() && !["target", "node_modules", ".git", "corpus", "artifacts"].contains(&name.as_str()) {
                walk(&path, ending, found);
            } else if name.ends_with(ending) {
                found.push(path);
            }
        }
    }
    let mut found = Vec::new();
    walk(&root().join(folder), ending, &mut found);
    found.sort();
    found
}

/// The core's allowed dependencies; ARCHITECTURE.md has the reason for each.
#[test]
fn the_core_depends_on_eight_named_crates() {
    let manifest = read("crates/core/Cargo.toml");
    let section = manifest.split("[dependencies]").nth(1).expect("it has dependencies");
    let section = section.split("\n[").next().expect("the section has a body");
    let named: BTreeSet<&str> =
        section.lines().filter_map(|line| line.split_once(" = ")).map(|(name, _)| name).collect();
    let allowed = ["jiff", "minijinja", "postcard", "serde", "serde_json", "siphasher", "toml", "uuid"];
    assert_eq!(named, BTreeSet::from(allowed));
}

#[test]
fn every_source_file_is_part_of_its_crate() {
    for manifest in files("crates", "Cargo.toml") {
        let source = manifest.parent().expect("a crate's folder").join("src");
        let sources = files(source.to_str().expect("the path is text"), ".rs");
        let all: String = sources.iter().map(|path| std::fs::read_to_string(path).expect("a source file")).collect();
        for path in &sources {
            let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
            let declared = ["lib", "main"].contains(&name) || all.contains(&format!("mod {name};"));
            assert!(declared, "{} is declared by no module", path.display());
        }
    }
}

#[test]
fn no_module_has_a_meaningless_name() {
    let vague = ["common", "helper", "helpers", "manager", "misc", "types", "util", "utils"];
    for path in files("crates", ".rs") {
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name");
        assert!(!vague.contains(&name), "{}: the name says nothing", path.display());
    }
}

#[test]
fn no_file_mentions_paths_of_this_machine() {
    let foreign =
        [["/wo", "rk/"].concat(), ["/ro", "ot/"].concat(), ["/ho", "me/"].concat(), ["crates", ".io-"].concat()];
    let endings = [".rs", ".md", ".toml", ".j2", ".timeline", "Makefile", ".snap"];
    for path in endings.iter().flat_map(|ending| files(".", ending)) {
        let text = std::fs::read_to_string(&path).expect("a text file");
        for word in &foreign {
            assert!(!text.contains(word.as_str()), "{} mentions {word}", path.display());
        }
    }
}

#[test]
fn no_file_is_left_over_from_a_merge() {
    let left: Vec<_> = [".orig", ".rej"].iter().flat_map(|ending| files(".", ending)).collect();
    assert!(left.is_empty(), "delete {left:?}");
}

#[test]
fn the_readme_begins_with_how_to_run_and_how_to_test() {
    let readme = read("README.md");
    for command in ["make run", "make test"] {
        let stands = readme.lines().take(8).any(|line| line.split('#').next().unwrap_or_default().trim() == command);
        assert!(stands, "`{command}` has no line of its own at the top of README.md");
    }
}

#[test]
fn the_readme_names_targets_that_exist() {
    let (readme, makefile) = (read("README.md"), read("Makefile"));
    for word in readme.split("make ").skip(1) {
        let target: String = word.chars().take_while(|c| c.is_ascii_lowercase() || *c == '-').collect();
        if ["run", "play", "test", "bench", "lint", "fuzz", "fmt"].contains(&target.as_str()) {
            assert!(makefile.contains(&format!("\n{target}:")), "README names `make {target}`");
        }
    }
}

/// A link in a Markdown file leads to a file, and to a heading of it where it names one.
#[test]
fn links_of_the_documentation_lead_somewhere() {
    let anchor = |heading: &str| -> String {
        let kept = heading.chars().filter(|c| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_'));
        kept.collect::<String>().trim().to_lowercase().replace(' ', "-")
    };
    for document in files(".", ".md") {
        let text = std::fs::read_to_string(&document).expect("a text file");
        // Outside of code blocks.
        let prose: String = text.split("\n```").step_by(2).collect();
        for link in prose.split("](").skip(1) {
            let link = link.split(')').next().expect("a link has an end");
            if link.contains("://") {
                continue;
            }
            let (file, heading) = link.split_once('#').unwrap_or((link, ""));
            let target = if file.is_empty() { document.clone() } else { document.with_file_name(file) };
            assert!(target.exists(), "{} links to {link}", document.display());
            let headings = || std::fs::read_to_string(&target).expect("a text file");
            let found = heading.is_empty()
                || headings()
                    .lines()
                    .filter(|line| line.starts_with('#'))
                    .any(|line| anchor(line.trim_start_matches('#')) == heading);
            assert!(found, "{} links to {link}", document.display());
        }
    }
}

#[test]
fn the_guide_shows_what_the_first_timeline_prints() {
    let guide = read("docs/library.md");
    let output = std::process::Command::new(env!("CARGO_BIN_EXE_bellwire"))
        .args(["simulate", "examples/first.timeline"])
        .current_dir(root())
        .output()
        .expect("the binary runs");
    let printed = String::from_utf8(output.stdout).expect("text");
    assert!(guide.contains(printed.trim_end()), "docs/library.md does not show:\n{printed}");
    assert!(guide.contains(read("examples/first.timeline").trim_end()), "docs/library.md shows another timeline");
}

/// A line at the first level of the code map is a folder, the lines below it are paths in that folder. File names in the
/// descriptions need only exist somewhere.
#[test]
fn the_code_map_names_files_that_exist() {
    let document = read("ARCHITECTURE.md");
    let map =
        document.split("## Code map").nth(1).and_then(|rest| rest.split("\n## ").next()).expect("it has a code map");
    let known: Vec<String> =
        files("crates", ".rs").iter().map(|path| path.display().to_string().replace('\\', "/")).collect();
    let mut folder = PathBuf::new();
    for line in map.lines().filter(|line| line.starts_with("    ")) {
        let (depth, text) = (line.len() - line.trim_start().len(), line.trim_start());
        let paths = text.split("  ").next().expect("a split has a first part");
        for path in paths.split(", ").filter(|_| depth <= 6) {
            if depth == 4 {
                folder = root().join(path);
            }
            let path = if depth == 4 { folder.clone() } else { folder.join(path) };
            assert!(path.exists(), "ARCHITECTURE.md names {}", path.display());
        }
        for word in text.split([' ', ',', ';', ':', '(', ')']).map(|word| word.trim_end_matches('.')) {
            let ending = format!("/{word}");
            let exists = !word.ends_with(".rs") || known.iter().any(|path| path.ends_with(&ending));
            assert!(exists, "ARCHITECTURE.md names {word}");
        }
    }
    for word in read("CONTRIBUTING.md").split('`').filter(|word| word.ends_with(".rs") && !word.contains("NAME")) {
        let ending = format!("/{word}");
        assert!(known.iter().any(|path| path.ends_with(&ending)), "CONTRIBUTING.md names {word}");
    }
}

/// Where a channel may be named besides its own folder, and why.
const NAMES_CHANNELS: [(&str, &str); 8] = [
    ("crates/server/src/channels.rs", "declares the modules"),
    ("crates/server/src/channels/registry.rs", "lists the channels"),
    ("crates/server/src/config", "has a section for each channel"),
    ("crates/server/src/tools/send_notification.rs", "the description of the tool is fixed"),
    ("crates/server/src/tools/notify.rs", "the description of the tool has examples"),
    ("crates/core/src/notify/request_context.rs", "the descriptions of the arguments have examples"),
    ("crates/core/src/person/older_settings.rs", "reads what earlier versions stored"),
    ("crates/core/src/event/known_types.rs", "has an example of a payload"),
];

/// A new channel needs its folder and a line in the registry, because nothing else knows a channel by name. Comments and unit
/// tests may use one as an example, and a command of the binary may have an option for it.
#[test]
fn nothing_outside_its_folder_names_a_channel() {
    let modules = files("crates/server/src/channels", ".rs");
    let is_channel =
        |path: &&PathBuf| std::fs::read_to_string(path).expect("a source file").contains("impl Channel for");
    // `channels/NAME.rs` or `channels/NAME/channel.rs`.
    let name = |path: &PathBuf| {
        let named = path.file_stem().filter(|stem| *stem != "channel").or(path.parent()?.file_name());
        Some(named?.to_str()?.to_owned())
    };
    let channels: BTreeSet<String> = modules.iter().filter(is_channel).filter_map(name).collect();
    assert!(channels.contains("email") && channels.contains("telegram"), "{channels:?}");
    for path in ["core", "store", "server"].iter().flat_map(|name| files(&format!("crates/{name}/src"), ".rs")) {
        let shown = path.strip_prefix(root()).expect("a file of the project").display().to_string().replace('\\', "/");
        let is_own = channels.iter().any(|name| shown.starts_with(&format!("crates/server/src/channels/{name}")));
        if is_own || NAMES_CHANNELS.iter().any(|(allowed, _)| shown.starts_with(allowed)) {
            continue;
        }
        // Unit tests in a file of their own.
        if shown.ends_with("/tests.rs") {
            continue;
        }
        let text = std::fs::read_to_string(&path).expect("a source file");
        let code = text.split("#[cfg(test)]").next().expect("a split has a first part");
        for (number, line) in code.lines().enumerate() {
            let code = line.split("//").next().expect("a split has a first part");
            if let Some(word) = words(code).into_iter().find(|word| channels.contains(word)) {
                panic!("{shown}:{}: names the channel {word}: {}", number + 1, line.trim());
            }
        }
    }
    for (path, reason) in NAMES_CHANNELS {
        assert!(root().join(path).exists(), "{path} does not exist ({reason})");
    }
}

/// The words of a line of code in lower case: `EmailTls::new` has the words email, tls and new.
fn words(code: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut was_lower = false;
    for character in code.chars() {
        if !character.is_alphanumeric() || (was_lower && character.is_uppercase()) {
            words.push(String::new());
        }
        if character.is_alphanumeric() {
            words.last_mut().expect("there is always one").extend(character.to_lowercase());
        }
        was_lower = character.is_lowercase();
    }
    words
}

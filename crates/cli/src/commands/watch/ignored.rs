//! Which paths git ignores: by the `.gitignore` files above them, `.git/info/exclude` and the user's own rules.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The rules of one watched root. Files are read when they are needed first.
pub(super) struct IgnoreRules {
    /// Nothing above is asked: what the user names is watched.
    root: PathBuf,
    /// The folder of the repository; none = git ignores nothing here.
    repository: Option<PathBuf>,
    /// The rules of `.git/info/exclude`, then the user's own.
    shared: Vec<Gitignore>,
    by_folder: HashMap<PathBuf, Gitignore>,
}

/// What editors leave while they work.
const OF_EDITORS: [&str; 5] = ["*~", ".*.sw?", ".#*", "#*#", "4913"];

impl IgnoreRules {
    /// The rules for what is below a folder, which is absolute and without symbolic links.
    pub(super) fn new(root: &Path) -> Self {
        let repository = root.ancestors().find(|folder| folder.join(".git").exists()).map(Path::to_owned);
        let mut rules = Self { root: root.to_owned(), repository, shared: Vec::new(), by_folder: HashMap::new() };
        rules.reload();
        rules
    }

    /// Reads the files again, because one was changed.
    pub(super) fn reload(&mut self) {
        self.by_folder.clear();
        self.shared = vec![editors(&self.root)];
        if let Some(repository) = &self.repository {
            let exclude = git_folder(repository).map(|git| git.join("info/exclude"));
            self.shared.extend(exclude.and_then(|file| rules_of(repository, &file)));
            // Errors of the user's own file are git's to report.
            self.shared.push(GitignoreBuilder::new(repository).build_global().0);
        }
    }

    /// Whether a path below the root is ignored, by itself or with a folder above it.
    pub(super) fn is_ignored(&mut self, path: &Path, is_folder: bool) -> bool {
        let Ok(below) = path.strip_prefix(&self.root) else { return true };
        let mut current = self.root.clone();
        let parts: Vec<_> = below.components().collect();
        for (at, part) in parts.iter().enumerate() {
            current.push(part);
            if part.as_os_str() == ".git" || self.matches(&current, is_folder || at + 1 < parts.len()) {
                return true;
            }
        }
        false
    }

    /// Whether a rule matches this very path. The nearest file with a matching rule decides.
    fn matches(&mut self, path: &Path, is_folder: bool) -> bool {
        let folders: Vec<PathBuf> = match &self.repository {
            Some(repository) => {
                let above = path.ancestors().skip(1);
                above.take_while(|folder| folder.starts_with(repository)).map(Path::to_owned).collect()
            }
            None => Vec::new(),
        };
        for folder in folders {
            let file = folder.join(".gitignore");
            let rules = self
                .by_folder
                .entry(folder.clone())
                .or_insert_with(|| rules_of(&folder, &file).unwrap_or_else(Gitignore::empty));
            match rules.matched(path, is_folder) {
                Match::Ignore(_) => return true,
                Match::Whitelist(_) => return false,
                Match::None => {}
            }
        }
        let decided = self.shared.iter().find_map(|rules| match rules.matched(path, is_folder) {
            Match::Ignore(_) => Some(true),
            Match::Whitelist(_) => Some(false),
            Match::None => None,
        });
        decided.unwrap_or(false)
    }
}

fn rules_of(folder: &Path, file: &Path) -> Option<Gitignore> {
    let mut builder = GitignoreBuilder::new(folder);
    // A line that is no rule is skipped, as git does.
    let _ = builder.add(file);
    builder.build().ok().filter(|rules| !rules.is_empty())
}

fn editors(root: &Path) -> Gitignore {
    let mut builder = GitignoreBuilder::new(root);
    for line in OF_EDITORS.map(|line| if line.starts_with('#') { format!("\\{line}") } else { line.to_owned() }) {
        builder.add_line(None, &line).expect("a valid rule");
    }
    builder.build().expect("valid rules")
}

/// The folder that git keeps for a repository. In a worktree, `.git` is a file that names another folder.
fn git_folder(repository: &Path) -> Option<PathBuf> {
    let git = repository.join(".git");
    if git.is_dir() {
        return Some(git);
    }
    let text = std::fs::read_to_string(&git).ok()?;
    let named = repository.join(text.strip_prefix("gitdir:")?.trim());
    let common = std::fs::read_to_string(named.join("commondir")).ok();
    Some(common.map_or(named.clone(), |common| named.join(common.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ignored(rules: &mut IgnoreRules, root: &Path, path: &str) -> bool {
        rules.is_ignored(&root.join(path.trim_end_matches('/')), path.ends_with('/'))
    }

    #[test]
    fn rules_of_nested_files_of_the_repository_and_of_editors_count() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it exists");
        std::fs::create_dir_all(root.join(".git/info")).expect("a folder");
        std::fs::create_dir_all(root.join("web/dist")).expect("a folder");
        let write = |path: &str, text: &str| std::fs::write(root.join(path), text).expect("it is written");
        write(".gitignore", "target/\n*.log\n!keep.log\n/only-here\n[\n");
        write("web/.gitignore", "dist\n!*.log\n");
        write(".git/info/exclude", "secret.txt\n");
        let mut rules = IgnoreRules::new(&root);
        for (path, is_ignored) in [
            ("src/main.rs", false),
            ("target/", true),
            ("target", false),
            ("target/debug/x.o", true),
            ("a.log", true),
            ("keep.log", false),
            ("web/a.log", false),
            ("web/dist/", true),
            ("web/dist/index.js", true),
            ("web/only-here", false),
            ("only-here", true),
            ("deep/secret.txt", true),
            (".git/index", true),
            ("src/.main.rs.swp", true),
            ("src/main.rs~", true),
            ("src/#main.rs#", true),
        ] {
            assert_eq!(ignored(&mut rules, &root, path), is_ignored, "{path}");
        }
        assert!(rules.is_ignored(Path::new("/elsewhere"), false));
        write(".gitignore", "src/\n");
        rules.reload();
        assert!(ignored(&mut rules, &root, "src/main.rs") && !ignored(&mut rules, &root, "a.log"));
        // What the user names is watched although git ignores it.
        std::fs::create_dir_all(root.join("src/gen")).expect("a folder");
        assert!(!IgnoreRules::new(&root.join("src")).is_ignored(&root.join("src/gen/x.rs"), false));
    }

    #[test]
    fn without_a_repository_nothing_is_ignored_but_what_editors_leave() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it exists");
        std::fs::write(root.join(".gitignore"), "*.log\n").expect("it is written");
        let mut rules = IgnoreRules::new(&root);
        assert!(!ignored(&mut rules, &root, "a.log") && ignored(&mut rules, &root, "a~"));
    }

    #[test]
    fn a_worktree_has_the_exclusions_of_its_repository() {
        let folder = tempfile::tempdir().expect("a folder");
        let root = folder.path().canonicalize().expect("it exists");
        std::fs::create_dir_all(root.join("main/.git/worktrees/tree")).expect("a folder");
        std::fs::create_dir_all(root.join("main/.git/info")).expect("a folder");
        std::fs::create_dir_all(root.join("tree")).expect("a folder");
        let write = |path: &str, text: &str| std::fs::write(root.join(path), text).expect("it is written");
        write("main/.git/info/exclude", "*.secret\n");
        write("main/.git/worktrees/tree/commondir", "../..\n");
        write("tree/.git", "gitdir: ../main/.git/worktrees/tree\n");
        let tree = root.join("tree");
        assert!(ignored(&mut IgnoreRules::new(&tree), &tree, "a.secret"));
    }
}

//! `bellwire install --project` in a repository.

use super::*;

#[test]
fn a_projects_files_are_kept_out_of_git() {
    let hub = Hub::start();
    let project = hub.home.path().join("project");
    fs::create_dir_all(&project).expect("it can be made");
    let git = |words: &[&str]| {
        let done = std::process::Command::new("git").arg("-C").arg(&project).args(words).output().expect("git runs");
        assert!(done.status.success(), "git {words:?}: {done:?}");
        text(&done.stdout)
    };
    git(&["init", "--quiet"]);
    let exclude = project.join(".git/info/exclude");
    let before = fs::read_to_string(&exclude).expect("a list");
    let folder = project.to_str().expect("text");
    for host in HOSTS {
        let done = install(&hub, &[host, "--project", folder]);
        assert!(done.status.success(), "{}", shown(&done));
        assert_eq!(git(&["status", "--porcelain", "--untracked-files=all"]), "", "{host}");
        assert!(text(&done.stderr).contains(".git/info/exclude"), "{}", shown(&done));
        assert!(text(&install(&hub, &[host, "--project", folder]).stderr).contains("was connected already"));
        assert!(uninstall(&hub, &[host, "--project", folder]).status.success());
        assert_eq!(fs::read_to_string(&exclude).expect("a list"), before, "{host}");
    }
    fs::create_dir_all(project.join(".cursor")).expect("it can be made");
    fs::write(project.join(".cursor/hooks.json"), "{\"version\": 1, \"hooks\": {}}").expect("it can be written");
    git(&["add", "--force", ".cursor/hooks.json"]);
    let refused = install(&hub, &["cursor", "--project", folder]);
    assert!(text(&refused.stderr).contains("is under version control"), "{}", shown(&refused));
}

/// A worktree has a file `.git`, and a part of a repository has none: git knows the list all the same.
#[test]
fn in_a_worktree_and_in_a_part_of_a_repository_git_shares_nothing_either() {
    let hub = Hub::start();
    let (main, tree) = (hub.home.path().join("main"), hub.home.path().join("tree"));
    fs::create_dir_all(&main).expect("it can be made");
    let git = |folder: &Path, words: &[&str]| {
        let mut git = std::process::Command::new("git");
        git.args(["-c", "user.name=a", "-c", "user.email=a@example.org", "-C"]).arg(folder).args(words);
        let done = git.output().expect("git runs");
        assert!(done.status.success(), "git {words:?}: {done:?}");
        text(&done.stdout)
    };
    git(&main, &["init", "--quiet"]);
    git(&main, &["commit", "--quiet", "--allow-empty", "-m", "begin"]);
    git(&main, &["worktree", "add", "--quiet", "../tree"]);
    let exclude = main.join(".git/info/exclude");
    let before = fs::read_to_string(&exclude).expect("a list");
    let parts = [main.join("parts/a[1]"), main.join("parts/b")];
    for part in &parts {
        fs::create_dir_all(part.join(".claude")).expect("it can be made");
        fs::write(part.join(".claude/settings.local.json"), "{\"env\": {\"KEY\": \"secret\"}}")
            .expect("it can be written");
    }
    let all = [&tree, &parts[0], &parts[1]];
    for project in all {
        let done = install(&hub, &["claude-code", "--project", project.to_str().expect("text")]);
        assert!(done.status.success() && text(&done.stderr).contains("info/exclude"), "{}", shown(&done));
        assert!(project.join(".claude/settings.local.json").exists());
    }
    for folder in [&main, &tree] {
        assert_eq!(git(folder, &["status", "--porcelain", "--untracked-files=all"]), "", "the backups neither");
    }
    for project in all {
        assert!(uninstall(&hub, &["claude-code", "--project", project.to_str().expect("text")]).status.success());
    }
    assert_eq!(fs::read_to_string(&exclude).expect("a list"), before);
    let alone = hub.home.path().join("alone");
    fs::create_dir_all(&alone).expect("it can be made");
    let done = install(&hub, &["claude-code", "--project", alone.to_str().expect("text")]);
    assert!(done.status.success() && !text(&done.stderr).contains("exclude"), "there is no list: {}", shown(&done));
}

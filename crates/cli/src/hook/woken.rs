//! For which notifications a session was woken. Each is claimed by a file, so that a second waker, or the same one after a
//! restart, does not wake the session for it again.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::notes::file_name;
use crate::hosts::{make_private_folder, state_folder};

/// More claims are not kept, and none longer than this: the hub announces a notification only while it waits.
const CLAIMS_MAX: usize = 500;
const KEPT: Duration = Duration::from_secs(30 * 24 * 60 * 60);

/// The claims of one session.
pub(crate) struct WokenFor {
    folder: PathBuf,
}

impl WokenFor {
    /// `None` if there is no folder for notes.
    pub(crate) fn of(conversation: &str) -> Option<Self> {
        Self::below(&state_folder()?, conversation)
    }

    fn below(state: &Path, conversation: &str) -> Option<Self> {
        let folder = state.join("woken").join(file_name(conversation));
        make_private_folder(&folder).ok()?;
        Some(Self { folder })
    }

    /// Claims these notifications; returns the ones that nobody had claimed.
    pub(crate) fn claim(&self, ids: &[String]) -> Vec<String> {
        self.prune();
        ids.iter().filter(|id| fs::File::create_new(self.path(id)).is_ok()).cloned().collect()
    }

    /// The session was not woken after all.
    pub(crate) fn release(&self, ids: &[String]) {
        for id in ids {
            let _ = fs::remove_file(self.path(id));
        }
    }

    fn path(&self, id: &str) -> PathBuf {
        self.folder.join(file_name(id))
    }

    fn prune(&self) {
        let entries = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        let modified = |entry: fs::DirEntry| Some((entry.metadata().ok()?.modified().ok()?, entry.path()));
        let mut claims: Vec<(SystemTime, PathBuf)> = entries.filter_map(modified).collect();
        claims.sort();
        let surplus = claims.len().saturating_sub(CLAIMS_MAX);
        let is_old = |time: SystemTime| SystemTime::now().duration_since(time).is_ok_and(|age| age > KEPT);
        for (at, (time, path)) in claims.into_iter().enumerate() {
            if at < surplus || is_old(time) {
                let _ = fs::remove_file(path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notification_wakes_once_unless_the_wake_failed() {
        let state = tempfile::tempdir().expect("a folder");
        let open = || WokenFor::below(state.path(), "codex:s/1").expect("a folder");
        let ids = ["n1".to_owned(), "../n2".to_owned()];
        assert_eq!(open().claim(&ids), ids);
        let more = ["n1".to_owned(), "n3".to_owned()];
        assert_eq!(open().claim(&more), ["n3"], "another waker sees the claims");
        open().release(&ids);
        assert_eq!(open().claim(&more), ["n1"]);
    }

    #[test]
    fn claims_are_bounded() {
        let state = tempfile::tempdir().expect("a folder");
        let woken = WokenFor::below(state.path(), "codex:s1").expect("a folder");
        let ids: Vec<String> = (0..CLAIMS_MAX + 40).map(|number| format!("n{number}")).collect();
        woken.claim(&ids);
        woken.claim(&[]);
        assert_eq!(fs::read_dir(&woken.folder).expect("it is there").count(), CLAIMS_MAX);
    }
}

//! File descriptors: every connection takes one, and so do the database, mail and everything else.

use crate::config::Limits;

/// How many descriptors are left to everything that is no connection of a client, at most: the database's files, mail
/// servers, Redis, watched folders.
const RESERVED_MAX: usize = 128;

/// Raises the soft limit of this process to the hard one. Many systems give a process 1,024 and let it ask for more.
///
/// It is for the program to call, at its start: the limit belongs to the process, not to a hub in it.
pub fn raise_limit() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        // Where this is refused the lower limit holds, and the hub says so when it starts.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// How many connections there may be at once: as many as the settings allow, or as many as there are descriptors for.
pub(crate) fn connections_max(limits: &Limits) -> usize {
    // Every stream has a connection of its own, and every request that is worked on.
    let wanted = limits.streams + limits.concurrent_requests;
    let Some(descriptors) = soft_limit() else { return wanted };
    let possible = descriptors - RESERVED_MAX.min(descriptors / 2);
    if possible < wanted {
        tracing::warn!(
            file_descriptors = descriptors,
            connections = possible,
            "this process may open {descriptors} file descriptors, which is enough for {possible} connections; \
             limits.streams and limits.concurrent_requests together are {wanted}: raise the limit (ulimit -n, or \
             LimitNOFILE= of systemd) or lower them"
        );
    }
    wanted.min(possible)
}

/// How many descriptors this process may have; none = any number, or not known.
fn soft_limit() -> Option<usize> {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, getrlimit};
        getrlimit(Resource::Nofile).current.and_then(|limit| usize::try_from(limit).ok())
    }
    #[cfg(not(unix))]
    None
}

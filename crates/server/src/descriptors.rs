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

/// How many connections there may be at once, and how many of them may be streams.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct Places {
    pub(crate) connections: usize,
    pub(crate) streams: usize,
}

/// As many as the settings allow, or as many as there are descriptors for.
pub(crate) fn places(limits: &Limits) -> Places {
    places_within(limits, soft_limit())
}

fn places_within(limits: &Limits, descriptors: Option<usize>) -> Places {
    // Every stream has a connection of its own, and every request that is worked on.
    let wanted = limits.streams.saturating_add(limits.concurrent_requests);
    let Some(descriptors) = descriptors else { return Places { connections: wanted, streams: limits.streams } };
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
    let connections = wanted.min(possible);
    // Streams stay open: without a part that is left to requests, streams alone could shut everybody else out.
    let for_requests = limits.concurrent_requests.min(connections / 4).max(1);
    Places { connections, streams: limits.streams.min(connections.saturating_sub(for_requests)) }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_leave_connections_to_requests_where_descriptors_are_few() {
        let mut limits = crate::Config::default().limits;
        (limits.streams, limits.concurrent_requests) = (10_000, 1024);
        let places = |descriptors| places_within(&limits, descriptors);
        assert_eq!(places(None), Places { connections: 11_024, streams: 10_000 });
        assert_eq!(places(Some(100_000)), Places { connections: 11_024, streams: 10_000 });
        assert_eq!(places(Some(1024)), Places { connections: 896, streams: 672 });
        assert_eq!(places(Some(4)), Places { connections: 2, streams: 1 });
    }
}

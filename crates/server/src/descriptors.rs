//! The limit of file descriptors. Connections, the database, mail and Redis need them.

use crate::config::Limits;

/// The maximum number of descriptors reserved for everything except client connections: database files, mail servers,
/// Redis, watched folders.
const RESERVED_MAX: usize = 128;

/// Raises the soft limit of this process to the hard limit. The soft limit is 1,024 on many systems.
///
/// The program calls this at start, not the hub, because the limit belongs to the process.
pub fn raise_limit() {
    #[cfg(unix)]
    {
        use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
        let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
        // If this fails, the lower limit applies, and the hub logs a warning at start.
        let _ = setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum });
    }
}

/// The maximum number of connections, and of streams among them.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(crate) struct ConnectionLimits {
    pub(crate) connections: usize,
    pub(crate) streams: usize,
}

/// The limits from the settings, reduced to what the file descriptors allow.
pub(crate) fn connection_limits(limits: &Limits) -> ConnectionLimits {
    connection_limits_within(limits, soft_limit())
}

fn connection_limits_within(limits: &Limits, descriptors: Option<usize>) -> ConnectionLimits {
    // Every stream and every concurrent request has its own connection.
    let wanted = limits.streams.saturating_add(limits.concurrent_requests);
    let Some(descriptors) = descriptors else {
        return ConnectionLimits { connections: wanted, streams: limits.streams };
    };
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
    // Streams stay open for long, so a part of the connections is reserved for requests.
    let for_requests = limits.concurrent_requests.min(connections / 4).max(1);
    ConnectionLimits { connections, streams: limits.streams.min(connections.saturating_sub(for_requests)) }
}

/// The soft limit of this process; none = no limit, or unknown.
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
        let connection_limits = |descriptors| connection_limits_within(&limits, descriptors);
        assert_eq!(connection_limits(None), ConnectionLimits { connections: 11_024, streams: 10_000 });
        assert_eq!(connection_limits(Some(100_000)), ConnectionLimits { connections: 11_024, streams: 10_000 });
        assert_eq!(connection_limits(Some(1024)), ConnectionLimits { connections: 896, streams: 672 });
        assert_eq!(connection_limits(Some(4)), ConnectionLimits { connections: 2, streams: 1 });
    }
}

//! Accepts connections up to a maximum number, and closes idle ones when the maximum is reached.
//!
//! A client that opens a connection and sends nothing, or only a part of the request headers, holds a file descriptor and
//! some memory. Without a limit, one client could use all descriptors; with a limit alone, it could lock out all other
//! clients. So when all slots are in use, the server closes connections that wait for a request and connections whose
//! clients do not read. A client that never reads is disconnected in any case, after [`write_timeout::WRITE_WITHIN`].

mod write_timeout;

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::Service;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use self::write_timeout::{Stall, WriteTimeout};
use crate::http::Api;
use crate::metrics::Metrics;

/// The time limit for receiving the headers of a request, and for an idle connection.
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to wait for a free slot before idle connections are closed, and after a failed accept.
const PAUSE: Duration = Duration::from_millis(100);
/// A connection younger than this is not closed to free its slot: its first request may be in transit.
const AGE_MIN: Duration = Duration::from_secs(1);
/// A connection that received a signal to end is closed when its client has read nothing for this long.
const STALL_MAX: Duration = Duration::from_secs(5);
/// How often [`STALL_MAX`] is checked.
const STALL_CHECK: Duration = Duration::from_secs(1);
/// The minimum interval between two log lines about missing slots.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// The signal that the accept loop sends to all connections.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Signal {
    /// Serve requests.
    Open,
    /// New connections wait for a slot. The number increases, so that every signal is a change of the channel's value.
    Crowded(u64),
    /// The hub stops.
    Stop,
}

/// Serves connections until `shutdown` resolves, then waits until all open connections have ended.
pub(crate) async fn serve(
    listener: TcpListener,
    api: Api,
    connections_max: usize,
    metrics: Arc<Metrics>,
    shutdown: impl Future<Output = ()>,
) {
    let (sender, signals) = watch::channel(Signal::Open);
    let mut slots = ConnectionSlots {
        free: Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS))),
        sender: &sender,
        metrics: &metrics,
        logged: None,
        requested: 0,
    };
    tokio::pin!(shutdown);
    loop {
        let next = async {
            let slot = slots.acquire().await;
            match listener.accept().await {
                Ok((stream, peer)) => Some((slot, stream, peer)),
                Err(error) => {
                    metrics.connection_failed();
                    slots.make_room(&error.to_string());
                    tokio::time::sleep(PAUSE).await;
                    None
                }
            }
        };
        let next = tokio::select! {
            () = &mut shutdown => break,
            next = next => next,
        };
        let Some((slot, stream, peer)) = next else { continue };
        let service = TowerToHyperService::new(api.for_peer(peer.ip()));
        let (signals, metrics) = (signals.clone(), metrics.clone());
        tokio::spawn(async move {
            if connection(stream, service, signals).await == ConnectionEnd::ClosedEarly {
                metrics.connection_closed_early();
            }
            drop(slot);
        });
    }
    drop(listener);
    drop(signals);
    let _ = sender.send(Signal::Stop);
    // Every connection holds a receiver of this channel until it has ended.
    sender.closed().await;
}

/// The slots for concurrent connections.
struct ConnectionSlots<'a> {
    free: Arc<Semaphore>,
    sender: &'a watch::Sender<Signal>,
    metrics: &'a Metrics,
    logged: Option<Instant>,
    /// How many times connections were signalled to free their slots.
    requested: u64,
}

impl ConnectionSlots<'_> {
    /// Waits for a free slot. While none is free, signals idle connections to end.
    async fn acquire(&mut self) -> OwnedSemaphorePermit {
        loop {
            let slot = tokio::time::timeout(PAUSE, self.free.clone().acquire_owned()).await;
            if let Ok(slot) = slot {
                return slot.expect("the semaphore is never closed");
            }
            self.make_room("all connection slots are in use");
        }
    }

    /// Signals idle and stalled connections to end.
    fn make_room(&mut self, reason: &str) {
        self.requested += 1;
        let _ = self.sender.send(Signal::Crowded(self.requested));
        if self.logged.is_none_or(|logged| logged.elapsed() >= LOG_EVERY) {
            self.logged = Some(Instant::now());
            let failed = self.metrics.connections_failed();
            tracing::warn!(
                reason,
                failed,
                "too many connections: those that wait for a request, or whose clients do not read, are closed"
            );
        }
    }
}

/// How a connection ended.
#[derive(PartialEq, Eq)]
enum ConnectionEnd {
    /// The client closed it, or all its requests were answered.
    Completed,
    /// The server closed it to free its slot.
    ClosedEarly,
}

async fn connection(
    stream: TcpStream,
    service: TowerToHyperService<Api>,
    mut signals: watch::Receiver<Signal>,
) -> ConnectionEnd {
    let opened = Instant::now();
    // Responses are small and written as a whole, so Nagle's algorithm would only delay them.
    let _ = stream.set_nodelay(true);
    let (used, stall) = (Arc::new(AtomicBool::new(false)), Stall::default());
    let stream = WriteTimeout::new(stream, stall.clone());
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), RequestNoter { service, used: used.clone() });
    tokio::pin!(serving);
    let signal = tokio::select! {
        // A client that disconnects in the middle of a request is not an error of the server.
        _ = serving.as_mut() => return ConnectionEnd::Completed,
        signal = wait_for_end_signal(&mut signals, opened) => signal,
    };
    if signal != Signal::Stop && !used.load(Ordering::Relaxed) {
        // It never sent a complete request.
        return ConnectionEnd::ClosedEarly;
    }
    // An idle connection ends now, a busy one after its current response.
    serving.as_mut().graceful_shutdown();
    if signal == Signal::Stop {
        let _ = serving.await;
        return ConnectionEnd::Completed;
    }
    let is_idle = tokio::select! {
        biased;
        _ = serving.as_mut() => true,
        () = std::future::ready(()) => false,
    };
    if is_idle {
        return ConnectionEnd::ClosedEarly;
    }
    while stall.lasts() < STALL_MAX {
        if tokio::time::timeout(STALL_CHECK, serving.as_mut()).await.is_ok() {
            return ConnectionEnd::Completed;
        }
    }
    ConnectionEnd::ClosedEarly
}

/// Waits until this connection must end, and returns the signal.
async fn wait_for_end_signal(signals: &mut watch::Receiver<Signal>, opened: Instant) -> Signal {
    let ends = |signal: &Signal| match signal {
        Signal::Open => false,
        Signal::Crowded(_) => opened.elapsed() >= AGE_MIN,
        Signal::Stop => true,
    };
    // A dropped sender means that the hub stops.
    signals.wait_for(ends).await.map_or(Signal::Stop, |signal| *signal)
}

/// Records in `used` that the connection has received a complete request.
struct RequestNoter {
    service: TowerToHyperService<Api>,
    used: Arc<AtomicBool>,
}

impl Service<Request<Incoming>> for RequestNoter {
    type Response = <TowerToHyperService<Api> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Api> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<Api> as Service<Request<Incoming>>>::Future;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.used.store(true, Ordering::Relaxed);
        self.service.call(request)
    }
}

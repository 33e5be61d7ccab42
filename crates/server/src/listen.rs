//! Connections: as many as there is room for, each with a time in which it must say what it wants.
//!
//! A client that opens a connection and sends nothing, or half of a request's head, holds a file descriptor and a little
//! memory. Without a limit one client could hold all of them; with a limit alone it could shut out everybody else. So where
//! there is no room for another connection, those that wait for a request are closed, and those whose clients do not read.
//! A client that never reads is cut off in any case, after [`write_timeout::WRITE_WITHIN`].

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

/// How long a request's head may take, and how long a connection may stay without one.
const HEADER_TIMEOUT: Duration = Duration::from_secs(60);
/// How long to wait when there is no room for another connection before asking again.
const PAUSE: Duration = Duration::from_millis(100);
/// A connection younger than this is not closed to make room: its request may be on its way.
const AGE_MIN: Duration = Duration::from_secs(1);
/// A connection that was asked to end is closed when its client has read nothing for so long.
const STALL_MAX: Duration = Duration::from_secs(5);
/// How often that is checked.
const STALL_CHECK: Duration = Duration::from_secs(1);
/// How often it is logged that there is no room.
const LOG_EVERY: Duration = Duration::from_secs(60);

/// What every connection is told.
#[derive(Copy, Clone, PartialEq, Eq)]
enum Word {
    /// Serve.
    Open,
    /// Others wait for a place; the number differs each time.
    Crowded(u64),
    /// The hub stops.
    Stop,
}

/// Answers until `shutdown` resolves, then finishes what was begun.
pub(crate) async fn serve(
    listener: TcpListener,
    api: Api,
    connections_max: usize,
    metrics: Arc<Metrics>,
    shutdown: impl Future<Output = ()>,
) {
    let (tell, told) = watch::channel(Word::Open);
    let service = TowerToHyperService::new(api);
    let mut places = Places {
        free: Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS))),
        tell: &tell,
        metrics: &metrics,
        logged: None,
        asked: 0,
    };
    tokio::pin!(shutdown);
    loop {
        let next = async {
            let place = places.take().await;
            match listener.accept().await {
                Ok((stream, _)) => Some((place, stream)),
                Err(error) => {
                    metrics.connection_failed();
                    places.make_room(&error.to_string());
                    tokio::time::sleep(PAUSE).await;
                    None
                }
            }
        };
        let next = tokio::select! {
            () = &mut shutdown => break,
            next = next => next,
        };
        let Some((place, stream)) = next else { continue };
        let (service, told, metrics) = (service.clone(), told.clone(), metrics.clone());
        tokio::spawn(async move {
            if connection(stream, service, told).await == Ended::Early {
                metrics.connection_closed_early();
            }
            drop(place);
        });
    }
    drop(listener);
    drop(told);
    let _ = tell.send(Word::Stop);
    // Every connection holds an end of this channel until it is done.
    tell.closed().await;
}

/// Room for connections.
struct Places<'a> {
    free: Arc<Semaphore>,
    tell: &'a watch::Sender<Word>,
    metrics: &'a Metrics,
    logged: Option<Instant>,
    /// How often room was asked for.
    asked: u64,
}

impl Places<'_> {
    /// A place for one more connection, as soon as there is one.
    async fn take(&mut self) -> OwnedSemaphorePermit {
        loop {
            let place = tokio::time::timeout(PAUSE, self.free.clone().acquire_owned()).await;
            if let Ok(place) = place {
                return place.expect("the semaphore is never closed");
            }
            self.make_room("every place is taken");
        }
    }

    /// Asks the connections that wait for a request to end.
    fn make_room(&mut self, reason: &str) {
        self.asked += 1;
        let _ = self.tell.send(Word::Crowded(self.asked));
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
enum Ended {
    /// Its client closed it, or everything was answered.
    InOrder,
    /// It was closed to make room for others.
    Early,
}

async fn connection(stream: TcpStream, service: TowerToHyperService<Api>, mut told: watch::Receiver<Word>) -> Ended {
    let opened = Instant::now();
    // Answers are small and complete: waiting to fill a packet only makes them late.
    let _ = stream.set_nodelay(true);
    let (used, stall) = (Arc::new(AtomicBool::new(false)), Stall::default());
    let stream = WriteTimeout::new(stream, stall.clone());
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEADER_TIMEOUT)
        .serve_connection(TokioIo::new(stream), Noting { service, used: used.clone() });
    tokio::pin!(serving);
    let word = tokio::select! {
        // A client that goes away in the middle is its own affair.
        _ = serving.as_mut() => return Ended::InOrder,
        word = asked_to_end(&mut told, opened) => word,
    };
    if word != Word::Stop && !used.load(Ordering::Relaxed) {
        // It never sent a whole request.
        return Ended::Early;
    }
    // One that waits for its next request ends at once, any other after the answer it is giving.
    serving.as_mut().graceful_shutdown();
    if word == Word::Stop {
        let _ = serving.await;
        return Ended::InOrder;
    }
    let is_idle = tokio::select! {
        biased;
        _ = serving.as_mut() => true,
        () = std::future::ready(()) => false,
    };
    if is_idle {
        return Ended::Early;
    }
    while stall.lasts() < STALL_MAX {
        if tokio::time::timeout(STALL_CHECK, serving.as_mut()).await.is_ok() {
            return Ended::InOrder;
        }
    }
    Ended::Early
}

/// Waits until this connection is to end, and says why.
async fn asked_to_end(told: &mut watch::Receiver<Word>, opened: Instant) -> Word {
    let ends = |word: &Word| match word {
        Word::Open => false,
        Word::Crowded(_) => opened.elapsed() >= AGE_MIN,
        Word::Stop => true,
    };
    // A sender that is gone has stopped too.
    told.wait_for(ends).await.map_or(Word::Stop, |word| *word)
}

/// Notes that a connection has brought a request.
struct Noting {
    service: TowerToHyperService<Api>,
    used: Arc<AtomicBool>,
}

impl Service<Request<Incoming>> for Noting {
    type Response = <TowerToHyperService<Api> as Service<Request<Incoming>>>::Response;
    type Error = <TowerToHyperService<Api> as Service<Request<Incoming>>>::Error;
    type Future = <TowerToHyperService<Api> as Service<Request<Incoming>>>::Future;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        self.used.store(true, Ordering::Relaxed);
        self.service.call(request)
    }
}

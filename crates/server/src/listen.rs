//! Connections: as many as there is room for, each with a time in which it must say what it wants.
//!
//! Whoever opens a connection and says nothing, or half of a request's head, holds a file and a little memory; without a
//! limit anybody could hold all of them.

use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};

use crate::http::Api;

/// How long a request's head may take, and how long a connection may stay without one.
const HEAD_WITHIN: Duration = Duration::from_secs(60);
/// How long to wait when the system gives no further connection, such as when there are too many open files.
const BREATHE: Duration = Duration::from_millis(100);

/// Answers until `shutdown` resolves, then finishes what was begun.
pub(crate) async fn serve(listener: TcpListener, api: Api, connections_max: usize, shutdown: impl Future<Output = ()>) {
    let room = Arc::new(Semaphore::new(connections_max.min(Semaphore::MAX_PERMITS)));
    let (stop, stopping) = watch::channel(false);
    let service = TowerToHyperService::new(api);
    tokio::pin!(shutdown);
    loop {
        let next = async {
            let permit = room.clone().acquire_owned().await.expect("nobody closes the room");
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            () = &mut shutdown => break,
            next = next => next,
        };
        let Ok((stream, _)) = accepted else {
            tokio::time::sleep(BREATHE).await;
            continue;
        };
        let (service, stopping) = (service.clone(), stopping.clone());
        tokio::spawn(async move {
            connection(stream, service, stopping).await;
            drop(permit);
        });
    }
    drop(listener);
    drop(stopping);
    let _ = stop.send(true);
    // Every connection holds an end of this channel until it is done.
    stop.closed().await;
}

async fn connection(stream: TcpStream, service: TowerToHyperService<Api>, mut stopping: watch::Receiver<bool>) {
    // Answers are small and complete: waiting to fill a packet only makes them late.
    let _ = stream.set_nodelay(true);
    let serving = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(HEAD_WITHIN)
        .serve_connection(TokioIo::new(stream), service);
    tokio::pin!(serving);
    let stopped = async {
        // A sender that is gone has stopped too.
        let _ = stopping.wait_for(|stopping| *stopping).await;
    };
    tokio::select! {
        // A client that goes away in the middle is its own affair.
        _ = serving.as_mut() => return,
        () = stopped => serving.as_mut().graceful_shutdown(),
    }
    let _ = serving.await;
}

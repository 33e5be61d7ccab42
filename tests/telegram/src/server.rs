//! The HTTP server: reads a call, applies a fault if one is due, carries the call out, records it, answers.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use http_body_util::{BodyExt as _, Full};
use hyper::body::{Bytes, Incoming};
use hyper::header::{CONTENT_TYPE, RETRY_AFTER};
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{oneshot, watch};

use crate::answer::Answer;
use crate::fault::Fault;
use crate::parameters::Parameters;
use crate::world::{Call, World};
use crate::{Standin, control, methods, webhook};

/// The state, and a counter that rings at every change.
pub(crate) struct Shared {
    world: Mutex<World>,
    changed: watch::Sender<u64>,
}

impl Shared {
    pub(crate) fn new() -> Self {
        Self { world: Mutex::new(World::new()), changed: watch::channel(0).0 }
    }

    pub(crate) fn read<T>(&self, read: impl FnOnce(&World) -> T) -> T {
        read(&self.world.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(crate) fn change<T>(&self, change: impl FnOnce(&mut World) -> T) -> T {
        let changed = change(&mut self.world.lock().unwrap_or_else(PoisonError::into_inner));
        self.changed.send_modify(|count| *count += 1);
        changed
    }

    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changed.subscribe()
    }
}

/// Listens in a thread of its own until `stopped` resolves. Returns the address.
pub(crate) fn spawn(address: SocketAddr, shared: Arc<Shared>, stopped: oneshot::Receiver<()>) -> SocketAddr {
    let listener = std::net::TcpListener::bind(address).expect("the address is free");
    let address = listener.local_addr().expect("a bound socket has an address");
    listener.set_nonblocking(true).expect("a socket takes options");
    std::thread::spawn(move || {
        let runtime =
            tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system gives a thread");
        runtime.block_on(async move {
            let listener = TcpListener::from_std(listener).expect("the socket is open");
            tokio::spawn(webhook::push_updates(shared.clone()));
            tokio::select! {
                () = accept(listener, shared) => {}
                _ = stopped => {}
            }
        });
    });
    address
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        tokio::spawn(serve(stream, shared.clone()));
    }
}

async fn serve(stream: TcpStream, shared: Arc<Shared>) {
    let _ = stream.set_nodelay(true);
    let service = service_fn(move |request| {
        let shared = shared.clone();
        async move { answer(&shared, request).await.ok_or("the script closes this connection") }
    });
    // The error of a connection that a script closes, or that the client closes.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

/// Answers one request; none closes the connection.
async fn answer(shared: &Shared, request: Request<Incoming>) -> Option<Response<Full<Bytes>>> {
    let path = request.uri().path().to_owned();
    if let Some(control) = path.strip_prefix("/standin/") {
        let body = request.into_body().collect().await.ok()?.to_bytes();
        return Some(respond(200, control::run(shared, control, &body).await));
    }
    let Some((token, method)) = path.strip_prefix("/bot").and_then(|rest| rest.split_once('/')) else {
        return Some(send(Answer::error(404, "Not Found")));
    };
    if token != Standin::TOKEN {
        return Some(send(Answer::error(401, "Unauthorized")));
    }
    let name = method.to_ascii_lowercase();
    let fault = shared.change(|world| world.faults.take(&name));
    if matches!(fault, Some(Fault::CloseUnread)) {
        return None;
    }
    let parameters = read(request).await?;
    if let Some((status, body)) = fault.as_ref().and_then(Fault::answer) {
        let parameters = parameters.unwrap_or_default();
        record(shared, method, &parameters, status, Some("by script"));
        let retry_after = serde_json::from_str::<serde_json::Value>(&body).ok();
        let retry_after = retry_after.and_then(|body| body["parameters"]["retry_after"].as_u64());
        return Some(with_retry_after(respond(status, body), retry_after));
    }
    let answer = match parameters {
        Err(answer) => answer,
        Ok(parameters) if name == "getupdates" => {
            let answer = methods::updates::run(shared, &parameters).await.map_or_else(|answer| answer, Answer::Ok);
            record(shared, method, &parameters, answer.status(), answer.description());
            answer
        }
        Ok(parameters) => shared.change(|world| {
            let answer = methods::run(world, &name, &parameters).map_or_else(|answer| answer, Answer::Ok);
            let (status, description) = (answer.status(), answer.description().map(str::to_owned));
            world.calls.push(Call { method: method.to_owned(), parameters: parameters.0, status, description });
            answer
        }),
    };
    match fault {
        Some(Fault::CloseAfterAccepting) => return None,
        Some(Fault::Delay(time)) => tokio::time::sleep(time).await,
        Some(Fault::Hold(hold)) => hold.wait().await,
        _ => {}
    }
    Some(send(answer))
}

/// The parameters; none if the client went away.
async fn read(request: Request<Incoming>) -> Option<Result<Parameters, Answer>> {
    let (head, body) = request.into_parts();
    let body = body.collect().await.ok()?.to_bytes();
    let content_type = head.headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    Some(Parameters::read(head.uri.query(), content_type, &body))
}

fn record(shared: &Shared, method: &str, parameters: &Parameters, status: u16, description: Option<&str>) {
    let (parameters, description) = (parameters.0.clone(), description.map(str::to_owned));
    shared.change(|world| world.calls.push(Call { method: method.to_owned(), parameters, status, description }));
}

fn send(answer: Answer) -> Response<Full<Bytes>> {
    let retry_after = match &answer {
        Answer::Error { retry_after, .. } => *retry_after,
        Answer::Ok(_) => None,
    };
    with_retry_after(respond(answer.status(), answer.into_body()), retry_after)
}

fn with_retry_after(mut response: Response<Full<Bytes>>, seconds: Option<u64>) -> Response<Full<Bytes>> {
    if let Some(seconds) = seconds {
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    }
    response
}

fn respond(status: u16, body: String) -> Response<Full<Bytes>> {
    let response = Response::builder().status(status).header(CONTENT_TYPE, "application/json");
    response.body(Full::new(Bytes::from(body))).expect("the status is valid")
}

//! A load generator: raw HTTP/1.1 over keep-alive connections, one request at a time on each.
//!
//! It runs on one thread and does as little as possible, because it shares the machine with the server it measures. A
//! response other than 2xx aborts the benchmark.

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::task::LocalSet;

/// The longest a lap lasts; the remaining requests are not sent.
const LAP_MAX: Duration = Duration::from_secs(4);

/// The responses of one lap.
pub(crate) struct Lap {
    pub(crate) answers: usize,
    pub(crate) elapsed: Duration,
    /// The time of each request, shortest first.
    latencies: Vec<Duration>,
}

impl Lap {
    pub(crate) fn per_second(&self) -> f64 {
        self.answers as f64 / self.elapsed.as_secs_f64()
    }

    /// The latency below which this share (0 to 1) of the requests lies.
    pub(crate) fn percentile(&self, share: f64) -> Duration {
        percentile(&self.latencies, share)
    }
}

/// The value below which this share (0 to 1) of the sorted times lies.
pub(crate) fn percentile(sorted: &[Duration], share: f64) -> Duration {
    let at = (sorted.len() as f64 * share) as usize;
    sorted.get(at.min(sorted.len().saturating_sub(1))).copied().unwrap_or_default()
}

/// Sends one request over a connection of its own; returns the JSON of the response.
pub(crate) fn ask_once(address: SocketAddr, request: &[u8]) -> serde_json::Value {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system gives a thread");
    runtime.block_on(async {
        let mut connection = HttpConnection::open(address).await;
        serde_json::from_slice(connection.ask(request).await).expect("the hub answers JSON")
    })
}

/// Sends each request once over `connections` connections, until all have a response or `LAP_MAX` has passed.
pub(crate) fn send(address: SocketAddr, connections: usize, requests: Vec<Vec<u8>>) -> Lap {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system gives a thread");
    LocalSet::new().block_on(&runtime, async {
        let mut open = Vec::with_capacity(connections);
        for _ in 0..connections {
            open.push(HttpConnection::open(address).await);
        }
        let (requests, next) = (Rc::new(requests), Rc::new(Cell::new(0)));
        let start = Instant::now();
        let sending = open.into_iter().map(|connection| {
            tokio::task::spawn_local(send_in_turn(connection, requests.clone(), next.clone(), start + LAP_MAX))
        });
        let sending: Vec<_> = sending.collect();
        let mut latencies = Vec::with_capacity(requests.len());
        for one in sending {
            latencies.extend(one.await.expect("no connection fails"));
        }
        let elapsed = start.elapsed();
        latencies.sort_unstable();
        Lap { answers: latencies.len(), elapsed, latencies }
    })
}

async fn send_in_turn(
    mut connection: HttpConnection,
    requests: Rc<Vec<Vec<u8>>>,
    next: Rc<Cell<usize>>,
    end: Instant,
) -> Vec<Duration> {
    let mut latencies = Vec::with_capacity(requests.len());
    while let Some(request) = requests.get(next.replace(next.get() + 1)) {
        let asked = Instant::now();
        connection.ask(request).await;
        let answered = Instant::now();
        latencies.push(answered - asked);
        if answered > end {
            break;
        }
    }
    latencies
}

/// One keep-alive connection.
pub(crate) struct HttpConnection {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl HttpConnection {
    pub(crate) async fn open(address: SocketAddr) -> Self {
        let stream = TcpStream::connect(address).await.expect("the server listens");
        stream.set_nodelay(true).expect("a socket that is open takes options");
        Self { stream, buffer: Vec::with_capacity(16 * 1024) }
    }

    /// Sends a request and reads the whole response; returns its body.
    pub(crate) async fn ask(&mut self, request: &[u8]) -> &[u8] {
        self.stream.write_all(request).await.expect("the server reads");
        self.buffer.clear();
        loop {
            let read = self.stream.read_buf(&mut self.buffer).await.expect("the server answers");
            assert!(read > 0, "the server hung up");
            if let Some((head, length)) = head(&self.buffer)
                && self.buffer.len() >= head + length
            {
                assert!(self.buffer.starts_with(b"HTTP/1.1 2"), "{}", String::from_utf8_lossy(&self.buffer));
                return &self.buffer[head..];
            }
        }
    }

    /// Sends a request whose response is a stream; the caller reads from the socket.
    pub(crate) async fn follow(mut self, request: &[u8]) -> TcpStream {
        self.stream.write_all(request).await.expect("the server reads");
        self.stream
    }
}

/// The offset and the length of the body; `None` until the response head is complete.
fn head(answer: &[u8]) -> Option<(usize, usize)> {
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let text = std::str::from_utf8(&answer[..end]).expect("a head is text");
    let length = text.lines().find_map(|line| line.strip_prefix("content-length: "));
    Some((end, length.expect("every answer here has a length").trim().parse().expect("a number")))
}

/// An HTTP/1.1 request with a body.
pub(crate) fn request(method: &str, path: &str, token: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let length = body.len();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer {token}\r\n\
         content-type: {kind}\r\ncontent-length: {length}\r\n\r\n"
    );
    [head.as_bytes(), body].concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_head_gives_the_offset_and_length_of_the_body() {
        assert_eq!(head(b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n"), None);
        let answer = b"HTTP/1.1 202 Accepted\r\ncontent-length: 2\r\n\r\n{}";
        assert_eq!(head(answer), Some((answer.len() - 2, 2)));
    }

    #[test]
    fn the_99th_of_a_hundred_sorted_times_is_the_99th_percentile() {
        let times: Vec<Duration> = (1..=100).map(Duration::from_millis).collect();
        assert_eq!(percentile(&times, 0.98), Duration::from_millis(99));
        assert_eq!(percentile(&times, 1.0), Duration::from_millis(100));
    }
}

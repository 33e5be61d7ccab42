//! A mail server that takes everything and keeps nothing, and the barest client for it.
//!
//! The client measures what the server can take: the same number of connections, the same message, and nothing else to do.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// A server on loopback, on a thread of its own; it ends with the process.
pub(crate) struct Sink {
    pub(crate) address: SocketAddr,
    taken: Arc<Mutex<Taken>>,
}

/// What has arrived since it was last looked at.
#[derive(Clone, Default)]
pub(crate) struct Taken {
    pub(crate) count: usize,
    first: Option<Instant>,
    last: Option<Instant>,
    /// The latest message as it came.
    pub(crate) message: Vec<u8>,
}

impl Taken {
    /// From the first arrival to the last.
    pub(crate) fn elapsed(&self) -> Duration {
        self.first.zip(self.last).map_or(Duration::ZERO, |(first, last)| last - first)
    }
}

impl Sink {
    pub(crate) fn start() -> Self {
        let taken = Arc::new(Mutex::new(Taken::default()));
        let (kept, (say, address)) = (taken.clone(), std::sync::mpsc::channel());
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system gives a thread");
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
                say.send(listener.local_addr().expect("a bound socket has an address")).expect("somebody waits");
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, kept.clone()));
                }
            });
        });
        Self { address: address.recv().expect("the server says where it listens"), taken }
    }

    pub(crate) fn taken(&self) -> Taken {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on it counts anew.
    pub(crate) fn reset(&self) {
        *self.taken.lock().unwrap_or_else(PoisonError::into_inner) = Taken::default();
    }
}

/// One conversation. A client that hangs up ends it.
async fn serve(stream: TcpStream, taken: Arc<Mutex<Taken>>) -> Option<()> {
    stream.set_nodelay(true).ok()?;
    let mut stream = BufReader::new(stream);
    stream.write_all(b"220 sink.example\r\n").await.ok()?;
    let mut line = Vec::new();
    loop {
        line.clear();
        stream.read_until(b'\n', &mut line).await.ok().filter(|read| *read > 0)?;
        let answer: &[u8] = match line.get(..4).unwrap_or_default().to_ascii_uppercase().as_slice() {
            b"DATA" => {
                stream.write_all(b"354 go on\r\n").await.ok()?;
                let message = message(&mut stream).await?;
                let mut taken = taken.lock().unwrap_or_else(PoisonError::into_inner);
                let now = Instant::now();
                *taken = Taken { count: taken.count + 1, first: taken.first.or(Some(now)), last: Some(now), message };
                b"250 taken\r\n"
            }
            b"QUIT" => {
                stream.write_all(b"221 bye\r\n").await.ok()?;
                return None;
            }
            _ => b"250 fine\r\n",
        };
        stream.write_all(answer).await.ok()?;
    }
}

/// Everything up to the line with the dot.
async fn message(stream: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut message = Vec::with_capacity(8 * 1024);
    while !message.ends_with(b"\r\n.\r\n") {
        stream.read_until(b'\n', &mut message).await.ok().filter(|read| *read > 0)?;
    }
    Some(message)
}

/// Sends a message so often, over this many connections at once, each of which serves one message or all of them.
pub(crate) fn send_bare(sink: &Sink, message: &[u8], count: usize, connections: usize, reuse: bool) -> f64 {
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system gives a thread");
    sink.reset();
    runtime.block_on(async {
        let clients = (0..connections).map(|_| {
            let (address, message) = (sink.address, message.to_vec());
            tokio::spawn(async move {
                let mut open = None;
                for _ in 0..count / connections {
                    let mut client = match open.take() {
                        Some(client) => client,
                        None => greeted(address).await,
                    };
                    for part in
                        [b"MAIL FROM:<a@b.example>\r\n".as_slice(), b"RCPT TO:<c@d.example>\r\n", b"DATA\r\n", &message]
                    {
                        ask(&mut client, part).await;
                    }
                    if reuse {
                        open = Some(client);
                    }
                }
            })
        });
        for client in clients.collect::<Vec<_>>() {
            client.await.expect("no client fails");
        }
    });
    let taken = sink.taken();
    taken.count as f64 / taken.elapsed().as_secs_f64()
}

async fn greeted(address: SocketAddr) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(address).await.expect("the sink listens");
    stream.set_nodelay(true).expect("a socket that is open takes options");
    let mut client = BufReader::new(stream);
    ask(&mut client, b"").await;
    ask(&mut client, b"EHLO bench\r\n").await;
    client
}

async fn ask(client: &mut BufReader<TcpStream>, words: &[u8]) {
    client.write_all(words).await.expect("the sink reads");
    let mut line = String::new();
    client.read_line(&mut line).await.expect("the sink answers");
    assert!(line.starts_with(['2', '3']), "{line}");
}

//! A mail server that accepts and discards every message, and a minimal client for it.
//!
//! The client measures the server's own limit: the same message over the same number of connections, without an outbox.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// An SMTP server on loopback in its own thread; it runs until the process ends.
pub(crate) struct MailSink {
    pub(crate) address: SocketAddr,
    received: Arc<Mutex<Received>>,
}

/// Messages received since the last reset.
#[derive(Clone, Default)]
pub(crate) struct Received {
    pub(crate) count: usize,
    first: Option<Instant>,
    last: Option<Instant>,
    /// The latest message, byte for byte.
    pub(crate) message: Vec<u8>,
}

impl Received {
    /// The time between the first and the last message.
    pub(crate) fn elapsed(&self) -> Duration {
        self.first.zip(self.last).map_or(Duration::ZERO, |(first, last)| last - first)
    }
}

impl MailSink {
    pub(crate) fn start() -> Self {
        let received = Arc::new(Mutex::new(Received::default()));
        let (shared, (address_sender, address)) = (received.clone(), std::sync::mpsc::channel());
        std::thread::spawn(move || {
            let runtime =
                tokio::runtime::Builder::new_current_thread().enable_all().build().expect("the system gives a thread");
            runtime.block_on(async move {
                let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has a free port");
                let address = listener.local_addr().expect("a bound socket has an address");
                address_sender.send(address).expect("`start` waits for the address");
                while let Ok((stream, _)) = listener.accept().await {
                    tokio::spawn(serve(stream, shared.clone()));
                }
            });
        });
        Self { address: address.recv().expect("the server says where it listens"), received }
    }

    pub(crate) fn received(&self) -> Received {
        self.received.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Resets the counters.
    pub(crate) fn reset(&self) {
        *self.received.lock().unwrap_or_else(PoisonError::into_inner) = Received::default();
    }
}

/// Serves one SMTP connection until the client quits or disconnects.
async fn serve(stream: TcpStream, received: Arc<Mutex<Received>>) -> Option<()> {
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
                let mut received = received.lock().unwrap_or_else(PoisonError::into_inner);
                let now = Instant::now();
                *received = Received {
                    count: received.count + 1,
                    first: received.first.or(Some(now)),
                    last: Some(now),
                    message,
                };
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

/// Reads a message up to and including the terminating dot.
async fn message(stream: &mut BufReader<TcpStream>) -> Option<Vec<u8>> {
    let mut message = Vec::with_capacity(8 * 1024);
    while !message.ends_with(b"\r\n.\r\n") {
        stream.read_until(b'\n', &mut message).await.ok().filter(|read| *read > 0)?;
    }
    Some(message)
}

/// Sends `message` `count` times over `connections` parallel clients; returns messages per second. Without `reuse`, every
/// message gets a new connection.
pub(crate) fn send_bare(sink: &MailSink, message: &[u8], count: usize, connections: usize, reuse: bool) -> f64 {
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
                        None => connect(address).await,
                    };
                    for part in
                        [b"MAIL FROM:<a@b.example>\r\n".as_slice(), b"RCPT TO:<c@d.example>\r\n", b"DATA\r\n", &message]
                    {
                        command(&mut client, part).await;
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
    let received = sink.received();
    received.count as f64 / received.elapsed().as_secs_f64()
}

async fn connect(address: SocketAddr) -> BufReader<TcpStream> {
    let stream = TcpStream::connect(address).await.expect("the sink listens");
    stream.set_nodelay(true).expect("a socket that is open takes options");
    let mut client = BufReader::new(stream);
    command(&mut client, b"").await;
    command(&mut client, b"EHLO bench\r\n").await;
    client
}

async fn command(client: &mut BufReader<TcpStream>, words: &[u8]) {
    client.write_all(words).await.expect("the sink reads");
    let mut line = String::new();
    client.read_line(&mut line).await.expect("the sink answers");
    assert!(line.starts_with(['2', '3']), "{line}");
}

//! Requests to the hub with nothing but a socket: a hook runs after every tool call, and an asynchronous client takes longer to
//! start than the hub to answer. A hub behind https is called with the client of the other commands.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{SocketAddr, TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bellwire_server::config::Secret;
use serde_json::Value;

use crate::client::{Client, HubRefused};

/// An answer of the hub is smaller; what is larger is not from a hub.
const BODY_MAX: u64 = 1024 * 1024;
const HEAD_LINES_MAX: usize = 100;
const HEAD_LINE_MAX: usize = 16 * 1024;

/// A connection to the hub that lasts until a deadline.
pub(super) enum HubConnection {
    Plain { host: String, prefix: String, token: Secret, stream: BufReader<TcpStream>, deadline: Instant },
    Secure(Box<Client>),
}

impl HubConnection {
    /// Connects to `url`. Nothing is sent yet.
    pub(super) fn open(url: &str, token: &Secret, deadline: Instant) -> Result<Self> {
        let Some(host) = url.strip_prefix("http://") else {
            return Ok(Self::Secure(Box::new(Client::open(url.to_owned(), Some(token.clone()))?)));
        };
        let (host, prefix) = host.split_at(host.find('/').unwrap_or(host.len()));
        let stream = connect(addresses(host)?, deadline)?;
        stream.set_nodelay(true)?;
        let (host, prefix) = (host.to_owned(), prefix.trim_end_matches('/').to_owned());
        Ok(Self::Plain { host, prefix, token: token.clone(), stream: BufReader::new(stream), deadline })
    }

    /// Sends a JSON request and returns the body of a 2xx response.
    pub(super) fn call(&mut self, method: &str, path: &str, body: &Value) -> Result<Value> {
        match self {
            Self::Secure(client) => {
                let method = reqwest::Method::from_bytes(method.as_bytes())?;
                client.call(method, path, Some(body).filter(|body| !body.is_null()))
            }
            Self::Plain { host, prefix, token, stream, deadline } => {
                let body = if body.is_null() { String::new() } else { body.to_string() };
                let request = format!(
                    "{method} {prefix}{path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\ncontent-type: \
                     application/json\r\ncontent-length: {}\r\n\r\n{body}",
                    token.reveal(),
                    body.len()
                );
                stream.get_ref().set_write_timeout(Some(left(*deadline)?))?;
                stream.get_mut().write_all(request.as_bytes())?;
                response(stream, *deadline)
            }
        }
    }
}

/// Whether the hub has answered that it does not do what was asked. Asking once more would not help.
pub(super) fn is_refusal(error: &anyhow::Error) -> bool {
    error.is::<Refused>() || error.downcast_ref::<HubRefused>().is_some_and(|refused| refused.status < 500)
}

/// The hub's answer to a request that it refuses.
#[derive(Debug)]
struct Refused {
    code: u16,
    text: String,
}

impl std::fmt::Display for Refused {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "the hub answers {}: {}", self.code, self.text)
    }
}

impl std::error::Error for Refused {}

/// The addresses of a host, with port 80 if it names none.
fn addresses(host: &str) -> Result<impl Iterator<Item = SocketAddr>> {
    let has_port = host.rsplit(']').next().unwrap_or(host).contains(':');
    let with_port = if has_port { host.to_owned() } else { format!("{host}:80") };
    Ok(with_port.to_socket_addrs()?)
}

/// Connects to the first address that accepts: `localhost` is often two, and a hub listens on one of them.
fn connect(addresses: impl Iterator<Item = SocketAddr>, deadline: Instant) -> Result<TcpStream> {
    let mut refused = anyhow::anyhow!("the host has no address");
    for address in addresses {
        match TcpStream::connect_timeout(&address, left(deadline)?) {
            Ok(stream) => return Ok(stream),
            Err(error) => refused = error.into(),
        }
    }
    Err(refused)
}

fn response(stream: &mut BufReader<TcpStream>, deadline: Instant) -> Result<Value> {
    let status = line(stream, deadline)?;
    let code = status.split(' ').nth(1).and_then(|code| code.parse::<u16>().ok()).context("not an HTTP response")?;
    let (mut length, mut is_chunked) = (0, false);
    for _ in 0..HEAD_LINES_MAX {
        let header = line(stream, deadline)?;
        let Some((name, value)) = header.split_once(':') else {
            ensure!(header.is_empty(), "not an HTTP header");
            let body = if is_chunked { chunks(stream, deadline)? } else { bytes(stream, length, deadline)? };
            let text = String::from_utf8(body)?;
            match code {
                200..300 => {}
                400..500 => return Err(Refused { code, text }.into()),
                _ => bail!("the hub answers {code}: {text}"),
            }
            return Ok(if text.is_empty() { Value::Null } else { serde_json::from_str(&text)? });
        };
        match name.to_ascii_lowercase().as_str() {
            "content-length" => length = value.trim().parse()?,
            "transfer-encoding" => is_chunked = value.to_ascii_lowercase().contains("chunked"),
            _ => {}
        }
    }
    bail!("too many headers")
}

fn chunks(stream: &mut BufReader<TcpStream>, deadline: Instant) -> Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(stream, deadline)?;
        let size = u64::from_str_radix(size.split(';').next().unwrap_or_default().trim(), 16)?;
        if size == 0 {
            line(stream, deadline)?;
            return Ok(body);
        }
        ensure!(body.len() as u64 + size <= BODY_MAX, "the response is too large");
        body.extend(bytes(stream, size, deadline)?);
        line(stream, deadline)?;
    }
}

fn line(stream: &mut BufReader<TcpStream>, deadline: Instant) -> Result<String> {
    let mut line = Vec::new();
    while line.last() != Some(&b'\n') {
        let part = available(stream, deadline)?;
        let taken = part.iter().position(|byte| *byte == b'\n').map_or(part.len(), |at| at + 1);
        line.extend_from_slice(&part[..taken]);
        stream.consume(taken);
        ensure!(line.len() <= HEAD_LINE_MAX, "a header is too long");
    }
    Ok(String::from_utf8(line)?.trim_end().to_owned())
}

fn bytes(stream: &mut BufReader<TcpStream>, length: u64, deadline: Instant) -> Result<Vec<u8>> {
    ensure!(length <= BODY_MAX, "the response is too large");
    let mut body = Vec::new();
    while (body.len() as u64) < length {
        let part = available(stream, deadline)?;
        let taken = part.len().min(usize::try_from(length - body.len() as u64).unwrap_or(usize::MAX));
        body.extend_from_slice(&part[..taken]);
        stream.consume(taken);
    }
    Ok(body)
}

/// What has arrived; waits for at least one byte. Each wait ends at the deadline, however slowly bytes arrive.
fn available(stream: &mut BufReader<TcpStream>, deadline: Instant) -> Result<&[u8]> {
    stream.get_ref().set_read_timeout(Some(left(deadline)?))?;
    let part = stream.fill_buf()?;
    ensure!(!part.is_empty(), "the response was cut off");
    Ok(part)
}

/// The time until the deadline. A socket takes no timeout of zero.
fn left(deadline: Instant) -> Result<Duration> {
    let left = deadline.saturating_duration_since(Instant::now());
    ensure!(!left.is_zero(), "the hub does not answer in time");
    Ok(left)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;
    use std::net::TcpListener;

    /// A server that sends these bytes to whoever connects, and keeps the connection open.
    fn server(response: &'static [u8]) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("its address"));
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().expect("a connection");
            stream.write_all(response).expect("it can be sent");
            // Until the client closes.
            let _ = std::io::copy(&mut stream, &mut std::io::sink());
        });
        url
    }

    fn ask(url: &str, millis: u64) -> Result<Value> {
        let deadline = Instant::now() + Duration::from_millis(millis);
        HubConnection::open(url, &Secret::new("t"), deadline)?.call("POST", "/x", &json!({}))
    }

    #[test]
    fn both_forms_of_a_body_are_read() {
        let plain = server(b"HTTP/1.1 200 OK\r\nContent-Length: 7\r\n\r\n{\"a\":1}");
        assert_eq!(ask(&plain, 5_000).expect("it answers"), json!({ "a": 1 }));
        let chunked =
            server(b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\n{\"a\r\n4;x=y\r\n\":1}\r\n0\r\n\r\n");
        assert_eq!(ask(&chunked, 5_000).expect("it answers"), json!({ "a": 1 }));
    }

    #[test]
    fn refusals_and_strange_servers_are_errors() {
        let answers: [&'static [u8]; 5] = [
            b"HTTP/1.1 401 Unauthorized\r\ncontent-length: 2\r\n\r\n{}",
            b"SSH-2.0-OpenSSH_9.6\r\n",
            b"HTTP/1.1 200 OK\r\ncontent-length: 99999999999\r\n\r\n",
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nffffffff\r\n",
            b"HTTP/1.1 200 OK\r\nno header\r\n\r\n",
        ];
        for answer in answers {
            let error = ask(&server(answer), 1_000).expect_err("an error");
            assert_eq!(is_refusal(&error), answer.starts_with(b"HTTP/1.1 401"), "{error:#}");
        }
    }

    #[test]
    fn a_server_that_drips_costs_no_more_than_the_deadline() {
        for head in ["HTTP/1.1 2", "HTTP/1.1 200 OK\r\nx: ", "HTTP/1.1 200 OK\r\ncontent-length: 900\r\n\r\n{"] {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            let url = format!("http://{}", listener.local_addr().expect("its address"));
            std::thread::spawn(move || {
                let (mut stream, _) = listener.accept().expect("a connection");
                // One byte at a time, sooner than any single read would give up.
                while stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(b"0")).is_ok() {
                    std::thread::sleep(Duration::from_millis(50));
                }
            });
            let before = Instant::now();
            assert!(ask(&url, 300).is_err(), "{head}");
            assert!(before.elapsed() < Duration::from_secs(5), "{head}: {:?}", before.elapsed());
        }
    }

    #[test]
    fn the_next_address_of_a_host_is_tried_if_one_refuses() {
        let address = |listener: &TcpListener| listener.local_addr().expect("its address");
        let (closed, open) = [(); 2].map(|()| TcpListener::bind("127.0.0.1:0").expect("a port")).into();
        let both = [address(&closed), address(&open)];
        drop(closed);
        let deadline = Instant::now() + Duration::from_secs(5);
        assert!(connect(both[..1].iter().copied(), deadline).is_err());
        let stream = connect(both.into_iter(), deadline).expect("it listens");
        assert_eq!(stream.peer_addr().expect("connected"), both[1]);
        assert_eq!(addresses("127.0.0.1").expect("an address").next().map(|it| it.port()), Some(80));
        assert_eq!(addresses("[::1]:99").expect("an address").next().map(|it| it.port()), Some(99));
    }

    #[test]
    fn a_path_of_the_hub_stays_in_front() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("its address").port();
        let asked = std::thread::spawn(move || {
            let (stream, _) = listener.accept().expect("a connection");
            let mut line = String::new();
            BufReader::new(&stream).read_line(&mut line).expect("a request");
            (&stream).write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}").expect("it can be sent");
            line
        });
        ask(&format!("http://localhost:{port}/hub/"), 5_000).expect("it answers");
        assert_eq!(asked.join().expect("it does not panic"), "POST /hub/x HTTP/1.1\r\n");
    }

    #[test]
    fn a_silent_server_costs_no_more_than_the_deadline() {
        let before = Instant::now();
        assert!(ask(&server(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{"), 100).is_err());
        let waited = before.elapsed();
        assert!(waited >= Duration::from_millis(100) && waited < Duration::from_secs(5), "{waited:?}");
    }
}

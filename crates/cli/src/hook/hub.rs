//! Requests to the hub with nothing but a socket: a hook runs after every tool call, and an asynchronous client takes longer to
//! start than the hub to answer. A hub behind https is called with the client of the other commands.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use bellwire_server::config::Secret;
use serde_json::Value;

use crate::client::Client;

/// An answer of the hub is smaller; what is larger is not from a hub.
const BODY_MAX: u64 = 1024 * 1024;
const HEAD_LINES_MAX: usize = 100;
const HEAD_LINE_MAX: u64 = 16 * 1024;

/// A connection to the hub that lasts until a deadline.
pub(super) enum HubConnection {
    Plain { host: String, token: Secret, stream: BufReader<TcpStream>, deadline: Instant },
    Secure(Box<Client>),
}

impl HubConnection {
    /// Connects to `url`. Nothing is sent yet.
    pub(super) fn open(url: &str, token: &Secret, deadline: Instant) -> Result<Self> {
        let Some(host) = url.strip_prefix("http://") else {
            return Ok(Self::Secure(Box::new(Client::open(url.to_owned(), Some(token.clone()))?)));
        };
        let host = host.split('/').next().unwrap_or(host);
        let with_port =
            if host.rsplit(']').next().unwrap_or(host).contains(':') { host.into() } else { format!("{host}:80") };
        let address = with_port.to_socket_addrs()?.next().context("the address has no host")?;
        let stream = TcpStream::connect_timeout(&address, left(deadline)?)?;
        stream.set_nodelay(true)?;
        Ok(Self::Plain { host: host.to_owned(), token: token.clone(), stream: BufReader::new(stream), deadline })
    }

    /// Sends a JSON request and returns the body of a 2xx response.
    pub(super) fn call(&mut self, method: &str, path: &str, body: &Value) -> Result<Value> {
        match self {
            Self::Secure(client) => {
                let method = reqwest::Method::from_bytes(method.as_bytes())?;
                client.call(method, path, Some(body).filter(|body| !body.is_null()))
            }
            Self::Plain { host, token, stream, deadline } => {
                let body = if body.is_null() { String::new() } else { body.to_string() };
                let request = format!(
                    "{method} {path} HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {}\r\ncontent-type: \
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
            ensure!((200..300).contains(&code), "the hub answers {code}: {text}");
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
    stream.get_ref().set_read_timeout(Some(left(deadline)?))?;
    let mut line = String::new();
    stream.by_ref().take(HEAD_LINE_MAX).read_line(&mut line)?;
    ensure!(line.ends_with('\n'), "the response was cut off");
    line.truncate(line.trim_end().len());
    Ok(line)
}

fn bytes(stream: &mut BufReader<TcpStream>, length: u64, deadline: Instant) -> Result<Vec<u8>> {
    ensure!(length <= BODY_MAX, "the response is too large");
    let mut body = Vec::new();
    while (body.len() as u64) < length {
        stream.get_ref().set_read_timeout(Some(left(deadline)?))?;
        let part = stream.fill_buf()?;
        ensure!(!part.is_empty(), "the response was cut off");
        let taken = part.len().min(usize::try_from(length - body.len() as u64).unwrap_or(usize::MAX));
        body.extend_from_slice(&part[..taken]);
        stream.consume(taken);
    }
    Ok(body)
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
            assert!(ask(&server(answer), 1_000).is_err(), "{}", String::from_utf8_lossy(answer));
        }
    }

    #[test]
    fn a_silent_server_costs_no_more_than_the_deadline() {
        let before = Instant::now();
        assert!(ask(&server(b"HTTP/1.1 200 OK\r\ncontent-length: 7\r\n\r\n{"), 100).is_err());
        let waited = before.elapsed();
        assert!(waited >= Duration::from_millis(100) && waited < Duration::from_secs(5), "{waited:?}");
    }
}

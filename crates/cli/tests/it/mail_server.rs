//! A mail server on the loopback interface that answers as a test says.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

/// Answers one line of a client; none = as a server that accepts everything. `""` closes the connection.
pub(crate) type Answer = fn(&str) -> Option<String>;

pub(crate) struct MailServer {
    pub(crate) port: u16,
    received: Receiver<String>,
}

impl MailServer {
    pub(crate) fn start(answer: Answer) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("its address").port();
        let (sender, received) = channel();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let sender = sender.clone();
                std::thread::spawn(move || serve(&stream, answer, &sender));
            }
        });
        Self { port, received }
    }

    /// The next mail that it took, as it was sent.
    pub(crate) fn next(&self) -> String {
        self.received.recv_timeout(Duration::from_secs(60)).expect("a mail within a minute")
    }

    /// The configuration of a hub that sends by this server.
    pub(crate) fn config(&self) -> String {
        format!("[email]\nhost = \"127.0.0.1\"\nport = {}\ntls = \"none\"\n", self.port)
    }
}

fn serve(mut stream: &TcpStream, answer: Answer, received: &Sender<String>) {
    let mut lines = BufReader::new(stream.try_clone().expect("a second handle")).lines().map_while(Result::ok);
    let mut reply = |words: &str| stream.write_all(format!("{words}\r\n").as_bytes()).is_ok();
    if !reply("220 here") {
        return;
    }
    while let Some(line) = lines.next() {
        let usual = match line.as_str() {
            "DATA" => "354 go on",
            line if line.starts_with("EHLO") => "250-here\r\n250 AUTH PLAIN",
            line if line.starts_with("AUTH") => "235 welcome",
            _ => "250 fine",
        };
        let words = answer(&line).unwrap_or_else(|| usual.to_owned());
        let goes_on = !words.is_empty() && reply(&words) && line != "QUIT";
        if goes_on && line == "DATA" && words.starts_with("354") {
            let mail: Vec<String> = lines.by_ref().take_while(|line| line != ".").collect();
            // Tests of the client alone drop the receiver.
            let _ = received.send(mail.join("\n"));
            let words = answer(".").unwrap_or_else(|| "250 taken".to_owned());
            if words.is_empty() || !reply(&words) {
                return;
            }
        }
        if !goes_on {
            return;
        }
    }
}

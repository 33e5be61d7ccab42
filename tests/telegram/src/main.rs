//! The stand-in as a process: `telegram-standin [ADDRESS]` prints its URL and the bot's token as one line of JSON, and
//! runs until it is killed.

use std::net::SocketAddr;

use telegram_standin::Standin;

fn main() {
    let address = std::env::args().nth(1);
    let address = address.map_or(Ok(SocketAddr::from(([127, 0, 0, 1], 0))), |address| address.parse());
    let Ok(address) = address else {
        eprintln!("usage: telegram-standin [ADDRESS]   such as 127.0.0.1:8081; without one, a free port of loopback");
        std::process::exit(2);
    };
    let standin = Standin::start_at(address);
    println!(r#"{{"url":"{}","token":"{}"}}"#, standin.url(), standin.token());
    loop {
        std::thread::park();
    }
}

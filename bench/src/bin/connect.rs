//! Connects to the address of its first argument and exits: the least that a program which asks a hub must do. The `hook` section
//! compares with it.

use std::net::TcpStream;
use std::process::ExitCode;

fn main() -> ExitCode {
    let address = std::env::args().nth(1).unwrap_or_default();
    match TcpStream::connect(&address) {
        Ok(_) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{address}: {error}");
            ExitCode::FAILURE
        }
    }
}

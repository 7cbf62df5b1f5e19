//! One page of a process that serves its numbers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// The whole answer, with its status and headers.
pub fn page(address: &str, path: &str) -> String {
    ask(address, path, "1.1")
}

/// The same from a server that sends long answers in pieces to whoever understands that.
pub fn page_in_one_piece(address: &str, path: &str) -> String {
    ask(address, path, "1.0")
}

fn ask(address: &str, path: &str, version: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET {path} HTTP/{version}\r\nHost: x\r\nConnection: close\r\n\r\n").expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

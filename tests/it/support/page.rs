//! One page of a process that serves its numbers.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

/// The whole answer, with its status and headers.
pub fn page(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("a request");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    answer
}

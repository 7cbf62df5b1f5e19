//! Server functions for tests with scripted answers.

use std::io::{BufRead as _, BufReader};
use std::net::TcpStream;

/// Reads a request without a body, and returns its first line.
pub(crate) fn request_line(stream: &TcpStream) -> Option<String> {
    let mut first = String::new();
    let mut reader = BufReader::new(stream.try_clone().ok()?);
    reader.read_line(&mut first).ok()?;
    let mut line = String::new();
    while reader.read_line(&mut line).ok()? > 2 {
        line.clear();
    }
    Some(first)
}

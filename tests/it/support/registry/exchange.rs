//! One request over HTTP/1.1 and its answer, with every byte of both at hand.

use std::io::{BufRead, BufReader, Read as _, Write as _};
use std::net::TcpStream;

/// The longest body that a test sends or gets.
const LONGEST_BODY: usize = 1 << 30;

/// An answer, or a request, whose status is then 0.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// The first line.
    pub line: String,
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl Exchange {
    /// Returns the first header of a name in lower case.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(key, _)| key == name).map(|(_, value)| value.as_str())
    }

    /// Replaces a header, or removes it.
    pub fn set(&mut self, name: &str, value: Option<&str>) {
        self.headers.retain(|(key, _)| key != name);
        if let Some(value) = value {
            self.headers.push((name.to_owned(), value.to_owned()));
        }
    }

    /// Reads one message. `None` at the end of the connection, or at anything that is none.
    pub fn read(from: &mut impl BufRead, is_answer_to_head: bool) -> Option<Exchange> {
        let mut message = Exchange { line: line(from)?, ..Exchange::default() };
        message.status =
            message.line.strip_prefix("HTTP/1.1 ").map_or(Some(0), |rest| rest.get(..3)?.parse().ok())?;
        loop {
            let header = line(from)?;
            let Some((name, value)) = header.split_once(':') else { break };
            message.headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        if is_answer_to_head || matches!(message.status, 100..=199 | 204 | 304) {
            return Some(message);
        }
        if message.header("transfer-encoding").is_some_and(|coding| coding.contains("chunked")) {
            loop {
                let size = usize::from_str_radix(line(from)?.split(';').next()?.trim(), 16).ok()?;
                read_part(from, size, &mut message.body)?;
                line(from)?;
                if size == 0 {
                    break;
                }
            }
            message.set("transfer-encoding", None);
        } else if let Some(length) = message.header("content-length").map(str::to_owned) {
            read_part(from, length.parse().ok()?, &mut message.body)?;
        }
        Some(message)
    }

    /// Returns the message as bytes. The body's length is written anew, unless there is no body to measure.
    pub fn bytes(&self, is_answer_to_head: bool) -> Vec<u8> {
        let mut message = self.clone();
        let has_body = !is_answer_to_head && !matches!(self.status, 100..=199 | 204 | 304);
        if has_body {
            message.set("content-length", Some(&self.body.len().to_string()));
        }
        let mut bytes = format!("{}\r\n", message.line).into_bytes();
        for (name, value) in &message.headers {
            bytes.extend(format!("{name}: {value}\r\n").bytes());
        }
        bytes.extend(b"\r\n");
        if has_body {
            bytes.extend(&self.body);
        }
        bytes
    }
}

/// Sends one request to a port of this machine.
pub fn call(
    port: u16,
    method: &str,
    path: &str,
    headers: &[(&str, &str)],
    body: &[u8],
) -> std::io::Result<Exchange> {
    let mut request =
        Exchange { line: format!("{method} {path} HTTP/1.1"), body: body.to_vec(), ..Exchange::default() };
    request.set("host", Some(&format!("127.0.0.1:{port}")));
    request.set("connection", Some("close"));
    for (name, value) in headers {
        request.set(name, Some(value));
    }
    send(port, &request, method == "HEAD")
}

/// Sends a request as it is, over a connection of its own.
pub(super) fn send(port: u16, request: &Exchange, is_head: bool) -> std::io::Result<Exchange> {
    let mut stream = TcpStream::connect(("127.0.0.1", port))?;
    stream.write_all(&request.bytes(false))?;
    Exchange::read(&mut BufReader::new(stream), is_head)
        .ok_or_else(|| std::io::Error::new(std::io::ErrorKind::UnexpectedEof, "no answer"))
}

fn line(from: &mut impl BufRead) -> Option<String> {
    let mut line = String::new();
    from.take(1 << 16).read_line(&mut line).ok()?;
    line.ends_with('\n').then(|| line.trim_end().to_owned())
}

fn read_part(from: &mut impl BufRead, length: usize, into: &mut Vec<u8>) -> Option<()> {
    let before = into.len();
    if before + length > LONGEST_BODY {
        return None;
    }
    from.take(length as u64).read_to_end(into).ok()?;
    (into.len() == before + length).then_some(())
}

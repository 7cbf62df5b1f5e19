//! A listener that answers `/metrics`, `/healthz` and `/readyz`, and nothing else.
//!
//! It trusts nobody: so many connections at once, so many bytes of a request, so much time, one answer each.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::Metrics;

const MOST_CONNECTIONS: usize = 16;
const LONGEST_REQUEST: usize = 8 << 10;
const PATIENCE: Duration = Duration::from_secs(5);

/// Answers for as long as the process lives.
#[derive(Debug)]
pub struct Server {
    pub address: SocketAddr,
}

/// An address: a port alone is one of this machine's own.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse::<u16>().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    let wrong = |_| "write a port, for this machine only, or an address such as `0.0.0.0:9090`".to_owned();
    port.or_else(|_| text.parse().map_err(wrong))
}

impl Server {
    pub fn start(address: SocketAddr, metrics: Metrics) -> std::io::Result<Server> {
        let listener = TcpListener::bind(address)?;
        let address = listener.local_addr()?;
        let open = Arc::new(AtomicUsize::new(0));
        std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
            for stream in listener.incoming() {
                let Ok(stream) = stream else {
                    // Out of descriptors, say: not a reason to use up a processor as well.
                    std::thread::sleep(Duration::from_millis(100));
                    continue;
                };
                if open.fetch_add(1, Ordering::SeqCst) >= MOST_CONNECTIONS {
                    open.fetch_sub(1, Ordering::SeqCst);
                    continue;
                }
                let (ours, metrics) = (open.clone(), metrics.clone());
                let answering = std::thread::Builder::new().name("metrics".to_owned()).spawn(move || {
                    let _ = answer(stream, &metrics);
                    ours.fetch_sub(1, Ordering::SeqCst);
                });
                if answering.is_err() {
                    open.fetch_sub(1, Ordering::SeqCst);
                }
            }
        })?;
        Ok(Server { address })
    }
}

fn answer(mut stream: TcpStream, metrics: &Metrics) -> std::io::Result<()> {
    stream.set_write_timeout(Some(PATIENCE))?;
    let deadline = Instant::now() + PATIENCE;
    let (mut request, mut part) = (Vec::new(), [0; 1024]);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() || request.len() > LONGEST_REQUEST {
            return Ok(());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(&mut part)? {
            0 => return Ok(()),
            length => request.extend_from_slice(part.get(..length).unwrap_or_default()),
        }
    }
    let line = request.split(|byte| *byte == b'\r').next().unwrap_or_default();
    let line = String::from_utf8_lossy(line);
    let (status, body) = respond(&line, metrics);
    let kind =
        if body.starts_with("# HELP") { "text/plain; version=0.0.4; charset=utf-8" } else { "text/plain" };
    let shown = if line.starts_with("HEAD ") { "" } else { body.as_str() };
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\nCache-Control: no-store\r\nConnection: close\r\n\r\n{shown}"
    )?;
    stream.flush()
}

fn respond(line: &str, metrics: &Metrics) -> (&'static str, String) {
    const FINE: &str = "200 OK";
    const NOT_NOW: &str = "503 Service Unavailable";
    let mut words = line.split(' ');
    if !matches!(words.next(), Some("GET" | "HEAD")) {
        return ("405 Method Not Allowed", "only GET\n".to_owned());
    }
    let path = words.next().unwrap_or_default();
    match path.split('?').next().unwrap_or_default() {
        "/metrics" => (FINE, metrics.page()),
        "/healthz" if metrics.is_well() => (FINE, "ok\n".to_owned()),
        "/healthz" => (NOT_NOW, "no round has ended for too long\n".to_owned()),
        "/readyz" => match metrics.unready() {
            None => (FINE, "ok\n".to_owned()),
            Some(why) => (NOT_NOW, format!("{why}\n")),
        },
        _ => ("404 Not Found", "/metrics, /healthz, /readyz\n".to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn an_address_is_of_this_machine_unless_told_otherwise() {
        assert_eq!(address("9090").expect("a port").to_string(), "127.0.0.1:9090");
        assert_eq!(address("0.0.0.0:1").expect("an address").to_string(), "0.0.0.0:1");
        assert_eq!(address("[::1]:1").expect("an address").to_string(), "[::1]:1");
        for bad in ["", ":9090", "70000", "localhost:1", "1.2.3.4"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn only_what_is_meant_is_answered() {
        let metrics = Metrics::new(&[], Duration::from_secs(600));
        let server = Server::start(address("0").expect("a port"), metrics.clone()).expect("it starts");
        let ask = |request: &str| ask(server.address, request.as_bytes());
        assert!(ask("GET /healthz HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
        assert!(ask("GET /readyz?x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503 "));
        metrics.is_alive(None);
        assert!(ask("GET /readyz HTTP/1.0\r\nHost: x\r\n\r\n").ends_with("\r\n\r\nok\n"));
        assert!(ask("HEAD /readyz HTTP/1.0\r\n\r\n").ends_with("Connection: close\r\n\r\n"));
        assert!(ask("GET /etc/passwd HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        assert_eq!(ask(&format!("GET /{} HTTP/1.1\r\n", "x".repeat(20_000))), "");
    }

    #[test]
    fn those_who_only_hold_the_line_keep_nobody_else_waiting_for_long() {
        let metrics = Metrics::new(&[], Duration::from_secs(600));
        let server = Server::start(address("0").expect("a port"), metrics).expect("it starts");
        let idle: Vec<TcpStream> =
            (0..64).map(|_| TcpStream::connect(server.address).expect("it listens")).collect();
        let begun = Instant::now();
        while !ask(server.address, b"GET /healthz HTTP/1.1\r\n\r\n").contains(" 200 ") {
            assert!(begun.elapsed() < Duration::from_secs(60));
        }
        drop(idle);
    }
}

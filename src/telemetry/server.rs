//! The listener for `/metrics`, `/healthz` and `/readyz`. It answers nothing else.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use berth_http::listener::{self, Answer, Limits, Method, Request, StatusCode};

use crate::ProcessHealth;
use crate::meter::{Registry, encode};

const LIMITS: Limits = Limits { places: 16, patience: Duration::from_secs(5) };

const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The metrics and health of a process. Clones share them.
#[derive(Clone, Debug)]
pub struct Page {
    registry: Arc<Registry>,
    health: ProcessHealth,
}

impl Page {
    pub fn new(registry: Registry, health: ProcessHealth) -> Page {
        Page { registry: Arc::new(registry), health }
    }

    /// Returns the current metrics as OpenMetrics text.
    pub fn numbers(&self) -> String {
        let mut text = String::new();
        encode(&mut text, &self.registry).expect("a String takes every text");
        text
    }

    /// Answers while the process runs. Returns the address, with the port that the system chose.
    pub fn serve(self, address: SocketAddr) -> std::io::Result<SocketAddr> {
        self.serve_within(address, LIMITS)
    }

    fn serve_within(self, address: SocketAddr, limits: Limits) -> std::io::Result<SocketAddr> {
        listener::serve(address, "metrics", limits, async move |request| self.answer(&request), || {})
    }

    fn answer(&self, request: &Request) -> Answer {
        let verdict = |trouble: Option<String>| match trouble {
            None => Answer::plain(StatusCode::OK, "ok\n"),
            Some(why) => Answer::plain(StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
        };
        if !matches!(*request.method(), Method::GET | Method::HEAD) {
            return Answer::plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
        }
        match request.path() {
            "/metrics" => Answer { status: StatusCode::OK, kind: OPEN_METRICS, text: self.numbers() },
            "/healthz" => verdict(self.health.stuck()),
            "/readyz" => verdict(self.health.unready()),
            _ => Answer::plain(StatusCode::NOT_FOUND, "/metrics, /healthz, /readyz\n"),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;

    use super::*;
    use berth_http::listener::address;

    fn start(health: &ProcessHealth) -> SocketAddr {
        Page::new(Registry::default(), health.clone())
            .serve(address("0").expect("a port"))
            .expect("it starts")
    }

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        let _ = stream.write_all(request);
        let mut answer = Vec::new();
        let _ = stream.read_to_end(&mut answer);
        String::from_utf8_lossy(&answer).into_owned()
    }

    #[test]
    fn only_what_is_meant_is_answered() {
        let health = ProcessHealth::new("round", Duration::from_secs(600));
        let address = start(&health);
        let ask = |request: &str| ask(address, request.as_bytes());
        assert!(ask("GET /healthz HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
        assert!(ask("GET /readyz?x HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 503 "));
        health.ended(true);
        assert!(ask("GET /readyz HTTP/1.0\r\nHost: x\r\n\r\n").ends_with("\r\n\r\nok\n"));
        let head = ask("HEAD /readyz HTTP/1.1\r\n\r\n");
        assert!(head.contains("connection: close\r\n") && head.ends_with("\r\n\r\n"), "{head}");
        assert!(ask("GET /etc/passwd HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 404 "));
        assert!(ask("POST /metrics HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 405 "));
        let metrics = ask("GET /metrics HTTP/1.1\r\n\r\n");
        assert!(metrics.contains(&format!("content-type: {OPEN_METRICS}\r\n")), "{metrics}");
        assert!(metrics.ends_with("\r\n\r\n# EOF\n"), "{metrics}");
        // The connection may end before the answer is read.
        let long = ask(&format!("GET /{} HTTP/1.1\r\n", "x".repeat(20_000)));
        assert!(long.is_empty() || long.starts_with("HTTP/1.1 431 "), "{long}");
    }

    #[test]
    fn those_who_only_hold_the_line_keep_nobody_else_waiting() {
        let page = Page::new(Registry::default(), ProcessHealth::new("round", Duration::from_secs(600)));
        let limits = Limits { patience: Duration::from_secs(600), ..LIMITS };
        let address = page.serve_within("127.0.0.1:0".parse().expect("an address"), limits).expect("a port");
        let mut held = Vec::new();
        for _ in 0..200 {
            let mut idle = TcpStream::connect(address).expect("it listens");
            idle.write_all(b"GET /healthz HTTP/1.1\r\n").expect("a beginning");
            // Its answer stays in the buffers, unread.
            let mut deaf = TcpStream::connect(address).expect("it listens");
            deaf.write_all(b"GET /metrics HTTP/1.1\r\n\r\n").expect("a request");
            held.extend([idle, deaf]);
            assert!(ask(address, b"GET /healthz HTTP/1.1\r\n\r\n").contains(" 200 "));
        }
    }
}

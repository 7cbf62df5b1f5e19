//! A listener that answers `/metrics`, `/healthz` and `/readyz`, and nothing else.
//!
//! It trusts nobody: so many connections at once, so many bytes of a request, so much time, one answer each.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use hyper::header::{CACHE_CONTROL, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::ProcessHealth;
use crate::meter::{Registry, encode};

const MOST_CONNECTIONS: usize = 16;
const LONGEST_REQUEST: usize = 8 << 10;
/// The time for a request and its answer.
const PATIENCE: Duration = Duration::from_secs(5);

const PLAIN: &str = "text/plain";
const OPEN_METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// An address: a port alone is one of this machine's own.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse::<u16>().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    let wrong = |_| "write a port, for this machine only, or an address such as `0.0.0.0:9090`".to_owned();
    port.or_else(|_| text.parse().map_err(wrong))
}

/// Answers for as long as the process lives. Returns the address, with the port that the system chose.
pub fn serve(address: SocketAddr, registry: Registry, health: ProcessHealth) -> std::io::Result<SocketAddr> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind(address))?;
    let address = listener.local_addr()?;
    let pages = Arc::new(Pages { registry, health });
    let thread = std::thread::Builder::new().name("metrics".to_owned());
    thread.spawn(move || runtime.block_on(accept(&listener, &pages)))?;
    Ok(address)
}

async fn accept(listener: &TcpListener, pages: &Arc<Pages>) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, say: not a reason to use up a processor as well.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(place) = places.clone().try_acquire_owned() else { continue };
        let pages = pages.clone();
        tokio::spawn(async move {
            let service = service_fn(async |request| Ok::<_, Infallible>(pages.respond(&request)));
            let mut http = http1::Builder::new();
            http.keep_alive(false).max_buf_size(LONGEST_REQUEST);
            let answered = http.serve_connection(TokioIo::new(stream), service);
            let _ = tokio::time::timeout(PATIENCE, answered).await;
            drop(place);
        });
    }
}

/// The sources of all answers.
struct Pages {
    registry: Registry,
    health: ProcessHealth,
}

impl Pages {
    fn respond<B>(&self, request: &Request<B>) -> Response<String> {
        let (status, kind, body) = self.page(request.method(), request.uri().path());
        let response = Response::builder().status(status).header(CONTENT_TYPE, kind);
        response.header(CACHE_CONTROL, "no-store").body(body).expect("these headers are valid")
    }

    fn page(&self, method: &Method, path: &str) -> (StatusCode, &'static str, String) {
        let verdict = |trouble: Option<String>| match trouble {
            None => (StatusCode::OK, PLAIN, "ok\n".to_owned()),
            Some(why) => (StatusCode::SERVICE_UNAVAILABLE, PLAIN, format!("{why}\n")),
        };
        if !matches!(*method, Method::GET | Method::HEAD) {
            return (StatusCode::METHOD_NOT_ALLOWED, PLAIN, "only GET\n".to_owned());
        }
        match path {
            "/metrics" => {
                let mut page = String::new();
                encode(&mut page, &self.registry).expect("a String takes every text");
                (StatusCode::OK, OPEN_METRICS, page)
            }
            "/healthz" => verdict(self.health.stuck()),
            "/readyz" => verdict(self.health.unready()),
            _ => (StatusCode::NOT_FOUND, PLAIN, "/metrics, /healthz, /readyz\n".to_owned()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::TcpStream;
    use std::time::Instant;

    use super::*;

    fn start(health: &ProcessHealth) -> SocketAddr {
        serve(address("0").expect("a port"), Registry::default(), health.clone()).expect("it starts")
    }

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
        // The end of the connection may be heard before the answer.
        let long = ask(&format!("GET /{} HTTP/1.1\r\n", "x".repeat(20_000)));
        assert!(long.is_empty() || long.starts_with("HTTP/1.1 431 "), "{long}");
    }

    #[test]
    fn those_who_only_hold_the_line_keep_nobody_else_waiting_for_long() {
        let address = start(&ProcessHealth::new("round", Duration::from_secs(600)));
        let idle: Vec<TcpStream> =
            (0..64).map(|_| TcpStream::connect(address).expect("it listens")).collect();
        let begun = Instant::now();
        while !ask(address, b"GET /healthz HTTP/1.1\r\n\r\n").contains(" 200 ") {
            assert!(begun.elapsed() < Duration::from_secs(60));
        }
        drop(idle);
    }
}

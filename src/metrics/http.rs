//! A listener for requests of strangers: so many connections at once, so many bytes, so much time, one answer each.

use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use hyper::body::{Body as _, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

pub use hyper::{HeaderMap, Method, StatusCode};

/// Of a request's head. Bodies arrive in pieces that are no longer.
const LONGEST_HEAD: usize = 8 << 10;

pub const PLAIN: &str = "text/plain";

/// The bounds of a listener.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The connections at once. Those beyond it are closed.
    pub places: usize,
    /// The time for a request and its answer.
    pub patience: Duration,
}

/// A request whose body has not been read.
#[derive(Debug)]
pub struct Request(hyper::Request<Incoming>);

/// A body is longer than it may be, or breaks off.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    TooLong,
    Broken,
}

impl Request {
    pub fn method(&self) -> &Method {
        self.0.method()
    }

    pub fn path(&self) -> &str {
        self.0.uri().path()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.0.headers()
    }

    /// Hands out a body piece by piece, so that none is kept. A length that is announced counts at once.
    pub async fn read(self, longest: u64, mut take: impl FnMut(&[u8])) -> Result<(), BodyError> {
        let mut body = self.0.into_body();
        let mut left = longest;
        if body.size_hint().lower() > left {
            return Err(BodyError::TooLong);
        }
        while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
            let frame = frame.map_err(|_| BodyError::Broken)?;
            let Some(piece) = frame.data_ref() else { continue };
            left = left.checked_sub(piece.len() as u64).ok_or(BodyError::TooLong)?;
            take(piece);
        }
        Ok(())
    }
}

/// An answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    pub status: StatusCode,
    pub kind: &'static str,
    pub text: String,
}

impl Answer {
    pub fn plain(status: StatusCode, text: impl Into<String>) -> Answer {
        Answer { status, kind: PLAIN, text: text.into() }
    }
}

/// An address: a port alone is one of this machine's own.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse::<u16>().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    let wrong = |_| "write a port, for this machine only, or an address such as `0.0.0.0:9090`".to_owned();
    port.or_else(|_| text.parse().map_err(wrong))
}

/// Answers on a thread of its own for as long as the process lives. Returns the address, with the port that the
/// system chose. `full` hears of each connection that found no place.
pub fn serve(
    address: SocketAddr,
    name: &str,
    limits: Limits,
    answer: impl AsyncFn(Request) -> Answer + Send + 'static,
    full: impl Fn() + Send + 'static,
) -> std::io::Result<SocketAddr> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = runtime.block_on(TcpListener::bind(address))?;
    let address = listener.local_addr()?;
    let thread = std::thread::Builder::new().name(name.to_owned());
    thread.spawn(move || {
        let answers = accept(&listener, limits, Rc::new(answer), full);
        tokio::task::LocalSet::new().block_on(&runtime, answers);
    })?;
    Ok(address)
}

async fn accept(
    listener: &TcpListener,
    limits: Limits,
    answer: Rc<impl AsyncFn(Request) -> Answer + 'static>,
    full: impl Fn(),
) {
    let places = Arc::new(Semaphore::new(limits.places));
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of descriptors, say: not a reason to use up a processor as well.
            tokio::time::sleep(Duration::from_millis(100)).await;
            continue;
        };
        let Ok(place) = places.clone().try_acquire_owned() else {
            full();
            continue;
        };
        let answer = answer.clone();
        tokio::task::spawn_local(async move {
            let service = service_fn(async |request| Ok::<_, Infallible>(respond(&*answer, request).await));
            let mut http = http1::Builder::new();
            http.keep_alive(false).max_buf_size(LONGEST_HEAD);
            let answered = http.serve_connection(TokioIo::new(stream), service);
            let _ = tokio::time::timeout(limits.patience, answered).await;
            drop(place);
        });
    }
}

async fn respond(
    answer: &impl AsyncFn(Request) -> Answer,
    request: hyper::Request<Incoming>,
) -> hyper::Response<String> {
    let Answer { status, kind, text } = answer(Request(request)).await;
    let response = hyper::Response::builder().status(status).header(CONTENT_TYPE, kind);
    response.header(CACHE_CONTROL, "no-store").body(text).expect("these headers are valid")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_of_this_machine_unless_told_otherwise() {
        assert_eq!(address("9090").expect("a port").to_string(), "127.0.0.1:9090");
        assert_eq!(address("0.0.0.0:1").expect("an address").to_string(), "0.0.0.0:1");
        assert_eq!(address("[::1]:1").expect("an address").to_string(), "[::1]:1");
        for bad in ["", ":9090", "70000", "localhost:1", "1.2.3.4"] {
            assert!(address(bad).is_err(), "{bad}");
        }
    }
}

//! A listener for requests of strangers, with limits on connections, bytes and time. Each connection gets one answer.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::rc::Rc;
use std::time::Duration;

use hyper::body::{Body as _, Incoming};
use hyper::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::task::AbortHandle;

pub use hyper::{HeaderMap, Method, StatusCode};

/// The limit of a request's head, and of each piece of a body.
const LONGEST_HEAD: usize = 8 << 10;

pub const PLAIN: &str = "text/plain";

/// The bounds of a listener.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The number of simultaneous connections. A further one replaces the oldest that waits for its peer. If none
    /// waits, the new one is closed.
    pub places: usize,
    /// The time for a request and its answer.
    pub patience: Duration,
}

/// A request whose body has not been read.
#[derive(Debug)]
pub struct Request {
    request: hyper::Request<Incoming>,
    waits: Waits,
}

/// A body exceeds its limit, or ends early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BodyError {
    TooLong,
    Broken,
}

impl Request {
    pub fn method(&self) -> &Method {
        self.request.method()
    }

    pub fn path(&self) -> &str {
        self.request.uri().path()
    }

    pub fn headers(&self) -> &HeaderMap {
        self.request.headers()
    }

    /// Passes a body on piece by piece, without storing it. A declared length is checked at once.
    pub async fn read(self, longest: u64, mut take: impl FnMut(&[u8])) -> Result<(), BodyError> {
        let mut body = self.request.into_body();
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
        self.waits.set(false);
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

/// Reads an address. A port alone means an address of this machine only.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let port = text.parse::<u16>().map(|port| SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port));
    let wrong = |_| "write a port, for this machine only, or an address such as `0.0.0.0:9090`".to_owned();
    port.or_else(|_| text.parse().map_err(wrong))
}

/// Answers on a separate thread while the process runs. Returns the address, with the port that the system chose.
/// Calls `full` for each connection that found no free place.
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
    let places = Rc::new(RefCell::new(BTreeMap::<u64, Taken>::new()));
    for number in 0.. {
        let stream = loop {
            match listener.accept().await {
                Ok((stream, _)) => break stream,
                // Accepting can fail for lack of file descriptors: the pause prevents a busy loop.
                Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
            }
        };
        if places.borrow().len() >= limits.places {
            full();
            if !evict(&mut places.borrow_mut()) {
                continue;
            }
        }
        let (answer, waits, all) = (answer.clone(), Waits::new(Cell::new(true)), places.clone());
        let taken = waits.clone();
        let connection = tokio::task::spawn_local(async move {
            let service =
                service_fn(async |request| Ok::<_, Infallible>(respond(&*answer, request, &waits).await));
            let mut http = http1::Builder::new();
            http.keep_alive(false).max_buf_size(LONGEST_HEAD);
            let answered = http.serve_connection(TokioIo::new(stream), service);
            let _ = tokio::time::timeout(limits.patience, answered).await;
            all.borrow_mut().remove(&number);
        });
        places.borrow_mut().insert(number, Taken { waits: taken, connection: connection.abort_handle() });
    }
}

/// True while a connection waits for its peer: for the rest of the request, or until the answer is taken.
type Waits = Rc<Cell<bool>>;

/// An occupied place, and the handle that ends its connection.
struct Taken {
    waits: Waits,
    connection: AbortHandle,
}

/// Ends the oldest connection that waits for its peer; returns false if none does. So idle connections cannot keep
/// out a peer that sends at once, such as a probe.
fn evict(places: &mut BTreeMap<u64, Taken>) -> bool {
    let waiting = places.iter().find(|(_, taken)| taken.waits.get()).map(|(number, _)| *number);
    let taken = waiting.and_then(|number| places.remove(&number));
    taken.inspect(|taken| taken.connection.abort()).is_some()
}

async fn respond(
    answer: &impl AsyncFn(Request) -> Answer,
    request: hyper::Request<Incoming>,
    waits: &Waits,
) -> hyper::Response<String> {
    waits.set(!request.body().is_end_stream());
    let Answer { status, kind, text } = answer(Request { request, waits: waits.clone() }).await;
    waits.set(true);
    let response = hyper::Response::builder().status(status).header(CONTENT_TYPE, kind);
    let response = response.header(CACHE_CONTROL, "no-store").header(X_CONTENT_TYPE_OPTIONS, "nosniff");
    response.body(text).expect("these headers are valid")
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

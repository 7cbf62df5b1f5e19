//! Answers browsers: the files of the page, and an event for each newer page.
//!
//! An answer with events ends with its first event, or after a while without one. Browsers connect again by themselves.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use berth_http::Secret;
use berth_http::client::is_local;
use berth_http::listener::{self, Answer, Limits, Method, PLAIN, Request, StatusCode};
use berth_site::Site;

use super::pages::Pages;

/// Each browser has one connection for events, and a few while it loads the page.
const LIMITS: Limits = Limits { places: 256, patience: Duration::from_secs(60) };

/// The time that an answer waits for an event.
const LONGEST_WAIT: Duration = Duration::from_secs(25);

/// The path of events, below the page's address.
const EVENTS: &str = "events";

/// The pause after which a browser connects again, in milliseconds.
const RETRY: u32 = 300;

/// A server that was started.
pub(super) struct Server {
    /// The address to open.
    pub address: String,
}

/// The condition under which requests are answered.
enum Access {
    /// The server is on an address of this machine. A page of somebody else that leads its own name there is refused.
    ThisMachine,
    /// The path of a request begins with this text.
    Token(Secret),
}

impl Server {
    /// Starts a server that ends with the process.
    pub fn start(listen: SocketAddr, pages: Arc<Pages>) -> std::io::Result<Server> {
        let access = match listen.ip().is_loopback() {
            true => Access::ThisMachine,
            false => Access::Token(Secret::random()?),
        };
        let path = match &access {
            Access::ThisMachine => String::new(),
            Access::Token(token) => format!("{}/", token.reveal()),
        };
        let answer = async move |request: Request| answer(&request, &access, &pages).await;
        let address = listener::serve(listen, "ui", LIMITS, answer, || {})?;
        Ok(Server { address: format!("http://{address}/{path}") })
    }
}

async fn answer(request: &Request, access: &Access, pages: &Pages) -> Answer {
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return Answer::plain(StatusCode::METHOD_NOT_ALLOWED, "only GET\n");
    }
    let Some(path) = access.path(request) else {
        return Answer::plain(StatusCode::NOT_FOUND, "the address of the page is what `berth ui` printed\n");
    };
    if path == EVENTS {
        return event(request, pages).await;
    }
    let path = if path.is_empty() { Site::INDEX } else { path };
    match pages.file(path) {
        Some(text) => Answer { status: StatusCode::OK, kind: kind(path), text: text.to_string() },
        None => Answer::plain(StatusCode::NOT_FOUND, "no such file\n"),
    }
}

impl Access {
    /// Returns the path below the page's address. `None` if the request may see nothing.
    fn path<'r>(&self, request: &'r Request) -> Option<&'r str> {
        let path = request.path().strip_prefix('/')?;
        match self {
            Access::ThisMachine => {
                let host = request.headers().get("host")?.to_str().ok()?;
                let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
                is_local(name).then_some(path)
            }
            Access::Token(token) => {
                let (given, rest) = path.split_once('/')?;
                is_equal(given, token.reveal()).then_some(rest)
            }
        }
    }
}

/// Compares two texts in the same time, wherever they differ.
fn is_equal(given: &str, token: &str) -> bool {
    let differences = given.bytes().zip(token.bytes()).fold(0, |sum, (one, other)| sum | (one ^ other));
    given.len() == token.len() && differences == 0
}

/// Waits for a page that is newer than the one of the last event.
async fn event(request: &Request, pages: &Pages) -> Answer {
    let last = request.headers().get("last-event-id").and_then(|id| id.to_str().ok());
    let text = match tokio::time::timeout(LONGEST_WAIT, pages.newer_than(last)).await {
        Ok(stamp) => format!("retry: {RETRY}\nid: {stamp}\ndata: {stamp}\n\n"),
        Err(_) => format!("retry: {RETRY}\n\n"),
    };
    Answer { status: StatusCode::OK, kind: "text/event-stream", text }
}

fn kind(path: &str) -> &'static str {
    match path.rsplit_once('.') {
        Some((_, "html")) => "text/html; charset=utf-8",
        Some((_, "css")) => "text/css; charset=utf-8",
        Some((_, "js")) => "text/javascript; charset=utf-8",
        _ => PLAIN,
    }
}

//! A server on this machine that plays a forge for tests: it records requests and returns scripted answers. Also used
//! by tests of other crates.
#![allow(dead_code, reason = "not every crate needs all of it")]

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use serde_json::Value as Json;

/// A recorded request.
#[derive(Clone, Debug)]
pub struct Request {
    /// The method and the path with its query: `GET /user?x=1`.
    pub line: String,
    /// Names are in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Json,
}

impl Request {
    /// Returns a header's value, or an empty text.
    pub fn header(&self, name: &str) -> &str {
        self.headers.iter().find(|(header, _)| header == name).map_or("", |(_, value)| value)
    }
}

/// An answer to a request.
#[derive(Clone, Debug)]
pub struct Answer {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

impl Answer {
    pub fn new(status: u16, body: &Json) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        Answer { status, headers: Vec::new(), body }
    }

    #[must_use]
    pub fn header(mut self, name: &str, value: &str) -> Answer {
        self.headers.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Replaces the body by a text.
    #[must_use]
    pub fn text(self, body: &str) -> Answer {
        Answer { body: body.to_owned(), ..self }
    }
}

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub struct Recorder {
    url: String,
    address: std::net::SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    is_stopped: Arc<std::sync::atomic::AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Recorder {
    /// Starts a server that answers by calling the function.
    pub fn start(mut respond: impl FnMut(&Request) -> Answer + Send + 'static) -> Recorder {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let (requests, is_stopped) = (Arc::<Mutex<Vec<Request>>>::default(), Arc::default());
        let (recorded, stopped) = (Arc::clone(&requests), Arc::clone(&is_stopped));
        let thread = std::thread::spawn(move || {
            for stream in listener.incoming() {
                if std::sync::atomic::AtomicBool::load(&stopped, std::sync::atomic::Ordering::SeqCst) {
                    return;
                }
                let mut stream = stream.expect("a connection");
                let Some(request) = read(&stream) else { continue };
                let answer = respond(&request);
                recorded.lock().unwrap_or_else(PoisonError::into_inner).push(request);
                // The client may have closed the connection.
                let _ = stream.write_all(&bytes(&answer));
                let _ = stream.shutdown(Shutdown::Write);
            }
        });
        Recorder { url: format!("http://{address}"), address, requests, is_stopped, thread: Some(thread) }
    }

    /// Starts a server that returns the scripted answers in order, each only to the request that the script names
    /// (`GET /user`), and 599 to any other request.
    pub fn script(answers: impl IntoIterator<Item = (&'static str, Answer)>) -> Recorder {
        let mut answers = answers.into_iter().collect::<std::collections::VecDeque<_>>();
        Recorder::start(move |request| match answers.pop_front() {
            Some((line, answer)) if line == request.line => answer,
            Some((line, _)) => Answer::new(599, &Json::String(format!("{line}, not {}", request.line))),
            None => Answer::new(599, &Json::String(format!("nothing, not {}", request.line))),
        })
    }

    /// Returns the server's address, without a slash at its end.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Returns the requests so far, oldest first.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the methods and paths of the requests so far.
    pub fn lines(&self) -> Vec<String> {
        self.requests().into_iter().map(|request| request.line).collect()
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        self.is_stopped.store(true, std::sync::atomic::Ordering::SeqCst);
        // Wakes the thread so that it ends.
        let _ = TcpStream::connect(self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = || {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        Some(line.trim_end().to_owned())
    };
    let first = line()?;
    let (method_and_path, _) = first.rsplit_once(' ')?;
    let method_and_path = method_and_path.to_owned();
    let mut headers = Vec::new();
    while let Some((name, value)) = line()?.split_once(": ") {
        headers.push((name.to_lowercase(), value.to_owned()));
    }
    let mut request = Request { line: method_and_path, headers, body: Json::Null };
    let mut body = vec![0; request.header("content-length").parse().unwrap_or(0)];
    reader.read_exact(&mut body).ok()?;
    request.body = serde_json::from_slice(&body).unwrap_or_default();
    Some(request)
}

fn bytes(answer: &Answer) -> Vec<u8> {
    let mut text = format!("HTTP/1.1 {} Scripted\r\nconnection: close\r\n", answer.status);
    for (name, value) in &answer.headers {
        text += &format!("{name}: {value}\r\n");
    }
    text += &format!("content-length: {}\r\n\r\n{}", answer.body.len(), answer.body);
    text.into_bytes()
}

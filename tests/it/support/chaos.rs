//! An API server that can not be relied on: a proxy that speaks plain HTTP and does something bad to a share
//! of all requests, by a seed, so that a run can be made again. `kubectl proxy` behind it does the rest.

use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::faults::kubeconfig_of;
use super::kube::ControlPlane;
use super::random::Random;
use super::wait::pause;

/// What is done to a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Evil {
    /// An internal error; nothing was done.
    Broken,
    /// The same from something in front of the server.
    Gateway,
    /// Too many requests, and how long to wait.
    Busy,
    /// A conflict, for what changes something.
    Conflict,
    /// The connection is reset, and nothing was done.
    ResetBefore,
    /// It is done, and then the connection is reset.
    ResetAfter,
    /// It is done, and half of the answer arrives.
    Cut,
    /// It is done, late.
    Late,
}

const ALL: [Evil; 8] = [
    Evil::Broken,
    Evil::Gateway,
    Evil::Busy,
    Evil::Conflict,
    Evil::ResetBefore,
    Evil::ResetAfter,
    Evil::Cut,
    Evil::Late,
];

/// What all connections share.
#[derive(Debug)]
struct Shared {
    upstream: String,
    random: Mutex<Random>,
    /// Of a thousand requests, so many go wrong.
    per_mille: AtomicU64,
    stopped: AtomicBool,
    happened: Mutex<BTreeMap<Evil, u64>>,
    served: AtomicU64,
}

#[derive(Debug)]
pub struct Chaos {
    behind: Child,
    port: u16,
    shared: Arc<Shared>,
}

impl Chaos {
    /// Begins without faults.
    pub fn before(plane: &ControlPlane, seed: u64) -> Chaos {
        let mut behind = plane
            .kubectl()
            .args(["proxy", "--port=0"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("kubectl runs");
        let mut line = String::new();
        BufReader::new(behind.stdout.take().expect("a pipe")).read_line(&mut line).expect("a line");
        let upstream = line.trim().rsplit(' ').next().expect("an address").to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let shared = Arc::new(Shared {
            upstream,
            random: Mutex::new(Random::new(seed)),
            per_mille: AtomicU64::new(0),
            stopped: AtomicBool::new(false),
            happened: Mutex::default(),
            served: AtomicU64::new(0),
        });
        let all = shared.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if all.stopped.load(Ordering::SeqCst) {
                    return;
                }
                let one = all.clone();
                std::thread::spawn(move || serve(stream, &one));
            }
        });
        Chaos { behind, port, shared }
    }

    /// From now on so many of a thousand requests go wrong.
    pub fn rage(&self, per_mille: u64) {
        self.shared.per_mille.store(per_mille, Ordering::SeqCst);
    }

    /// Writes a kubeconfig that goes this way.
    pub fn kubeconfig(&self, folder: &Path) -> PathBuf {
        let path = folder.join("chaos-kubeconfig");
        let text = kubeconfig_of(self.port);
        std::fs::write(&path, text).expect("a file");
        path
    }

    /// How many requests there were, and how often each fault struck.
    pub fn tally(&self) -> (u64, BTreeMap<Evil, u64>) {
        let happened = self.shared.happened.lock().expect("not poisoned").clone();
        (self.shared.served.load(Ordering::SeqCst), happened)
    }
}

impl Drop for Chaos {
    fn drop(&mut self) {
        self.shared.stopped.store(true, Ordering::SeqCst);
        // Wakes the thread that accepts, so that it ends.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
        let _ = self.behind.kill();
        let _ = self.behind.wait();
    }
}

/// A request but for the last byte of its body, which stays with the system: a connection that is closed
/// with something unread is reset.
struct Request {
    first: String,
    head: Vec<u8>,
    body: Vec<u8>,
}

impl Request {
    fn read(stream: &mut TcpStream) -> Option<Request> {
        let (mut head, mut first, mut length) = (Vec::new(), String::new(), 0_usize);
        loop {
            let mut line = Vec::new();
            while line.last() != Some(&b'\n') {
                let mut byte = [0];
                stream.read_exact(&mut byte).ok()?;
                line.push(byte[0]);
            }
            let text = String::from_utf8(line).ok()?;
            let lower = text.to_lowercase();
            if let Some(value) = lower.strip_prefix("content-length:") {
                length = value.trim().parse().ok()?;
            }
            if first.is_empty() {
                first.clone_from(&text);
            }
            if text == "\r\n" {
                head.extend_from_slice(b"Connection: close\r\n\r\n");
                break;
            }
            if !lower.starts_with("connection:") {
                head.extend_from_slice(text.as_bytes());
            }
        }
        let mut body = vec![0; length];
        if let Some((last, most)) = body.split_last_mut() {
            stream.read_exact(most).ok()?;
            while stream.peek(std::slice::from_mut(last)).ok()? == 0 {}
        }
        Some(Request { first, head, body })
    }

    fn changes_something(&self) -> bool {
        !self.first.starts_with("GET") && !self.first.contains("dryRun=All")
    }
}

/// One request for each connection.
fn serve(mut stream: TcpStream, shared: &Shared) -> Option<()> {
    let request = Request::read(&mut stream)?;
    shared.served.fetch_add(1, Ordering::SeqCst);
    let evil = choose(&request, shared);
    if let Some(evil) = evil {
        *shared.happened.lock().ok()?.entry(evil).or_default() += 1;
    }
    let refusal = match evil {
        Some(Evil::ResetBefore) => return None,
        Some(Evil::Broken) => Some(refusal("500 Internal Server Error", "", "InternalError", 500)),
        Some(Evil::Gateway) => {
            Some("HTTP/1.1 502 Bad Gateway\r\nContent-Length: 4\r\nConnection: close\r\n\r\noops".into())
        }
        Some(Evil::Busy) => {
            Some(refusal("429 Too Many Requests", "Retry-After: 1\r\n", "TooManyRequests", 429))
        }
        Some(Evil::Conflict) => Some(refusal("409 Conflict", "", "Conflict", 409)),
        _ => None,
    };
    if let Some(answer) = refusal {
        take_last(&mut stream, &request)?;
        return stream.write_all(answer.as_bytes()).ok();
    }
    if evil == Some(Evil::Late) {
        pause(Duration::from_millis(200), "the answer is late");
    }
    let mut behind = TcpStream::connect(&shared.upstream).ok()?;
    behind.write_all(&request.head).ok()?;
    behind.write_all(&request.body).ok()?;
    let mut answer = Vec::new();
    behind.read_to_end(&mut answer).ok()?;
    if evil == Some(Evil::ResetAfter) {
        return None;
    }
    take_last(&mut stream, &request)?;
    let much = if evil == Some(Evil::Cut) { answer.len() / 2 } else { answer.len() };
    stream.write_all(answer.get(..much)?).ok()
}

fn take_last(stream: &mut TcpStream, request: &Request) -> Option<()> {
    if !request.body.is_empty() {
        stream.read_exact(&mut [0]).ok()?;
    }
    Some(())
}

fn choose(request: &Request, shared: &Shared) -> Option<Evil> {
    let mut random = shared.random.lock().ok()?;
    if random.below(1000) >= shared.per_mille.load(Ordering::SeqCst) {
        return None;
    }
    let evil = random.pick(&ALL);
    (evil != Evil::Conflict || request.changes_something()).then_some(evil)
}

fn refusal(line: &str, header: &str, reason: &str, code: u16) -> String {
    let body = format!(
        "{{\"kind\":\"Status\",\"apiVersion\":\"v1\",\"status\":\"Failure\",\"reason\":\"{reason}\",\"message\":\"injected\",\"code\":{code}}}"
    );
    let length = body.len();
    format!(
        "HTTP/1.1 {line}\r\n{header}Content-Type: application/json\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

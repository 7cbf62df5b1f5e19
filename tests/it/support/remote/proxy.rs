//! Proxies: a wire that counts bytes and can be bad in several ways, and one for the web that wants a password.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use super::Server;
use crate::support::wait::{PAUSE, pause};

/// What happens to the answers that come over a wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Harm {
    /// The connection ends after so many bytes of them.
    Cut(usize),
    /// So many bytes of them come in a second.
    Slow(usize),
    /// Nothing comes, and the connection stays.
    Mute,
    /// One bit in each part of them is another one.
    Garbled,
}

/// A port in front of another one, for as long as the test runs.
pub struct Wire {
    pub port: u16,
    to: u16,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    harm: Mutex<Option<Harm>>,
    bytes: AtomicUsize,
    holds: AtomicBool,
}

impl State {
    fn harm(&self) -> Option<Harm> {
        *self.harm.lock().expect("a harm")
    }
}

impl Wire {
    pub fn to(to: u16) -> Wire {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let state: Arc<State> = Arc::default();
        let shared = state.clone();
        std::thread::spawn(move || {
            for asked in listener.incoming().map_while(Result::ok) {
                if let Ok(answers) = TcpStream::connect(("127.0.0.1", to)) {
                    pass(asked, answers, &shared);
                }
            }
        });
        Wire { port, to, state }
    }

    /// From now on this harm is done, to connections that are open as well.
    pub fn harm(&self, harm: Option<Harm>) {
        *self.state.harm.lock().expect("a harm") = harm;
    }

    /// The bytes that went over it, both ways, since the last call.
    pub fn take_bytes(&self) -> usize {
        self.state.bytes.swap(0, Ordering::SeqCst)
    }

    /// Reports whether an answer was held back by [`Harm::Mute`].
    pub fn holds(&self) -> bool {
        self.state.holds.load(Ordering::SeqCst)
    }

    /// The server at the other end, reached over this wire.
    pub fn server<'s>(&self, server: &'s dyn Server) -> Wired<'s> {
        Wired { server, port: self.to, wire: self.port }
    }
}

/// A server at the other end of a wire.
pub struct Wired<'s> {
    server: &'s dyn Server,
    port: u16,
    wire: u16,
}

impl Server for Wired<'_> {
    fn access(&self) -> Vec<String> {
        let (from, to) = (format!(":{}", self.port), format!(":{}", self.wire));
        self.server.access().into_iter().map(|word| word.replace(&from, &to)).collect()
    }
    fn set_secrets(&self, command: &mut Command) {
        self.server.set_secrets(command);
    }
    fn start(&mut self) {}
    fn stop(&mut self) {}
}

fn pass(asked: TcpStream, answers: TcpStream, state: &Arc<State>) {
    let (mut from, mut to) = (asked.try_clone().expect("a clone"), answers.try_clone().expect("a clone"));
    let (up, down) = (state.clone(), state.clone());
    std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(length @ 1..) = from.read(&mut part) {
            // Counted before they are passed on, so that nothing arrives uncounted.
            up.bytes.fetch_add(length, Ordering::SeqCst);
            if to.write_all(&part[..length]).is_err() {
                break;
            }
        }
        let _ = to.shutdown(Shutdown::Write);
    });
    std::thread::spawn(move || {
        let (mut back, mut passed, mut part) = (&asked, 0, [0; 4096]);
        while let Ok(mut length @ 1..) = (&answers).read(&mut part) {
            while down.harm() == Some(Harm::Mute) {
                down.holds.store(true, Ordering::SeqCst);
                pause(PAUSE, "the wire is mute");
            }
            match down.harm() {
                Some(Harm::Cut(most)) => length = length.min(most.saturating_sub(passed)),
                Some(Harm::Slow(bytes)) => {
                    pause(Duration::from_secs_f64(length as f64 / bytes as f64), "the wire is slow");
                }
                Some(Harm::Garbled) => part[length / 2] ^= 1,
                Some(Harm::Mute) | None => {}
            }
            passed += length;
            down.bytes.fetch_add(length, Ordering::SeqCst);
            // A server that waits for an answer sends nothing more, so the connection ends with its last byte.
            let is_cut = matches!(down.harm(), Some(Harm::Cut(most)) if passed >= most);
            if back.write_all(&part[..length]).is_err() || is_cut {
                break;
            }
        }
        let _ = asked.shutdown(Shutdown::Both);
        let _ = answers.shutdown(Shutdown::Both);
    });
}

/// A proxy for `CONNECT` that lets in who sends this `Proxy-Authorization`.
pub struct WebProxy {
    pub port: u16,
    let_in: Arc<AtomicUsize>,
}

impl WebProxy {
    pub fn start(authorization: &'static str) -> WebProxy {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let let_in = Arc::new(AtomicUsize::new(0));
        let count = let_in.clone();
        std::thread::spawn(move || {
            for mut asked in listener.incoming().map_while(Result::ok) {
                match connect(&asked, authorization) {
                    Some(answers) => {
                        count.fetch_add(1, Ordering::SeqCst);
                        let _ = asked.write_all(b"HTTP/1.1 200 OK\r\n\r\n");
                        pass(asked, answers, &Arc::default());
                    }
                    None => {
                        let _ = asked.write_all(
                            b"HTTP/1.1 407 No\r\nProxy-Authenticate: Basic realm=\"p\"\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                        );
                    }
                }
            }
        });
        WebProxy { port, let_in }
    }

    /// How many connections went through.
    pub fn let_in(&self) -> usize {
        self.let_in.load(Ordering::SeqCst)
    }
}

/// The connection asked for. The head is read to its end: nothing follows before the answer.
fn connect(asked: &TcpStream, authorization: &str) -> Option<TcpStream> {
    let mut lines = BufReader::new(asked).lines().map_while(Result::ok);
    let to = lines.next()?.strip_prefix("CONNECT ")?.split(' ').next()?.to_owned();
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let welcome = head.iter().any(|line| line.contains(authorization));
    // What is meant for the server is not the proxy's to see.
    assert!(!head.iter().any(|line| line.starts_with("Authorization")), "{head:?}");
    if welcome { TcpStream::connect(to).ok() } else { None }
}

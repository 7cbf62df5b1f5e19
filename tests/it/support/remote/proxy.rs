//! Proxies: one that cuts a connection after so many bytes of answers, one that counts bytes, and one for the web that
//! wants a password.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Listens for as long as the test runs.
pub struct Cutter {
    pub port: u16,
}

impl Cutter {
    /// In front of a port, closing each connection after `most` bytes came back.
    pub fn start(to: u16, most: usize) -> Cutter {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        std::thread::spawn(move || {
            for asked in listener.incoming().map_while(Result::ok) {
                if let Ok(answers) = TcpStream::connect(("127.0.0.1", to)) {
                    pass(asked, answers, most);
                }
            }
        });
        Cutter { port }
    }
}

/// Counts the bytes that go to a port and come back.
pub struct ByteCounter {
    pub port: u16,
    bytes: Arc<AtomicUsize>,
}

impl ByteCounter {
    pub fn start(to: u16) -> ByteCounter {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("an address").port();
        let bytes = Arc::new(AtomicUsize::new(0));
        let counted = bytes.clone();
        std::thread::spawn(move || {
            for asked in listener.incoming().map_while(Result::ok) {
                let Ok(answers) = TcpStream::connect(("127.0.0.1", to)) else { continue };
                for (from, to) in [(&asked, &answers), (&answers, &asked)] {
                    let ends = (from.try_clone().expect("a clone"), to.try_clone().expect("a clone"));
                    let counted = counted.clone();
                    std::thread::spawn(move || copy_counted(ends, &counted));
                }
            }
        });
        ByteCounter { port, bytes }
    }

    /// The bytes since the last call.
    pub fn take(&self) -> usize {
        self.bytes.swap(0, Ordering::SeqCst)
    }
}

fn copy_counted((mut from, mut to): (TcpStream, TcpStream), counted: &AtomicUsize) {
    let mut part = [0; 4096];
    while let Ok(length @ 1..) = from.read(&mut part) {
        // Counted before it is passed on, so that nothing arrives uncounted.
        counted.fetch_add(length, Ordering::SeqCst);
        if to.write_all(&part[..length]).is_err() {
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Write);
}

fn pass(asked: TcpStream, answers: TcpStream, most: usize) {
    let (mut from, mut to) = (asked.try_clone().expect("a clone"), answers.try_clone().expect("a clone"));
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut from, &mut to);
        let _ = to.shutdown(Shutdown::Write);
    });
    std::thread::spawn(move || {
        let (mut back, mut left, mut part) = (&asked, most, [0; 4096]);
        while left > 0 {
            match (&answers).read(&mut part) {
                Ok(length) if length > 0 => {
                    let length = length.min(left);
                    left -= length;
                    if back.write_all(&part[..length]).is_err() {
                        break;
                    }
                }
                _ => break,
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
                        pass(asked, answers, usize::MAX);
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

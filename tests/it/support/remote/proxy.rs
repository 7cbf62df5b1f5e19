//! A connection that is cut after so many bytes of answers.

use std::io::{Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};

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

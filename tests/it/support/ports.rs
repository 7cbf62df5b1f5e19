//! Ports for servers that are told theirs.

use std::net::TcpListener;
use std::sync::atomic::{AtomicU32, Ordering};

/// The ports below those that Linux gives to connections, and to servers that ask for any port. So nobody else takes
/// one of them, neither before its server listens nor while it is stopped.
const FIRST: u32 = 10_000;
const END: u32 = 32_768;

/// Gives each free port once, and those of two test runs in different places.
pub fn free_port() -> u16 {
    static GIVEN: AtomicU32 = AtomicU32::new(0);
    let start = std::process::id().wrapping_mul(499);
    for _ in FIRST..END {
        let next = start.wrapping_add(GIVEN.fetch_add(1, Ordering::Relaxed));
        let port = u16::try_from(FIRST + next % (END - FIRST)).expect("a port");
        if TcpListener::bind(("127.0.0.1", port)).is_ok() {
            return port;
        }
    }
    panic!("all ports from {FIRST} to {END} are taken");
}

//! Retries a request while the server is busy or unreachable.

use std::time::Duration;

use berth_base::backoff::{Backoff, chance};

/// The pauses between two attempts, if the server names none.
pub const PAUSES: Backoff = Backoff::new(Duration::from_secs(1), Duration::from_secs(8));

const TRIES: u32 = 4;
/// The longest pause that a server may ask for. In a CI run, a longer wait would cost more than the message is worth.
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// The next step after a failure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retry {
    /// The failure is final.
    Never,
    Soon,
    /// The server asks for this pause.
    After(Duration),
}

impl Retry {
    /// Returns the retry of a request that a busy server refused, with the pause that it asked for.
    pub fn of_busy(pause: Option<Duration>) -> Retry {
        pause.map_or(Retry::Soon, Retry::After)
    }
}

/// Tries a request several times, as long as its failures are temporary.
pub fn with_retries<T, E>(
    pauses: Backoff,
    attempt: impl Fn() -> Result<T, E>,
    retry: impl Fn(&E) -> Retry,
) -> Result<T, E> {
    let mut failures = 0;
    loop {
        let error = match attempt() {
            Ok(value) => return Ok(value),
            Err(error) => error,
        };
        failures += 1;
        let pause = match retry(&error) {
            Retry::Never => return Err(error),
            Retry::Soon => pauses.jittered(failures, chance()),
            Retry::After(pause) => pause,
        };
        if failures >= TRIES || pause > LONGEST_PAUSE {
            return Err(error);
        }
        std::thread::sleep(pause);
    }
}

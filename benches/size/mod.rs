//! The size that a bench is asked for. `cargo bench --bench X -- quick` answers in under a minute with the ratios that
//! matter; without a word, the sizes are those of docs/performance.md.

// Each bench takes the part it needs.
#![allow(dead_code)]

use std::time::Duration;

use criterion::Criterion;

/// Returns the quick size where it is asked for.
pub fn of<T>(full: T, quick: T) -> T {
    if is_quick() { quick } else { full }
}

pub fn is_quick() -> bool {
    std::env::args().any(|argument| argument == "quick")
}

/// The settings of criterion. `criterion_main!` would read the arguments once more, and take the word for the name of a bench.
pub fn criterion() -> Criterion {
    if is_quick() {
        let (warm_up, measurement) = (Duration::from_millis(100), Duration::from_millis(500));
        return Criterion::default().sample_size(10).warm_up_time(warm_up).measurement_time(measurement);
    }
    Criterion::default().configure_from_args()
}

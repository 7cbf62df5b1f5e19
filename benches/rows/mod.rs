//! One table for all rows of a bench: berth, what it is compared with, their ratio, and the target.

// Each user takes the part it needs.
#![allow(dead_code, clippy::print_stdout)]

use std::time::Duration;

/// A figure of a row, as it is shown.
#[derive(Clone, Copy, Debug)]
pub enum Figure {
    Time(Duration),
    /// In KiB.
    Memory(u64),
}

impl Figure {
    fn number(self) -> f64 {
        match self {
            Figure::Time(time) => time.as_secs_f64(),
            Figure::Memory(kib) => kib as f64,
        }
    }

    fn shown(self) -> String {
        match self {
            Figure::Time(time) => format!("{time:.1?}"),
            Figure::Memory(kib) => format!("{} MiB", kib >> 10),
        }
    }
}

/// The bound that a row must keep.
#[derive(Clone, Copy, Debug)]
pub enum Target {
    None,
    AtMost(f64),
    AtLeast(f64),
}

pub fn heading() {
    println!("{:<34} {:>10} {:>10}  {:<28} {:>8}  target", "row", "berth", "beside", "which is", "ratio");
}

/// Prints a row whose ratio is berth's figure by the one beside it.
pub fn row(name: &str, berth: Figure, beside: Figure, which: &str, target: Target) {
    print(name, berth, beside, which, berth.number() / beside.number(), target);
}

/// Prints a row whose ratio says how many times the peer's figure is berth's.
pub fn times(name: &str, berth: Figure, peer: Figure, which: &str, target: Target) {
    print(name, berth, peer, which, peer.number() / berth.number(), target);
}

fn print(name: &str, berth: Figure, beside: Figure, which: &str, ratio: f64, target: Target) {
    let verdict = match target {
        Target::None => String::new(),
        Target::AtMost(most) => format!("at most {most}: {}", word(ratio <= most)),
        Target::AtLeast(least) => format!("at least {least}: {}", word(ratio >= least)),
    };
    let (berth, beside) = (berth.shown(), beside.shown());
    println!("{name:<34} {berth:>10} {beside:>10}  {which:<28} {ratio:>8.4}  {verdict}");
}

fn word(is_met: bool) -> &'static str {
    if is_met { "met" } else { "missed" }
}

//! Tests through berth's public face: its binary, real Git repositories, the fixtures.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that can not go on fails"
)]

mod caching;
mod cli;
mod conformance;
mod counts;
mod daemon;
#[path = "../../benches/fleet/mod.rs"]
mod fleet;
mod generated;
mod looping;
mod support;
mod tidy;
mod ugly;

//! Tests through berth's public face: its binary, real Git repositories, the fixtures.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that can not go on fails"
)]

mod cli;
mod conformance;
mod daemon;
mod generated;
mod kube_smoke;
mod looping;
mod support;
mod tidy;
mod ugly;

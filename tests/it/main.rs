//! Tests through berth's public face: its binary, real Git repositories, the fixtures.

#![allow(
    clippy::panic,
    clippy::unwrap_used,
    clippy::print_stderr,
    reason = "a test that can not go on fails"
)]

mod cli;
mod conformance;
mod crash;
mod daemon;
mod edges;
mod gate;
mod generated;
mod kube_smoke;
mod lifecycle;
mod looping;
mod replicas;
mod support;
mod tidy;
mod ugly;
mod verify;

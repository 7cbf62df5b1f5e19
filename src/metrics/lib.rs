//! Numbers about a process that keeps running → a page that Prometheus reads, and whether the process is well.
//!
//! Hub and member count by [`meter`]'s metrics; [`health`] says whether they are well; [`server`] answers at an
//! address.

mod health;
pub mod meter;
mod server;

pub use health::ProcessHealth;
pub use server::{address, serve};

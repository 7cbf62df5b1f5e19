//! Numbers about a process that keeps running → a page that Prometheus reads, and whether the process is well.
//!
//! Hub and member count by [`meter`]'s metrics; [`health`] says whether they are well; [`server`] answers at an
//! address. [`otlp`] writes numbers and spans as OpenTelemetry's collectors take them, and sends them there.

mod health;
pub mod meter;
pub mod otlp;
mod server;

pub use health::ProcessHealth;
pub use server::Page;

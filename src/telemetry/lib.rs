//! Metrics of a running process as a page for Prometheus, and the health of the process.
//!
//! Hub and member count by [`meter`]'s metrics; [`health`] records their health; [`server`] serves both. [`otlp`]
//! writes metrics and spans in OpenTelemetry's protocol and sends them to a collector.

mod health;
pub mod meter;
pub mod otlp;
mod server;

pub use health::ProcessHealth;
pub use server::Page;

//! Reports about the fleet from members' statuses: values both ways, nothing read or written.
//!
//! - [`member`]: a cluster's status against its published folder. [`fleet`]: all of them summed up, per cluster
//!   and per workload. [`propagation`]: the same in KubeFed's words. [`describe`]: one placement in its own system's words.

mod describe;
pub mod fleet;
mod member;
mod propagation;

pub use describe::{ReportInputs, describe};
pub use fleet::{FleetReport, summarize};
pub use member::Published;
pub use propagation::Detail;

#[cfg(test)]
mod tests;

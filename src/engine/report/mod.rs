//! Reports about the fleet from members' statuses: values both ways, nothing read or written.
//!
//! - [`fleet`]: statuses against decisions and published folders, summed up per cluster and per workload.
//!   [`propagation`]: the same in KubeFed's words. [`describe`]: one placement in its own system's words.

mod describe;
pub mod fleet;
mod propagation;

pub use describe::{ReportInputs, describe};
pub use fleet::{Detail, FleetReport, Published, summarize};

#[cfg(test)]
mod tests;

//! What members report and what the fleet looks like from it: values both ways, nothing read or written.
//!
//! - [`form`]: `ClusterStatus` as JSON and from a YAML tree. [`fleet`]: statuses against decisions and
//!   published folders, summed up per cluster and per workload. [`propagation`]: the same in KubeFed's words.
//!   [`describe`]: one placement in its own system's words.

mod describe;
pub mod fleet;
pub mod form;
mod propagation;

pub use describe::{Known, describe};
pub use fleet::{Detail, FleetReport, Published, summarize};
pub use form::{from_node, to_json};

/// The apiVersion of berth's own kinds.
pub const API_VERSION: &str = "berth.dev/v1alpha1";

#[cfg(test)]
mod tests;

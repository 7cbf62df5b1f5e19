//! Reports about the fleet from members' statuses: values both ways, nothing read or written.
//!
//! - [`fleet`]: statuses against decisions and published folders, summed up per cluster and per workload.
//! - [`describe`]: one placement, or a staged run, in its own system's words, which its dialect knows.

mod describe;
pub mod fleet;

pub use crate::dialects::Detail;
pub use berth_base::model::Published;
pub use describe::{DescribeInputs, describe, describe_run};
pub use fleet::{ClusterLine, FleetSummary, PlacedLine, SummaryInputs, WorkloadLine};

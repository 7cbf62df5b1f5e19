//! Reports about the fleet from members' statuses: pure functions over values.
//!
//! - [`fleet`]: statuses compared with decisions and published folders, in summary for each cluster and
//!   workload.
//! - [`describe`]: one placement or staged run in its own system's form, from its dialect.

mod describe;
pub mod fleet;

pub use crate::dialects::Detail;
pub use berth_base::model::Published;
pub use describe::{DescribeInputs, describe, describe_run};
pub use fleet::{ClusterLine, CopyLine, CopyState, FleetSummary, PlacedLine, SummaryInputs, WorkloadLine};

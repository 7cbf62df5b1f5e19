//! The refs that hub and members share, and the forms of their commits.
//!
//! - [`refs`]: their names. [`cluster_ref`]: one cluster's folder, from the hub to its member,
//!   and the same for other programs.
//! - [`statuses`]: the members' answers, those sent by POST too. [`trailers`]: the lines of a commit message that
//!   berth reads.
//! - [`file_ref`]: a commit without a parent that is replaced as a whole.

pub mod cluster_ref;
pub mod file_ref;
pub mod refs;
pub mod statuses;
pub mod trailers;

pub use cluster_ref::write_cluster_branch;
pub use cluster_ref::{ClusterRef, read_cluster_ref};
pub use refs::Refs;
pub use statuses::{
    STATUS_FILE, StatusCache, Statuses, list_statuses, read_listed, read_status, read_statuses,
};

//! The member: applies one cluster's folder to it and reports the result.

pub mod cluster_events;
pub mod cluster_lease;
pub mod cluster_writes;
pub mod installer;
pub mod live;
pub mod sync;

#[cfg(test)]
#[path = "../git/testing.rs"]
mod testing;

//! `ClusterResourceOverride` and `ResourceOverride` → [`Override`](berth_base::model::Override)s of workloads.
//!
//! [`read`] takes one document apart, [`bind`] finds the workloads and objects it is for.

mod bind;
mod paths;
mod read;

#[cfg(test)]
mod tests;

pub use bind::{bind, refuse_rivals};
pub use read::{OverrideSpec, read};

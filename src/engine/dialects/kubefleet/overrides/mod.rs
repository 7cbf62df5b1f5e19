//! `ClusterResourceOverride` and `ResourceOverride` → [`Override`](berth_base::model::Override)s of
//! workloads.
//!
//! [`read`] reads one document, [`bind`] finds its workloads and objects.

mod bind;
mod paths;
mod read;

#[cfg(test)]
mod tests;

pub use bind::{bind, refuse_rivals};
pub use read::{OverrideSpec, read};

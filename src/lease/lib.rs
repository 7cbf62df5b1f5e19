//! A lease: of several processes, one works and the others wait.
//!
//! The [`keeper`] takes the lease in a [`LeaseStore`], renews it and releases it at the end. [`turn`] decides whose
//! turn it is, the [`fence`] until when the holder may write. [`holder`] names this process.

pub mod fence;
mod holder;
pub mod keeper;
pub mod turn;

pub use fence::Fence;
pub use keeper::{Lease, LeaseKeeper, LeaseStore, NotHeld};
pub use turn::LeaseSpec;

//! A lease, so that of several processes one works and the others wait.
//!
//! The [`keeper`] takes the lease in a [`LeaseStore`], renews it and lets it go at the end; [`turn`] decides whose turn
//! it is, the [`fence`] until when its holder may write, and [`holder`] names this process.

pub mod fence;
mod holder;
pub mod keeper;
pub mod turn;

pub use fence::Fence;
pub use keeper::{Lease, LeaseKeeper, LeaseStore, NotHeld};
pub use turn::LeaseSpec;

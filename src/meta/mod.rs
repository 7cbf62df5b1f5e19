//! What every dialect reads the same way: Kubernetes' own shapes, metadata and label selectors.

pub mod metadata;
pub mod names;
pub mod selector;

pub use metadata::{Metadata, open};
pub use selector::{label_selector, match_expressions};

#[cfg(test)]
pub mod testing;

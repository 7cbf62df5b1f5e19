//! Kubernetes' own structures, which every dialect reads in the same way: metadata and label selectors.

pub mod metadata;
pub mod names;
pub mod selector;

pub use metadata::{Metadata, SERVER_FIELDS, open};
pub use selector::{label_selector, match_expressions, match_labels, parse_requirements, parse_selector};

#[cfg(test)]
pub(crate) mod testing;

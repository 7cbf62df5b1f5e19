//! The consequences of a change, folded for reading: equal changes once, by the edits that cause them.
//!
//! [`folding`] makes a [`folded`] plan. [`field_changes`] compares two forms of an object, [`risks`] finds
//! dangerous changes, and [`cluster_words`] describes sets of clusters in a few words.

pub mod cluster_words;
pub mod field_changes;
pub mod folded;
pub mod folding;
pub mod risks;

//! The consequences of a change, folded for reading: equal changes once, by the edits that make them.
//!
//! [`folding`] makes a [`folded`] plan. [`field_changes`] compares two forms of an object, [`risks`] reads danger off
//! the changes, and [`cluster_words`] tells sets of clusters in a few words.

pub mod cluster_words;
pub mod field_changes;
pub mod folded;
pub mod folding;
pub mod risks;

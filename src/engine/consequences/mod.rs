//! The consequences of a change, folded for reading: equal changes once, by the edits that cause them.
//!
//! [`folding`] makes a [`folded`] plan, which describes sets of clusters in a few words. [`field_changes`]
//! compares two forms of an object, and [`risks`] finds dangerous changes.

pub mod field_changes;
pub mod folded;
pub mod folding;
pub mod risks;

//! `resourceSelectors` and the objects of the repository → what a placement carries.
//!
//! The repository stands for the hub: [`Selectable`] is what is there, [`selectors`] what is asked for,
//! [`resolve`] brings them together. A selection that KubeFleet refuses as a whole (a reserved
//! namespace, an object selected twice) blocks the placement and names why.

mod hub_fields;
mod hub_only;
mod object_scope;
mod resolve;
mod selectable;
mod selectors;

#[cfg(test)]
mod tests;

pub use resolve::resolve;
pub use selectable::{Item, Selectable};
pub use selectors::{Selectors, group, read};

//! `resourceSelectors` and the objects of the repository → the objects of a placement.
//!
//! The repository stands for the hub: [`Selectable`] holds its objects, [`selectors`] reads the selectors,
//! [`resolve`] brings them together. A selection that KubeFleet refuses as a whole (a reserved namespace, an
//! object selected twice) blocks the placement and names the reason.

mod hub_fields;
mod resolve;
mod selectable;
mod selectors;

#[cfg(test)]
mod tests;

pub use resolve::resolve;
pub use selectable::{Item, Selectable};
pub use selectors::{Reach, ResourceSelector, Selectors, group, read};

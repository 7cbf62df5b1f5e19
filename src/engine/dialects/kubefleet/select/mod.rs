//! `resourceSelectors` and the objects of the repository → the objects of a placement.
//!
//! The repository takes the place of the hub: [`Selectable`] holds its objects, [`selectors`] reads the
//! selectors, [`resolve`] combines them. A selection that KubeFleet refuses as a whole (a reserved namespace,
//! an object selected twice) blocks the placement with the reason.

mod hub_fields;
mod resolve;
mod selectable;
mod selectors;

#[cfg(test)]
mod tests;

pub use resolve::resolve;
pub use selectable::{Item, Selectable};
pub use selectors::{Reach, ResourceSelector, Selectors, group, read};

//! `resourceSelectors` and the objects of the repository → what a placement carries.
//!
//! The repository stands for the hub: [`Stock`] is what is there, [`selectors`] what is asked for,
//! [`resolve`] brings them together. A selection that KubeFleet refuses as a whole (a reserved
//! namespace, an object selected twice) blocks the placement and names why.

mod propagate;
mod resolve;
mod scope;
mod selectors;
mod stock;
mod strip;

#[cfg(test)]
mod tests;

pub use resolve::resolve;
pub use selectors::{Selectors, group, read};
pub use stock::{Item, Stock};

//! The page of a fleet: the published state, the report and the history of publications → the files of a static site.
//!
//! Pure: equal inputs give equal bytes. [`Site::of`] makes everything, and [`Site::changes`] names the files that a
//! folder lacks or no longer needs. `docs/page.md` describes the page for its users.
//!
//! - [`inputs`]: the values that a page is made from. [`form`]: the page's data, as its scripts read it.
//! - [`cell`]: the state of one copy. [`grid`]: all copies, by placement and cluster. [`columns`]: the order of
//!   clusters, and the labels that group them.
//! - [`reasons`]: why placements pick clusters, explained once for each class of equal clusters.
//! - [`attention`]: what differs from the source, one item for each cause.
//! - [`head`], [`placements`], [`clusters`], [`rollouts`], [`publications`], [`change`]: inputs → their forms.
//! - [`text_map`]: the map as text, for a terminal. [`text_rollout`]: a rollout over time as text.
//! - [`block`]: a form ↔ a file named by its content. [`document`]: the first page, readable without scripts.
//! - [`assets`]: the page's own scripts and styles. [`live`]: the page of a server, which follows the fleet.

mod assets;
mod attention;
mod block;
mod cell;
mod change;
mod clusters;
mod columns;
mod document;
pub mod form;
mod grid;
mod head;
pub mod inputs;
mod live;
mod placements;
mod publications;
mod reasons;
mod rollouts;
mod site;
#[cfg(test)]
mod tests;
mod text_map;
mod text_rollout;

pub use block::{Block, BlockFault, fnv1a};
pub use cell::CellState;
pub use form::FORMAT;
pub use inputs::SiteInputs;
pub use site::{Changes, Site, SiteFile};
pub use text_map::{MapRoom, MapRow, TextMap};
pub use text_rollout::{StageLines, TextRollout, TimeLine, TimeMark};

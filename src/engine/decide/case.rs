//! One placement and the inputs of its decision.

use super::cluster_table::{Row, Table};
use super::score::Load;
use berth_base::model::Decision;
use berth_base::model::placement::Policy;

/// The inputs that every step of a decision reads.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub(super) table: &'a Table<'a>,
    pub(super) policy: &'a Policy,
    pub(super) candidates: &'a [Row],
    /// The candidates that pass the filters, if they are known and no trace needs the reasons of the others.
    pub(super) passing: Option<&'a [Row]>,
    pub(super) previous: Option<&'a Decision>,
    /// The rows of the current picks.
    pub(super) current_rows: &'a [Row],
    /// Marks current picks, by row; empty if there are none.
    pub(super) is_current: &'a [bool],
    pub(super) load: &'a Load,
    /// The decision is uncertain: it may not lose a cluster.
    pub(super) is_uncertain: bool,
}

//! A scorer's rule → one number per cluster: one small file per rule.
//!
//! Scores are computed for all clusters that passed the filters at once, because some rules compare clusters.

mod addon;
mod allocatable;
mod among;
mod balance;
mod preferred;
mod steady;

pub(super) use addon::valid;
pub(super) use balance::Load;

use super::cluster_table::{Row, Table};
use berth_base::model::placement::{ScoreRule, Scorer};

/// The inputs of scorers beside the clusters.
pub(super) struct ScoreContext<'a> {
    /// Marks the placement's current clusters, by row; empty without any.
    pub(super) is_current: &'a [bool],
    /// The placement's current rows.
    pub(super) current_rows: &'a [Row],
    pub(super) load: &'a Load,
}

/// Returns one score per row, in the order of the rows.
pub(super) fn score(table: &Table<'_>, scorer: &Scorer, rows: &[Row], around: &ScoreContext<'_>) -> Vec<i64> {
    match &scorer.rule {
        ScoreRule::Steady => steady::score(rows, around.is_current),
        ScoreRule::Balance => balance::score(rows, around.load, around.current_rows),
        ScoreRule::Allocatable(resource) => allocatable::score(rows, &table.resources(resource)),
        ScoreRule::AddOn { resource, score } => addon::score(table, rows, resource, score),
        ScoreRule::Preferred(preferred) => preferred::score(table, rows, preferred),
        ScoreRule::Among(sorter) => among::score(table, rows, sorter),
        // These scores are known only while picks are made.
        ScoreRule::Spread(_) | ScoreRule::Even(_) => vec![0; rows.len()],
    }
}

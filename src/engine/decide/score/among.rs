//! A share of 100, by the place of a measurement between the smallest and largest ones of the compared
//! clusters.

use crate::decide::cluster_table::{Row, Table};
use berth_base::model::placement::Sorter;

/// Scores the clusters. One without the measurement scores 0, and so do all if the measurements are equal.
pub(super) fn score(table: &Table<'_>, rows: &[Row], sorter: &Sorter) -> Vec<i64> {
    let amounts = table.approximations(&sorter.measure);
    let amount = |row: &Row| amounts[*row as usize];
    let known = || rows.iter().filter_map(amount);
    let smallest = known().fold(f64::INFINITY, f64::min);
    let largest = known().fold(f64::NEG_INFINITY, f64::max);
    let share = |row: &Row| match amount(row) {
        Some(amount) if largest > smallest => {
            let part = (amount - smallest) / (largest - smallest);
            let part = if sorter.ascending { 1.0 - part } else { part };
            (100.0 * part).round() as i64
        }
        _ => 0,
    };
    rows.iter().map(share).collect()
}

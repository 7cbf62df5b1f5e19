//! 100 for a currently picked cluster, else 0.

use crate::decide::cluster_table::Row;

pub(super) fn score(rows: &[Row], is_current: &[bool]) -> Vec<i64> {
    let has = |row: &Row| is_current.get(*row as usize).copied().unwrap_or(false);
    rows.iter().map(|row| if has(row) { 100 } else { 0 }).collect()
}

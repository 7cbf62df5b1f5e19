//! An add-on's score, unchanged; 0 if it is missing or expired.

use crate::decide::cluster_table::{Row, Table};
use berth_base::model::cluster::AddOnScore;
use berth_base::model::{Cluster, Timestamp};

pub(super) fn score(table: &Table<'_>, rows: &[Row], resource: &str, name: &str) -> Vec<i64> {
    let named = (resource.to_owned(), name.to_owned());
    let of = |row: &Row| valid(table.cluster(*row), &named, table.now).map_or(0, |score| score.value);
    rows.iter().map(of).collect()
}

/// Returns the score while it is valid, including the last moment of its validity.
pub(in crate::decide) fn valid(
    cluster: &Cluster,
    named: &(String, String),
    now: Timestamp,
) -> Option<AddOnScore> {
    let score = cluster.scores.get(named)?;
    score.valid_until.is_none_or(|until| now <= until).then_some(*score)
}

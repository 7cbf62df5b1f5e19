//! The score that an add-on measured, unchanged; 0 where it is missing or expired.

use crate::decide::cluster_table::{Row, Table};
use berth_base::model::cluster::AddOnScore;
use berth_base::model::{Cluster, Timestamp};

pub(super) fn score(table: &Table<'_>, rows: &[Row], resource: &str, name: &str) -> Vec<i64> {
    let named = (resource.to_owned(), name.to_owned());
    let of = |row: &Row| valid(table.cluster(*row), &named, table.now).map_or(0, |score| score.value);
    rows.iter().map(of).collect()
}

/// The score, while it counts: at the moment itself until which it is valid it still does.
pub(in crate::decide) fn valid(
    cluster: &Cluster,
    named: &(String, String),
    now: Timestamp,
) -> Option<AddOnScore> {
    let score = cluster.scores.get(named)?;
    score.valid_until.is_none_or(|until| now <= until).then_some(*score)
}

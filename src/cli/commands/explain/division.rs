//! The division of replicas in `explain`: each number with its parts.

use serde::Serialize;

use crate::output::results::as_text;
use crate::output::table::table;
use crate::output::ui::Ui;
use berth_base::diag::Pos;
use berth_base::model::Key;
use berth_engine::decide::{ClusterTrace, DivisionTrace, ReplicaTrace, Trace};

/// Describes a division, with a row for each participating cluster. Empty if nothing is divided.
pub(crate) fn text(trace: &Trace, ui: &Ui) -> String {
    let Some(division) = &trace.division else { return String::new() };
    let rows: Vec<_> = trace
        .clusters
        .iter()
        .filter_map(|cluster| cluster.replicas.map(|replicas| row(cluster, &replicas)))
        .collect();
    let columns =
        ["CLUSTER", "REPLICAS", "FLOOR", "KEPT", "SHARE", "CEILING", "CAPACITY", "ORDER", "WHAT DECIDED"];
    format!("\n{}\n\n{}", heading(division), table(&columns, &rows, ui))
}

fn heading(division: &DivisionTrace) -> String {
    let how = if division.rebalance { "from scratch" } else { "keeping what runs where it can" };
    format!("divides {} replicas {how}, as {} requires ({})", division.total, division.by, division.origin)
}

fn row(cluster: &ClusterTrace, replicas: &ReplicaTrace) -> Vec<String> {
    let portion = &replicas.portion;
    let number = |number: i64| number.to_string();
    let limit = |limit: Option<i64>| limit.map_or_else(|| "-".to_owned(), number);
    let (share, weight) = match replicas.share {
        None => ("-".to_owned(), None),
        Some(share) => (number(portion.shared), Some(share.weight)),
    };
    let order = match weight {
        None => "-".to_owned(),
        Some(weight) => format!("{} (weight {weight}, hash {:08x})", portion.place, portion.hash),
    };
    let shown = if cluster.picked {
        number(portion.replicas())
    } else {
        format!("{} lost", number(portion.replicas()))
    };
    let kept = match replicas.current {
        Some(current) => format!("{} of {current}", portion.kept),
        None => number(portion.kept),
    };
    let ceiling = replicas.share.and_then(|share| share.ceiling);
    let (ceiling, capacity) = (limit(ceiling), limit(replicas.capacity));
    let (name, floor) = (cluster.cluster.clone(), number(portion.floor));
    vec![name, shown, floor, kept, share, ceiling, capacity, order, reasons(cluster, replicas)]
}

fn reasons(cluster: &ClusterTrace, replicas: &ReplicaTrace) -> String {
    let (portion, mut parts) = (&replicas.portion, Vec::new());
    let Some(share) = replicas.share else {
        return "no entry, and no `*`".to_owned();
    };
    if portion.floor < share.floor {
        parts.push("its minimum could not be reached".to_owned());
    }
    if portion.at_ceiling {
        parts.push("at its maximum".to_owned());
    }
    if portion.at_capacity {
        parts.push("at its capacity".to_owned());
    }
    if portion.overflow != 0 {
        parts.push(format!("{} more than its capacity", portion.overflow));
    }
    if share.weight == 0 {
        parts.push("no weight".to_owned());
    }
    if !cluster.picked {
        parts.push(format!("not placed there: {}", cluster.reason));
    }
    if parts.is_empty() { "by its weight and its place in the order".to_owned() } else { parts.join("; ") }
}

/// The division as a whole, for programs.
#[derive(Debug, Serialize)]
pub(crate) struct DivisionForm<'a> {
    #[serde(serialize_with = "as_text")]
    by: &'a Key,
    #[serde(serialize_with = "as_text")]
    source: &'a Pos,
    total: i32,
    rebalance: bool,
}

impl<'a> DivisionForm<'a> {
    pub(crate) fn of(division: &'a DivisionTrace) -> DivisionForm<'a> {
        let DivisionTrace { by, origin, total, rebalance, .. } = division;
        DivisionForm { by, source: origin, total: *total, rebalance: *rebalance }
    }
}

/// One cluster's number of replicas, for programs.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct ReplicasForm {
    replicas: i64,
    floor: i64,
    kept: i64,
    shared: i64,
    overflow: i64,
    at_ceiling: bool,
    at_capacity: bool,
    place: usize,
    hash: u32,
    current: Option<i64>,
    capacity: Option<i64>,
    preference: Option<PreferenceForm>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct PreferenceForm {
    min_replicas: i64,
    max_replicas: Option<i64>,
    weight: i64,
}

impl ReplicasForm {
    pub(crate) fn of(replicas: &ReplicaTrace) -> ReplicasForm {
        let portion = &replicas.portion;
        ReplicasForm {
            replicas: portion.replicas(),
            floor: portion.floor,
            kept: portion.kept,
            shared: portion.shared,
            overflow: portion.overflow,
            at_ceiling: portion.at_ceiling,
            at_capacity: portion.at_capacity,
            place: portion.place,
            hash: portion.hash,
            current: replicas.current,
            capacity: replicas.capacity,
            preference: replicas.share.map(|share| PreferenceForm {
                min_replicas: share.floor,
                max_replicas: share.ceiling,
                weight: share.weight,
            }),
        }
    }
}

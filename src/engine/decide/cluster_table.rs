//! The clusters as a table: rows by name, columns made once and shared by every placement that reads them.
//!
//! A column holds small numbers in place of texts, so that testing a label of one cluster is one
//! look into a vector. Rows are in name order, so comparing rows compares names.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::iter::Peekable;
use std::sync::Arc;

use super::expression_verdicts::{Column, Ran};
use super::remembered::Remembered;
use berth_base::model::rows_among;
use berth_base::model::selector::{Labels, Measure};
use berth_base::model::{Cluster, Expression, Pick, PickDetails, Quantity, Taint, Timestamp};

/// A cluster's place in the table.
pub(super) type Row = u32;

pub(super) struct Table<'a> {
    clusters: Vec<&'a Cluster>,
    pub(super) now: Timestamp,
    labels: Remembered<String, Arc<Texts>>,
    claims: Remembered<String, Arc<Texts>>,
    amounts: Remembered<Measure, Arc<Vec<Option<Quantity>>>>,
    approximations: Remembered<Measure, Arc<Vec<Option<f64>>>>,
    resources: Remembered<String, Arc<Vec<Option<f64>>>>,
    taints: BTreeMap<TaintName<'a>, u32>,
    taint_names: Vec<TaintName<'a>>,
    /// By row: whether the cluster has any taint. Most clusters have none, and every placement asks.
    tainted: Vec<bool>,
    ran: Ran,
}

type TaintName<'a> = (&'a str, &'a str, &'a str);

/// One text per cluster as a number; 0 for a missing text.
pub(super) struct Texts {
    pub(super) ids: Vec<u32>,
    known: BTreeMap<String, u32>,
}

impl<'a> Table<'a> {
    pub(super) fn new(clusters: &'a [Cow<'_, Cluster>], now: Timestamp) -> Table<'a> {
        let clusters: Vec<&Cluster> = clusters.iter().map(AsRef::as_ref).collect();
        let mut taints = BTreeMap::new();
        let mut taint_names = Vec::new();
        for taint in clusters.iter().flat_map(|cluster| &cluster.taints) {
            taints.entry(taint_name(taint)).or_insert_with(|| {
                taint_names.push(taint_name(taint));
                number(taint_names.len() - 1)
            });
        }
        let tainted = clusters.iter().map(|cluster| !cluster.taints.is_empty()).collect();
        Table {
            clusters,
            now,
            labels: Remembered::default(),
            claims: Remembered::default(),
            amounts: Remembered::default(),
            approximations: Remembered::default(),
            resources: Remembered::default(),
            taints,
            taint_names,
            tainted,
            ran: Ran::default(),
        }
    }

    pub(super) fn len(&self) -> usize {
        self.clusters.len()
    }

    pub(super) fn rows(&self) -> std::ops::Range<Row> {
        0..number(self.clusters.len())
    }

    pub(super) fn cluster(&self, row: Row) -> &'a Cluster {
        self.clusters[row as usize]
    }

    pub(super) fn name(&self, row: Row) -> &'a str {
        &self.cluster(row).name
    }

    /// Returns a pick of the cluster in a row.
    pub(super) fn pick(&self, row: Row, details: impl Into<Arc<PickDetails>>) -> Pick {
        Pick::new(self.cluster(row).name.clone(), details)
    }

    pub(super) fn row(&self, name: &str) -> Option<Row> {
        self.clusters.binary_search_by(|cluster| (*cluster.name).cmp(name)).ok().map(number)
    }

    /// Returns the rows of picked clusters, without clusters that left the fleet.
    pub(super) fn rows_of(&self, picks: &[Pick]) -> Vec<Row> {
        let rows = rows_among(picks, self.len(), |row| &self.clusters[row].name);
        let mut rows: Vec<Row> = rows.flatten().map(number).collect();
        if !rows.is_sorted_by(|a, b| a < b) {
            rows.sort_unstable();
            rows.dedup();
        }
        rows
    }

    pub(super) fn labels(&self, key: &str) -> Arc<Texts> {
        self.labels.get_or_make(key, || self.texts(|cluster| &cluster.labels, key).into())
    }

    pub(super) fn claims(&self, key: &str) -> Arc<Texts> {
        self.claims.get_or_make(key, || self.texts(|cluster| &cluster.claims, key).into())
    }

    pub(super) fn amounts(&self, measure: &Measure) -> Arc<Vec<Option<Quantity>>> {
        let of = |cluster: &&Cluster| cluster.measured(measure).and_then(|text| text.parse().ok());
        self.amounts.get_or_make(measure, || Arc::new(self.clusters.iter().map(of).collect()))
    }

    /// Returns [`Table::amounts`] as floating-point numbers.
    pub(super) fn approximations(&self, measure: &Measure) -> Arc<Vec<Option<f64>>> {
        let of = |cluster: &&Cluster| cluster.measured(measure).and_then(Quantity::approximate);
        self.approximations.get_or_make(measure, || Arc::new(self.clusters.iter().map(of).collect()))
    }

    /// Returns the allocatable amounts of a resource, for clusters that also report its capacity.
    pub(super) fn resources(&self, resource: &str) -> Arc<Vec<Option<f64>>> {
        let of = |cluster: &&Cluster| resource_of(cluster, resource);
        self.resources.get_or_make(resource, || Arc::new(self.clusters.iter().map(of).collect()))
    }

    /// Returns the verdicts of an expression.
    pub(super) fn ran(&self, expression: &Expression) -> Arc<Column> {
        self.ran.column(self.len(), expression)
    }

    pub(super) fn is_tainted(&self, row: Row) -> bool {
        self.tainted[row as usize]
    }

    /// Returns the number of a taint, the same on every cluster.
    pub(super) fn taint(&self, taint: &Taint) -> u32 {
        self.taints.get(&taint_name(taint)).copied().unwrap_or(0)
    }

    /// Returns `key=value:effect` for a taint's number.
    pub(super) fn taint_text(&self, number: u32) -> String {
        let Some((key, value, effect)) = self.taint_names.get(number as usize) else { return String::new() };
        if value.is_empty() { format!("{key}:{effect}") } else { format!("{key}={value}:{effect}") }
    }

    fn texts(&self, of: impl Fn(&'a Cluster) -> &'a Labels, key: &str) -> Texts {
        let mut known: BTreeMap<String, u32> = BTreeMap::new();
        let id = |cluster: &&'a Cluster| {
            of(cluster).get(key).map_or(0, |text| {
                known.get(text).copied().unwrap_or_else(|| {
                    let next = number(known.len() + 1);
                    known.insert(text.clone(), next);
                    next
                })
            })
        };
        let ids = self.clusters.iter().map(id).collect();
        Texts { ids, known }
    }
}

impl Texts {
    pub(super) fn id(&self, text: &str) -> Option<u32> {
        self.known.get(text).copied()
    }

    /// Returns the count of numbers, 0 included.
    pub(super) fn count(&self) -> usize {
        self.known.len() + 1
    }
}

/// Reports whether ascending rows contain this one. Each call must ask for the same row as the call before,
/// or a later one.
pub(super) fn reaches<'r>(rows: &mut Peekable<impl Iterator<Item = &'r Row>>, row: Row) -> bool {
    while rows.next_if(|one| **one < row).is_some() {}
    rows.peek() == Some(&&row)
}

/// Returns a resource's allocatable amount; `None` if either amount is missing.
pub(super) fn resource_of(cluster: &Cluster, resource: &str) -> Option<f64> {
    cluster.capacity.get(resource)?;
    Quantity::approximate(cluster.allocatable.get(resource)?)
}

fn taint_name(taint: &Taint) -> TaintName<'_> {
    (&taint.key, &taint.value, &taint.effect_word)
}

/// Clusters are counted in 32 bits: four thousand million of them do not fit into memory.
pub(super) fn number(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}

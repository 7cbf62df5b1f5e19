//! All copies, by placement and cluster.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::{ClusterStatus, Decision, Key, MemberState, Pick};
use berth_base::parallel;

use crate::cell::{Cell, CellState, Known, held_in};
use crate::columns::Columns;
use crate::inputs::{Members, SiteInputs};

/// The placements in order, each with its copies.
#[derive(Debug)]
pub(crate) struct Grid<'s> {
    pub columns: Columns<'s>,
    pub rows: Vec<Row<'s>>,
    index: BTreeMap<&'s Key, usize>,
}

/// The copies of one placement.
#[derive(Debug)]
pub(crate) struct Row<'s> {
    pub decision: &'s Decision,
    /// The name of the placement in the page: `Kind/namespace/name`.
    pub id: String,
    /// The kind as it stands in the name.
    pub kind: String,
    /// By position of the cluster.
    pub cells: Vec<PlacedCell<'s>>,
}

/// A copy, and the position of its cluster.
#[derive(Debug)]
pub(crate) struct PlacedCell<'s> {
    pub column: usize,
    pub pick: &'s Pick,
    pub cell: Cell,
    /// The number of the publication since which it is as it is. 0 if that is not known.
    pub since: u64,
}

impl<'s> Grid<'s> {
    pub fn of(inputs: &SiteInputs<'s>) -> Grid<'s> {
        let columns = Columns::of(inputs);
        let decisions: Vec<&'s Decision> = inputs.state.decisions.values().collect();
        let kinds = kinds(&decisions);
        let held = held_in(&inputs.state.ledger);
        let clusters: Vec<KnownCluster<'s>> =
            columns.names.iter().map(|name| KnownCluster::of(inputs, name)).collect();
        let rows = parallel::map(&ordered(decisions), |decision| {
            let kind = kinds.get(&decision.key).cloned().unwrap_or_default();
            let id = format!("{kind}/{}", decision.key.full_name());
            let cells = cells(inputs, (&columns, &clusters), decision, held.get(&decision.key));
            Row { decision, id, kind, cells }
        });
        let index = rows.iter().enumerate().map(|(index, row)| (&row.decision.key, index)).collect();
        let mut grid = Grid { columns, rows, index };
        grid.set_since(inputs);
        grid
    }

    /// Finds the publication that changed each copy last.
    fn set_since(&mut self, inputs: &SiteInputs<'_>) {
        let oldest = inputs.history.last();
        for publication in inputs.history {
            // The first publication of all changed everything that no later one did.
            if publication.sequence <= 1
                && oldest.is_some_and(|oldest| oldest.sequence == publication.sequence)
            {
                let first = publication.sequence;
                let all = self.rows.iter_mut().filter(|row| !row.decision.objects.is_empty());
                all.flat_map(|row| &mut row.cells)
                    .filter(|placed| placed.since == 0)
                    .for_each(|placed| placed.since = first);
                break;
            }
            for (key, clusters) in &publication.touched {
                let Some(row) = self.index.get(key) else { continue };
                for cluster in clusters {
                    let Some(column) = self.columns.of_cluster(cluster) else { continue };
                    let cells = &mut self.rows[*row].cells;
                    if let Ok(place) = cells.binary_search_by_key(&column, |placed| placed.column)
                        && cells[place].since == 0
                    {
                        cells[place].since = publication.sequence;
                    }
                }
            }
        }
    }

    /// Returns the position of a placement.
    pub fn row(&self, key: &Key) -> Option<usize> {
        self.index.get(key).copied()
    }

    /// Returns the name of a placement in the page, also of one that is gone.
    pub fn id(&self, key: &Key) -> String {
        let known = self.row(key).map(|row| self.rows[row].id.clone());
        known.unwrap_or_else(|| format!("{}/{}", key.kind, key.full_name()))
    }

    /// Returns the number of cells in each state.
    pub fn totals(&self) -> Vec<usize> {
        let mut totals = vec![0; CellState::ALL.len()];
        let cells = self.rows.iter().flat_map(|row| &row.cells);
        cells.for_each(|placed| totals[placed.cell.state as usize] += 1);
        totals
    }
}

/// Returns the decisions by namespace, name and kind.
fn ordered(mut decisions: Vec<&Decision>) -> Vec<&Decision> {
    decisions.sort_by(|a, b| {
        let order = |decision: &Decision| {
            let Key { kind, namespace, name, group } = &decision.key;
            [namespace.clone(), name.clone(), kind.clone(), group.clone()]
        };
        order(a).cmp(&order(b))
    });
    decisions
}

/// Returns the kind of each placement, with its group where two placements differ in nothing else.
fn kinds(decisions: &[&Decision]) -> BTreeMap<Key, String> {
    let mut named: BTreeMap<(&str, &str, &str), usize> = BTreeMap::new();
    for Decision { key, .. } in decisions {
        *named.entry((&key.kind, &key.namespace, &key.name)).or_default() += 1;
    }
    let kind = |key: &Key| match named.get(&(&*key.kind, &*key.namespace, &*key.name)) {
        Some(2..) => key.kind_and_group(),
        _ => key.kind.to_string(),
    };
    decisions.iter().map(|decision| (decision.key.clone(), kind(&decision.key))).collect()
}

/// The knowledge about a cluster that all its copies share.
#[derive(Clone, Copy, Debug)]
struct KnownCluster<'s> {
    /// The state of its member. `None` without reports.
    member: Option<MemberState>,
    /// `berth status` gives the cluster a word of its own: its member is behind and does not answer.
    is_unanswered: bool,
    status: Option<&'s ClusterStatus>,
    facts: Option<&'s ClusterStatus>,
}

impl<'s> KnownCluster<'s> {
    fn of(inputs: &SiteInputs<'s>, name: &str) -> KnownCluster<'s> {
        let members = inputs.members.as_ref();
        let line = members.and_then(|members| members.summary.clusters().get(name));
        KnownCluster {
            member: line.and_then(|line| MemberState::of_word(line.state)),
            is_unanswered: members.is_some_and(|members| is_unanswered(members, name)),
            status: members.and_then(|members| members.statuses.get(name)).map(|status| &**status),
            facts: inputs.state.facts.get(name).map(|facts| &**facts),
        }
    }
}

/// Judges every copy of a placement.
fn cells<'s>(
    inputs: &SiteInputs<'s>,
    (columns, clusters): (&Columns<'_>, &[KnownCluster<'_>]),
    decision: &'s Decision,
    held: Option<&BTreeSet<&str>>,
) -> Vec<PlacedCell<'s>> {
    let copies = inputs.members.map(|members| members.summary.copies(&decision.key)).unwrap_or_default();
    let rollout = inputs.rollout(&decision.key);
    let steps = rollout.map(|rollout| rollout.clusters.as_slice()).unwrap_or_default();
    let releases = inputs.state.releases.get(&decision.key).map(|releases| &**releases);
    let positions = columns.of_picks(&decision.picks);
    let cell = |(index, pick): (usize, &'s Pick)| {
        let column = positions[index]?;
        let cluster = &clusters[column];
        // Copies and steps of a rollout stand in the order of the picks.
        let known = Known {
            decision,
            reported: copies.get(index).map(|copy| (copy, cluster.member)),
            is_unanswered: cluster.is_unanswered,
            status: cluster.status,
            facts: cluster.facts,
            releases,
            rollout: steps.get(index),
            held,
        };
        Some(PlacedCell { column, pick, cell: Cell::of(pick, &known), since: 0 })
    };
    let mut cells: Vec<PlacedCell<'s>> = decision.picks.iter().enumerate().filter_map(cell).collect();
    cells.sort_by_key(|placed| placed.column);
    cells
}

fn is_unanswered(members: &Members<'_>, cluster: &str) -> bool {
    let found = members.lines.binary_search_by(|line| line.name.as_str().cmp(cluster));
    found.is_ok_and(|index| MemberState::of_word(members.lines[index].state).is_none())
}

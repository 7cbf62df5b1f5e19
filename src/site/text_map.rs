//! The map as text of a limited width: rows are placements, columns are clusters by a label. Where there are more than
//! fit, a row is a namespace, and a column several clusters of one group; each cell has its worst state.

use std::collections::{BTreeMap, BTreeSet};

use crate::cell::CellState;
use crate::columns::Columns;
use crate::grid::{Grid, Row};
use crate::inputs::SiteInputs;

/// The room of a map, in characters and lines.
#[derive(Clone, Copy, Debug)]
pub struct MapRoom {
    pub width: usize,
    pub rows: usize,
}

/// The map of a fleet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextMap {
    /// The label that groups the clusters. `None` if no label does.
    pub by: Option<String>,
    /// The groups of clusters: the value of the label, and the number of columns.
    pub groups: Vec<(String, usize)>,
    pub rows: Vec<MapRow>,
    /// The number of copies in each state.
    pub totals: Vec<(CellState, usize)>,
    /// The largest number of clusters in one column.
    pub clusters_in_a_column: usize,
}

/// A placement, or a namespace with all of its placements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapRow {
    pub name: String,
    /// The worst state in each column. `None` if nothing is there.
    pub cells: Vec<Option<CellState>>,
}

/// Clusters with one value of the label, distributed over columns.
struct Group {
    value: String,
    clusters: Vec<usize>,
    columns: usize,
}

impl TextMap {
    /// Makes a map, by the label that groups best or by a given one. Fails with the known labels if no cluster has it.
    pub fn of(inputs: &SiteInputs<'_>, by: Option<&str>, room: MapRoom) -> Result<TextMap, BTreeSet<String>> {
        let grid = Grid::of(inputs);
        let known = || grid.columns.labels.iter().flat_map(|labels| labels.keys().cloned()).collect();
        let by = match by {
            Some(by) if grid.columns.labels.iter().any(|labels| labels.contains_key(by)) => {
                Some(by.to_owned())
            }
            Some(_) => return Err(known()),
            None => grid.columns.keys.first().cloned(),
        };
        let groups = groups(&grid.columns, by.as_deref(), room.width);
        let mut place = vec![0; grid.columns.names.len()];
        let mut first = 0;
        for group in &groups {
            for (index, cluster) in group.clusters.iter().enumerate() {
                place[*cluster] = first + index * group.columns / group.clusters.len();
            }
            first += group.columns;
        }
        let is_short = grid.rows.len() <= room.rows;
        let mut rows: BTreeMap<(String, usize), MapRow> = BTreeMap::new();
        for (index, row) in grid.rows.iter().enumerate() {
            let (key, name) = match is_short {
                true => ((String::new(), index), name_of(row)),
                false => {
                    let namespace = row.decision.key.namespace.to_string();
                    let name =
                        if namespace.is_empty() { "cluster-wide".to_owned() } else { namespace.clone() };
                    ((namespace, 0), name)
                }
            };
            let line = rows.entry(key).or_insert_with(|| MapRow { name, cells: vec![None; first] });
            for placed in &row.cells {
                let cell = &mut line.cells[place[placed.column]];
                *cell = (*cell).max(Some(placed.cell.state));
            }
        }
        let totals = CellState::ALL.into_iter().zip(grid.totals()).filter(|(_, count)| *count > 0).collect();
        let in_a_column = |group: &Group| group.clusters.len().div_ceil(group.columns.max(1));
        Ok(TextMap {
            by,
            clusters_in_a_column: groups.iter().map(in_a_column).max().unwrap_or_default(),
            groups: groups.into_iter().map(|group| (group.value, group.columns)).collect(),
            rows: rows.into_values().collect(),
            totals,
        })
    }
}

fn name_of(row: &Row<'_>) -> String {
    row.decision.key.full_name()
}

/// Groups the clusters by a label, and distributes the width: a space stands between two groups, and each group has at
/// least one column. The last group takes the rest where there are more groups than columns.
fn groups(columns: &Columns<'_>, by: Option<&str>, width: usize) -> Vec<Group> {
    let mut values: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    for (index, labels) in columns.labels.iter().enumerate() {
        let value = by.and_then(|by| labels.get(by)).cloned().unwrap_or_default();
        values.entry(value).or_default().push(index);
    }
    let most = width.div_ceil(2).max(1);
    while values.len() > most {
        let Some((_, rest)) = values.pop_last() else { break };
        if let Some(mut last) = values.last_entry() {
            last.get_mut().extend(rest);
        }
    }
    let room = width.saturating_sub(values.len().saturating_sub(1)).max(values.len());
    let total: usize = values.values().map(Vec::len).sum();
    let share = |clusters: usize| match total <= room {
        true => clusters,
        false => (clusters * room / total).clamp(1, clusters),
    };
    let mut groups: Vec<Group> = values
        .into_iter()
        .map(|(value, clusters)| Group { value, columns: share(clusters.len()), clusters })
        .collect();
    // Small groups got one column each, at the cost of the widest ones.
    while groups.iter().map(|group| group.columns).sum::<usize>() > room {
        let Some(widest) =
            groups.iter_mut().max_by_key(|group| group.columns).filter(|group| group.columns > 1)
        else {
            break;
        };
        widest.columns -= 1;
    }
    groups
}

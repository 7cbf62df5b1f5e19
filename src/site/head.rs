//! The head and the names, for the first view.

use std::collections::BTreeMap;

use berth_base::model::member::silent_after;
use berth_base::model::{ClusterStatus, MemberState, Timestamp};
use berth_engine::report::ClusterLine;

use crate::attention;
use crate::cell::{CellState, shortened};
use crate::document;
use crate::form::{
    Blocks, ChangeTitle, FORMAT, Head, LinkForm, Names, NamespaceCounts, Numbers, ShownForm, runs,
};
use crate::grid::{Grid, Row};
use crate::inputs::{Members, SiteInputs};
use crate::publications;
use crate::rollouts;

/// The number of publications in the head.
const MOST_PUBLICATIONS: usize = 14;

/// Returns the head without the names of files.
pub(crate) fn head(inputs: &SiteInputs<'_>, grid: &Grid<'_>, blocks: Blocks) -> Head {
    let shown = &inputs.shown;
    let mut head = Head {
        format: FORMAT,
        fleet: shortened(inputs.name),
        sentence: String::new(),
        title: String::new(),
        as_of: as_of(inputs),
        has_reports: inputs.members.is_some(),
        has_source: inputs.fleet.is_some(),
        shown: ShownForm {
            sequence: shown.sequence,
            commit: shown.commit.to_owned(),
            source: shown.source.map(str::to_owned),
            subject: shortened(shown.subject),
            published: shown.published.as_second(),
        },
        change: inputs
            .change
            .map(|change| ChangeTitle { title: shortened(&change.title), words: shortened(&change.words) }),
        links: inputs
            .links
            .as_ref()
            .map(|links| LinkForm { file: links.file.clone(), commit: links.commit.clone() }),
        numbers: numbers(inputs, grid),
        totals: grid.totals(),
        clusters: cluster_totals(inputs),
        blocks,
        keys: grid.columns.keys.clone(),
        attention: attention::items(inputs, grid),
        rolling: rollouts::lines(inputs, grid),
        publications: inputs.history.iter().take(MOST_PUBLICATIONS).map(publications::line).collect(),
        from: inputs.history.last().map_or(shown.sequence, |oldest| oldest.sequence),
        namespaces: namespaces(grid),
        stamp: inputs.stamp.clone(),
        files: BTreeMap::new(),
    };
    document::set_sentence(&mut head);
    head
}

/// Returns the names of clusters and placements.
pub(crate) fn names(inputs: &SiteInputs<'_>, grid: &Grid<'_>) -> Names {
    let columns = &grid.columns;
    let labels = columns.keys.iter().map(|key| (key.clone(), columns.groups(key)));
    let kinds = distinct(grid.rows.iter().map(|row| row.kind.as_str()));
    let namespaces = distinct(grid.rows.iter().map(|row| &*row.decision.key.namespace));
    let position = |all: &[String], name: &str| {
        all.binary_search_by(|known| known.as_str().cmp(name)).unwrap_or_default() as u32
    };
    let last = inputs.last_changes();
    let changed_by =
        |row: &Row<'_>| last.get(&row.decision.key).map_or(0, |publication| publication.sequence);
    let rollout = |(index, row): (usize, &Row<'_>)| {
        let rollout = inputs.rollout(&row.decision.key).filter(|rollout| rollouts::is_on_its_way(rollout))?;
        Some((index, rollouts::id(rollout)))
    };
    Names {
        clusters: columns.names.clone(),
        states: runs(columns.names.iter().map(|name| u32::from(cluster_state(inputs, name).number()))),
        labels: labels.collect(),
        placements: grid.rows.iter().map(|row| row.decision.key.name.to_string()).collect(),
        kind_of: grid.rows.iter().map(|row| position(&kinds, &row.kind)).collect(),
        namespace_of: runs(grid.rows.iter().map(|row| position(&namespaces, &row.decision.key.namespace))),
        changed_by: grid.rows.iter().map(changed_by).collect(),
        rollouts: grid.rows.iter().enumerate().filter_map(rollout).collect(),
        kinds,
        namespaces,
    }
}

/// Returns the moment of the newest information: a publication, a report, or the beginning of a silence. Equal inputs
/// give an equal moment, whenever the page is made.
fn as_of(inputs: &SiteInputs<'_>) -> i64 {
    let published = [inputs.shown.moment, inputs.shown.published].map(Timestamp::as_second);
    let (members, now) = (inputs.members.into_iter(), inputs.now.as_second());
    let of_member = |members: Members<'_>| {
        let statuses =
            members.lines.iter().filter_map(|line| Some((line, members.statuses.get(&line.name)?)));
        // A member's clock may be wrong.
        statuses.filter_map(|(line, status)| known_since(line, status)).max().map(|moment| moment.min(now))
    };
    members.filter_map(of_member).chain(published).max().unwrap_or_default()
}

/// Returns the moment of a member's report or, if it is silent, the moment from which it counts as silent.
fn known_since(line: &ClusterLine, status: &ClusterStatus) -> Option<i64> {
    let reported = status.reported?.as_second();
    let is_silent = line.state == MemberState::Silent.word();
    Some(silent_after(status).filter(|_| is_silent).unwrap_or(reported))
}

fn numbers(inputs: &SiteInputs<'_>, grid: &Grid<'_>) -> Numbers {
    let lines = inputs.members.map(|members| members.lines).unwrap_or_default();
    let silent = lines.iter().filter(|line| CellState::of_cluster(line.state) == CellState::Silent);
    let with_objects = grid.rows.iter().filter(|row| !row.decision.objects.is_empty());
    Numbers {
        clusters: grid.columns.names.len(),
        placements: grid.rows.len(),
        copies: with_objects.map(|row| row.cells.len()).sum(),
        silent: silent.count(),
        rolling: inputs.rollouts.iter().filter(|rollout| rollouts::is_on_its_way(rollout)).count(),
        oldest_report: lines.iter().filter_map(|line| line.reported).min().map(Timestamp::as_second),
    }
}

fn cluster_totals(inputs: &SiteInputs<'_>) -> BTreeMap<String, usize> {
    let mut totals = BTreeMap::new();
    for line in inputs.members.map(|members| members.lines).unwrap_or_default() {
        *totals.entry(line.state.to_owned()).or_default() += 1;
    }
    totals
}

fn cluster_state(inputs: &SiteInputs<'_>, name: &str) -> CellState {
    let Some(members) = inputs.members else { return CellState::Published };
    let found = members.lines.binary_search_by(|line| line.name.as_str().cmp(name)).ok();
    let word = found.map_or(MemberState::NeverReported.word(), |index| members.lines[index].state);
    CellState::of_cluster(word)
}

fn distinct<'n>(names: impl Iterator<Item = &'n str>) -> Vec<String> {
    let mut found: Vec<String> = names.map(str::to_owned).collect();
    found.sort();
    found.dedup();
    found
}

/// Counts the copies of each namespace, by state.
fn namespaces(grid: &Grid<'_>) -> Vec<NamespaceCounts> {
    let mut counts: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for row in &grid.rows {
        let namespace = &*row.decision.key.namespace;
        let states = counts.entry(namespace).or_insert_with(|| vec![0; CellState::ALL.len()]);
        row.cells.iter().for_each(|placed| states[placed.cell.state as usize] += 1);
    }
    counts.into_iter().map(|(name, states)| (name.to_owned(), states)).collect()
}

//! Why placements pick clusters, and why not.
//!
//! Clusters with equal labels, taints and facts get equal verdicts from most policies. Such policies are explained over
//! one cluster of each class. A policy that ranks clusters, or reads their names or measurements, is explained over all.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::{Mutex, PoisonError};

use berth_base::model::placement::{Filter, Rule, Selection};
use berth_base::model::shared::ByAllocation;
use berth_base::model::{Cluster, ClusterStatus, Decision, Fleet, Key, Placement, Policy, Source};
use berth_base::text::some_of;
use berth_engine::decide::{self, ClusterTrace, Stage, Trace, TraceStep};
use berth_engine::pipeline;

use crate::cell::shortened;
use crate::columns::Columns;
use crate::form::{FunnelStep, Runs, ScoredCluster, ScorerForm, extend_run, runs};
use crate::grid::Row;
use crate::inputs::SiteInputs;

/// The number of clusters that are listed after the picked ones.
const NEXT_IN_LINE: usize = 12;

/// The number of ranked clusters.
const MOST_SCORED: usize = 300;

/// The number of names in the words of a rule.
const MOST_NAMED: usize = 5;

/// Why one placement picks its clusters.
#[derive(Clone, Debug, Default)]
pub(crate) struct Explanation {
    pub rule: String,
    pub funnel: Vec<FunnelStep>,
    pub reasons: Vec<String>,
    pub reason_of: Runs,
    pub scorers: Vec<ScorerForm>,
    pub scored: Vec<ScoredCluster>,
}

/// Classes of equal clusters: a cluster of each, and the class of every cluster.
struct Classes<'s> {
    representatives: Vec<&'s str>,
    of: BTreeMap<&'s str, usize>,
    /// The number of clusters in each class.
    sizes: Vec<usize>,
    /// The class of each column. `None` for a cluster that is not in the fleet.
    of_column: Vec<Option<usize>>,
    /// The columns in stretches of one class, each with its length.
    stretches: Vec<(usize, Option<usize>)>,
}

/// Neighbouring columns whose clusters have one line of a trace.
struct Stretch {
    columns: Range<usize>,
    line: Option<usize>,
}

/// Explains every placement.
pub(crate) fn explain(inputs: &SiteInputs<'_>, columns: &Columns<'_>, rows: &[Row<'_>]) -> Vec<Explanation> {
    let Some(fleet) = inputs.fleet else {
        return rows.iter().map(|row| Explanation::of_record(row.decision, columns)).collect();
    };
    let classes = Classes::of(fleet, inputs, columns);
    let by_class = |row: &&Row<'_>| {
        let placement = fleet.placements.get(&row.decision.key);
        placement.is_some_and(|placement| reads_classes(placement))
            && classes.are_uniform(row.decision, columns)
    };
    let (alike, single): (Vec<&Row<'_>>, Vec<&Row<'_>>) = rows.iter().partition(by_class);
    let (alike, model_of) = models(fleet, &alike);
    let found: Mutex<BTreeMap<Key, Explanation>> = Mutex::default();
    let reduced = classes.reduced(fleet, &alike);
    let statuses = pipeline::with_first_seen(inputs.state, &inputs.state.facts);
    let decisions = &inputs.state.decisions;
    for (rows, fleet, classes) in [(alike, &reduced, Some(&classes)), (single, fleet, None)] {
        let add = |trace: Trace| {
            let Some(decision) = decisions.get(&trace.key) else { return };
            let explanation = Explaining { fleet, columns, decision, classes }.explanation(&trace);
            found.lock().unwrap_or_else(PoisonError::into_inner).insert(trace.key, explanation);
        };
        // A pass decides all placements, for whichever of them is traced.
        if rows.is_empty() {
            continue;
        }
        let keys = rows.iter().map(|row| &row.decision.key);
        decide::explain_each((fleet, decisions, &statuses), inputs.shown.moment, keys, &add);
    }
    let found = found.into_inner().unwrap_or_else(PoisonError::into_inner);
    let of_row = |row: &Row<'_>| {
        let key = &row.decision.key;
        let traced = found.get(*model_of.get(key).unwrap_or(&key)).cloned();
        traced.unwrap_or_else(|| Explanation::of_record(row.decision, columns))
    };
    rows.iter().map(of_row).collect()
}

/// Finds the placements with one policy and one list of picks, which have one explanation. Returns the first row of each,
/// and its placement for the others.
fn models<'r, 's>(fleet: &Fleet, rows: &[&'r Row<'s>]) -> (Vec<&'r Row<'s>>, BTreeMap<&'s Key, &'s Key>) {
    let mut known: BTreeMap<_, &Row<'_>> = BTreeMap::new();
    let (mut first, mut model_of) = (Vec::new(), BTreeMap::new());
    let policy = |row: &Row<'_>| fleet.placements.get(&row.decision.key).and_then(|one| one.own_policy());
    for row in rows {
        let text = policy(row).map(|policy| policy.text.bytes());
        let filters =
            policy(row).into_iter().flat_map(|policy| policy.candidates.iter().chain(&policy.filters));
        let required_by: Vec<Option<&Key>> = filters.map(|filter| filter.by.as_ref()).collect();
        let model = *known.entry((ByAllocation(&row.decision.picks), text, required_by)).or_insert(row);
        if model.decision.key != row.decision.key && policy(model) == policy(row) {
            model_of.insert(&row.decision.key, &model.decision.key);
        } else {
            first.push(*row);
        }
    }
    (first, model_of)
}

/// Reports whether a policy's verdict on a cluster depends on nothing but the cluster's class.
fn reads_classes(placement: &Placement) -> bool {
    let Source::Own(policy) = &placement.source else { return false };
    let reads_more = |filter: &Filter| match &filter.rule {
        Rule::Named(_) | Rule::Reachable(_) | Rule::Nowhere(_) => true,
        Rule::AnyOf(terms) => {
            terms.iter().any(|term| !term.expressions.is_empty() || !term.properties.is_empty())
        }
        _ => false,
    };
    policy.selection == Selection::All
        && policy.scorers.is_empty()
        && policy.division.is_none()
        && policy.blocked.is_none()
        && !policy.candidates.iter().chain(&policy.filters).any(reads_more)
}

impl<'s> Classes<'s> {
    fn of(fleet: &'s Fleet, inputs: &SiteInputs<'_>, columns: &Columns<'_>) -> Classes<'s> {
        let mut known: BTreeMap<String, usize> = BTreeMap::new();
        let (mut representatives, mut of, mut sizes) = (Vec::new(), BTreeMap::new(), Vec::new());
        for (name, cluster) in &fleet.clusters {
            let facts = inputs.state.facts.get(name).map(|facts| &**facts);
            let index = *known.entry(class(cluster, facts)).or_insert(representatives.len());
            if index == representatives.len() {
                representatives.push(name.as_str());
                sizes.push(0);
            }
            sizes[index] += 1;
            of.insert(name.as_str(), index);
        }
        let of_column: Vec<_> = columns.names.iter().map(|name| of.get(name.as_str()).copied()).collect();
        let stretches = of_column.chunk_by(|a, b| a == b).map(|alike| (alike.len(), alike[0])).collect();
        Classes { representatives, of, sizes, of_column, stretches }
    }

    /// Returns the fleet with one cluster of each class, and the placements of these rows.
    fn reduced(&self, fleet: &Fleet, rows: &[&Row<'_>]) -> Fleet {
        let mut reduced = fleet.clone();
        let kept = |name: &&str| Some(((*name).to_owned(), fleet.clusters.get(*name)?.clone()));
        reduced.clusters = self.representatives.iter().filter_map(kept).collect();
        let keys = rows.iter().map(|row| &row.decision.key);
        let placement = |key: &Key| Some((key.clone(), fleet.placements.get(key)?.clone()));
        reduced.placements = keys.filter_map(placement).collect();
        reduced
    }

    /// Reports whether a decision picks all clusters of a class or none. A pick that only stays splits its class.
    fn are_uniform(&self, decision: &Decision, columns: &Columns<'_>) -> bool {
        let mut picked = vec![0; self.sizes.len()];
        let positions = columns.of_picks(&decision.picks);
        for (pick, column) in decision.picks.iter().zip(&*positions) {
            let class = column.filter(|_| !pick.leaving).and_then(|column| self.of_column[column]);
            class.into_iter().for_each(|class| picked[class] += 1);
        }
        picked.iter().zip(&self.sizes).all(|(count, size)| [0, *size].contains(count))
    }
}

/// Writes what policies of classes read of a cluster: everything but names, places, measurements, scores, and the fields
/// that only expressions read.
fn class(cluster: &Cluster, facts: Option<&ClusterStatus>) -> String {
    let shared = Cluster {
        name: "".into(),
        origins: Vec::new(),
        properties: BTreeMap::new(),
        capacity: BTreeMap::new(),
        allocatable: BTreeMap::new(),
        available: BTreeMap::new(),
        scores: BTreeMap::new(),
        details: BTreeMap::new(),
        ..cluster.clone()
    };
    let facts = facts.map(|facts| ClusterStatus {
        cluster: String::new(),
        reported: None,
        next_due: None,
        applied: None,
        properties: BTreeMap::new(),
        scores: BTreeMap::new(),
        copies: BTreeMap::new(),
        ..facts.clone()
    });
    format!("{shared:?} {facts:?}")
}

/// The inputs of an explanation.
struct Explaining<'c> {
    fleet: &'c Fleet,
    columns: &'c Columns<'c>,
    decision: &'c Decision,
    /// Set if the trace has only one cluster of each class.
    classes: Option<&'c Classes<'c>>,
}

impl Explaining<'_> {
    /// Returns the columns with the line of each cluster, or of its class, as its index in the trace.
    fn stretches(&self, trace: &Trace) -> Vec<Stretch> {
        let by_place = |place: &dyn Fn(&str) -> Option<usize>, count: usize| {
            let mut lines: Vec<Option<usize>> = vec![None; count];
            for (line, traced) in trace.clusters.iter().enumerate() {
                if let Some(index) = place(&traced.cluster) {
                    lines[index] = Some(line);
                }
            }
            lines
        };
        let Some(classes) = self.classes else {
            let lines = by_place(&|name| self.columns.of_cluster(name), self.columns.names.len());
            let stretch = |(column, line)| Stretch { columns: column..column + 1, line };
            return lines.into_iter().enumerate().map(stretch).collect();
        };
        let lines = by_place(&|name| classes.of.get(name).copied(), classes.sizes.len());
        let mut start = 0;
        let stretch = |(length, class): &(usize, Option<usize>)| {
            let columns = start..start + length;
            start = columns.end;
            Stretch { columns, line: class.and_then(|class| lines[class]) }
        };
        classes.stretches.iter().map(stretch).collect()
    }

    /// Returns the reason of each column's cluster, if it is picked.
    fn picked(&self) -> Vec<Option<&str>> {
        let mut picked = vec![None; self.columns.names.len()];
        let positions = self.columns.of_picks(&self.decision.picks);
        for (pick, column) in self.decision.picks.iter().zip(&*positions) {
            if let Some(column) = column.filter(|_| !pick.leaving) {
                picked[column] = Some(pick.reason.as_str());
            }
        }
        picked
    }

    fn explanation(&self, trace: &Trace) -> Explanation {
        let stretches = self.stretches(trace);
        let picked = self.picked();
        let (rules, stopped_at) = rules(&trace.clusters);
        let mut table = Reasons::default();
        let mut reason_of = Runs::new();
        // For each rule, the clusters that it drops by their reason. The last rule is the selection.
        let mut dropped: Vec<BTreeMap<u32, usize>> = vec![BTreeMap::new(); rules.len() + 1];
        for Stretch { columns, line } in &stretches {
            let reason = line.map(|line| trace.clusters[line].reason.as_str());
            let reason = reason.unwrap_or("the cluster is not in the inventory");
            for alike in picked[columns.clone()].chunk_by(|a, b| a == b) {
                let index = table.index(alike[0].unwrap_or(reason));
                extend_run(&mut reason_of, alike.len() as u32, index);
                if let Some(line) = line.filter(|_| alike[0].is_none()) {
                    *dropped[stopped_at[line]].entry(index).or_default() += alike.len();
                }
            }
        }
        let known = stretches.iter().filter(|stretch| stretch.line.is_some());
        let known = known.map(|stretch| stretch.columns.len()).sum();
        let placement = self.fleet.placements.get(&self.decision.key).map(|placement| &**placement);
        let funnel = funnel(rules, dropped, known, placement);
        let (scorers, scored) = scores(&stretches, trace, self.decision);
        let rule = placement.map(rule_in_words).unwrap_or_default();
        Explanation { rule, funnel, reasons: table.texts, reason_of, scorers, scored }
    }
}

impl Explanation {
    /// Explains a decision by its own record: the reasons of the picked clusters.
    fn of_record(decision: &Decision, columns: &Columns<'_>) -> Explanation {
        let mut table = Reasons::default();
        let reason = |name: &String| decision.pick(name).map(|pick| pick.reason.as_str());
        let reasons =
            columns.names.iter().map(|name| reason(name).unwrap_or("the placement does not pick it"));
        let reason_of = runs(reasons.map(|reason| table.index(reason)));
        Explanation { reasons: table.texts, reason_of, ..Explanation::default() }
    }
}

/// Texts, each once.
#[derive(Default)]
struct Reasons {
    texts: Vec<String>,
    index: BTreeMap<String, u32>,
}

impl Reasons {
    fn index(&mut self, text: &str) -> u32 {
        if let Some(index) = self.index.get(text) {
            return *index;
        }
        let index = self.texts.len() as u32;
        self.texts.push(shortened(text));
        self.index.insert(text.to_owned(), index);
        index
    }
}

fn steps(line: &ClusterTrace) -> impl Iterator<Item = &TraceStep> {
    line.steps.iter().filter(|step| step.stage != Stage::Stay)
}

/// Returns the rules that clusters go through, and for each line the index of the rule that stops its cluster: the number
/// of rules if none does.
fn rules(lines: &[ClusterTrace]) -> (Vec<&TraceStep>, Vec<usize>) {
    let longest = lines.iter().max_by_key(|line| steps(line).count());
    let rules: Vec<&TraceStep> = longest.into_iter().flat_map(steps).collect();
    let stopped_at = |line| steps(line).position(|step| !step.passed).unwrap_or(rules.len()).min(rules.len());
    let stopped_at = lines.iter().map(stopped_at).collect();
    (rules, stopped_at)
}

/// Returns the number of clusters that each rule leaves, in the order of the rules. `dropped` counts for each rule the
/// clusters that it drops, by reason; `all` is the number of clusters.
fn funnel(
    rules: Vec<&TraceStep>,
    dropped: Vec<BTreeMap<u32, usize>>,
    all: usize,
    placement: Option<&Placement>,
) -> Vec<FunnelStep> {
    let mut left = all;
    let named = rules.into_iter().map(|step| {
        let rule = if step.rule.is_empty() { "any labels" } else { &step.rule };
        (rule.to_owned(), step.by.as_ref().map(ToString::to_string))
    });
    let last = (placement.map(rule_in_words).unwrap_or_default(), None);
    let steps = named.chain([last]).zip(dropped).map(|((rule, by), dropped)| {
        left -= dropped.values().sum::<usize>();
        FunnelStep { rule, by, left, dropped: dropped.into_iter().collect() }
    });
    let mut steps: Vec<FunnelStep> = steps.collect();
    // The selection is a rule only if it drops a cluster.
    steps.pop_if(|step| step.dropped.is_empty());
    steps
}

/// Returns the scorers, and the picked clusters with those that follow them, by rank.
fn scores(
    stretches: &[Stretch],
    trace: &Trace,
    decision: &Decision,
) -> (Vec<ScorerForm>, Vec<ScoredCluster>) {
    let mut scored = Vec::new();
    let mut scorers = Vec::new();
    if trace.clusters.iter().all(|line| line.scores.is_empty()) {
        return (scorers, scored);
    }
    // A placement with scores has a line for each cluster.
    for Stretch { columns, line } in stretches {
        let cluster = columns.start;
        let line = line.map(|line| &trace.clusters[line]);
        let Some((line, rank)) = line.and_then(|line| Some((line, line.rank?))) else { continue };
        if line.scores.is_empty() {
            continue;
        }
        if scorers.is_empty() {
            let form = |part: &decide::ScorePart| ScorerForm { name: part.name.clone(), weight: part.weight };
            scorers = line.scores.iter().map(form).collect();
        }
        let scores = line.scores.iter().map(|part| part.score).collect();
        scored.push(ScoredCluster { cluster, rank, scores });
    }
    scored.sort_by_key(|cluster| cluster.rank);
    scored.truncate((decision.picks.len() + NEXT_IN_LINE).min(MOST_SCORED));
    (scorers, scored)
}

/// Describes what a placement picks.
fn rule_in_words(placement: &Placement) -> String {
    match &placement.source {
        Source::Follows(follow) => {
            let names = follow.placements.iter().map(|placement| placement.describe());
            format!("the clusters of {}", some_of(names, MOST_NAMED))
        }
        Source::Own(policy) => selection_in_words(policy),
    }
}

fn selection_in_words(policy: &Policy) -> String {
    match &policy.selection {
        Selection::All => "every cluster that passes".to_owned(),
        Selection::First(count) => format!("the best {count}"),
        Selection::Exactly(names) => format!("by name: {}", some_of(names, MOST_NAMED)),
        Selection::InTurn(choices) => {
            let names = choices.iter().map(|choice| &choice.name);
            format!("one choice after the other: {}", some_of(names, MOST_NAMED))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn measurements_split_no_class_and_labels_do() {
        let cluster = |free: &str, region: &str| Cluster {
            name: free.into(),
            properties: BTreeMap::from([("nodes".to_owned(), free.to_owned())]),
            available: BTreeMap::from([("cpu".to_owned(), free.to_owned())]),
            labels: BTreeMap::from([("region".to_owned(), region.to_owned())]),
            ..Cluster::default()
        };
        let facts = |free: &str| ClusterStatus {
            cluster: free.to_owned(),
            properties: BTreeMap::from([("nodes".to_owned(), free.to_owned())]),
            ..ClusterStatus::default()
        };
        let of = |free: &str, region: &str| class(&cluster(free, region), Some(&facts(free)));
        assert_eq!(of("1", "north"), of("2", "north"));
        assert_ne!(of("1", "north"), of("1", "south"));
        let silent = ClusterStatus { heard: true, ..facts("1") };
        assert_ne!(of("1", "north"), class(&cluster("1", "north"), Some(&silent)));
    }
}

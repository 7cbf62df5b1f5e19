//! The reasons for picking each cluster or not, step by step, as data for `explain`.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster_table::{Row, Table};
use super::divide::Divided;
use super::divide::planner::{Contender, Portion};
use super::filter::{Checked, Code};
use super::findings::Recorder;
use berth_base::diag::Pos;
use berth_base::model::placement::{Filter, Policy, ScoreRule, Share};
use berth_base::model::{Condition, Decision, Group, Key};

/// The steps that led to one placement's decision.
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    pub key: Key,
    pub origin: Pos,
    /// The decision is sticky. The scores here are today's; the decision keeps those it was made with.
    pub sticky: bool,
    pub condition: Option<Condition>,
    /// The division of replicas among the clusters, if the policy divides any.
    pub division: Option<DivisionTrace>,
    /// Ascending by name.
    pub clusters: Vec<ClusterTrace>,
}

/// The number of replicas to divide, and the preference that sets it.
#[derive(Clone, Debug, PartialEq)]
pub struct DivisionTrace {
    pub by: Key,
    pub origin: Pos,
    pub total: i32,
    pub rebalance: bool,
}

/// The steps that led to one cluster's number of replicas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaTrace {
    /// The cluster's share by the policy; `None` if it does not take part.
    pub share: Option<Share>,
    pub current: Option<i64>,
    pub capacity: Option<i64>,
    pub portion: Portion,
}

/// The steps of one cluster.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterTrace {
    pub cluster: String,
    pub picked: bool,
    /// The reason for picking the cluster, or the first step that refused it.
    pub reason: String,
    pub steps: Vec<TraceStep>,
    pub scores: Vec<ScorePart>,
    /// The cluster's place among those that passed, from 1; `None` if no order was needed.
    pub rank: Option<usize>,
    pub group: Option<Group>,
    pub replicas: Option<ReplicaTrace>,
}

/// One rule's verdict on the cluster.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceStep {
    pub stage: Stage,
    /// The rule in words.
    pub rule: String,
    /// The object that requires this, if it is not the placement itself.
    pub by: Option<Key>,
    pub passed: bool,
    /// The cluster's value that the rule refuses; empty if it passed.
    pub why: String,
}

/// The question of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Is the cluster a candidate?
    Candidate,
    /// May it be picked?
    Filter,
    /// Did a followed placement pick it?
    Follow,
    /// The cluster stays picked, whatever the filters say now.
    Stay,
}

impl Stage {
    pub fn word(self) -> &'static str {
        match self {
            Stage::Candidate => "candidate",
            Stage::Filter => "filter",
            Stage::Follow => "follow",
            Stage::Stay => "stay",
        }
    }
}

/// A named part of a cluster's score.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScorePart {
    pub name: String,
    pub weight: i64,
    /// Before the weight.
    pub score: i64,
}

/// The recorder that keeps everything.
#[derive(Default)]
pub(super) struct Steps {
    refused: BTreeMap<Row, (usize, Code)>,
    kept: BTreeSet<Row>,
    left_out: BTreeMap<Row, String>,
    /// The filters' words, and the precise reason of each refused cluster.
    words: Vec<(String, Option<Key>)>,
    reasons: BTreeMap<Row, String>,
    ranks: BTreeMap<Row, (usize, Vec<i64>)>,
    division: Option<DivisionTrace>,
    replicas: BTreeMap<Row, ReplicaTrace>,
}

impl Recorder for Steps {
    fn divided(&mut self, divided: &Divided<'_>) {
        let Divided::Among(division, portions) = divided else { return };
        self.division = Some(DivisionTrace {
            by: division.by.clone(),
            origin: division.origin.clone(),
            total: division.total,
            rebalance: division.rebalance,
        });
        let each = portions.contenders.iter().zip(&portions.portions);
        for (row, (contender, portion)) in portions.rows.iter().zip(each) {
            let Contender { share, current, capacity, .. } = *contender;
            self.replicas.insert(*row, ReplicaTrace { share, current, capacity, portion: *portion });
        }
    }

    fn refused(&mut self, row: Row, filter: usize, code: Code) {
        self.refused.insert(row, (filter, code));
    }

    fn kept(&mut self, row: Row) {
        self.kept.insert(row);
    }

    fn not_chosen_with(&mut self, row: Row, reason: impl FnOnce() -> String) {
        self.left_out.insert(row, reason());
    }

    fn dropped(&mut self, row: Row, reason: &str) {
        self.left_out.insert(row, reason.to_owned());
    }

    fn checks(&mut self, checks: &[Checked<'_>]) {
        self.words = checks.iter().map(|check| (check.words(), check.filter.by.clone())).collect();
        for (row, (filter, code)) in &self.refused {
            if let Some(check) = checks.get(*filter) {
                self.reasons.insert(*row, check.detail(*code, *row));
            }
        }
    }

    fn wants_ranks(&self) -> bool {
        true
    }

    fn ranked(&mut self, passed: &[Row], parts: &[Vec<i64>], order: &[u32]) {
        for (rank, index) in order.iter().enumerate() {
            let index = *index as usize;
            let scores = parts.iter().map(|part| part[index]).collect();
            self.ranks.insert(passed[index], (rank + 1, scores));
        }
    }
}

impl Steps {
    /// Returns the steps of one cluster through the filters; empty for a cluster that did not pass through
    /// them.
    fn filters(&self, row: Row) -> Vec<TraceStep> {
        if self.kept.contains(&row) || (self.left_out.contains_key(&row) && !self.ranks.contains_key(&row)) {
            return Vec::new();
        }
        let failed = self.refused.get(&row).map(|(filter, _)| *filter);
        let until = failed.map_or(self.words.len(), |filter| filter + 1);
        let step = |(index, (rule, by)): (usize, &(String, Option<Key>))| {
            let passed = failed != Some(index);
            let why =
                if passed { String::new() } else { self.reasons.get(&row).cloned().unwrap_or_default() };
            TraceStep { stage: Stage::Filter, rule: rule.clone(), by: by.clone(), passed, why }
        };
        self.words.iter().take(until).enumerate().map(step).collect()
    }

    /// Reports whether the cluster is a current pick that stays without passing the filters.
    pub(super) fn keeps(&self, row: Row) -> bool {
        self.kept.contains(&row)
    }

    pub(super) fn keeps_any(&self) -> bool {
        !self.kept.is_empty()
    }

    /// Returns the trace of a pick that stays. `steps` are those of a decision without current picks.
    pub(super) fn kept_cluster(&self, row: Row, steps: Vec<TraceStep>, policy: &Policy) -> ClusterTrace {
        let mut trace = self.cluster(row, steps, Some(policy));
        trace.steps.push(TraceStep {
            stage: Stage::Stay,
            rule: "picked earlier under the same policy, so it stays".to_owned(),
            by: None,
            passed: true,
            why: String::new(),
        });
        trace
    }

    pub(super) fn division(&self) -> Option<DivisionTrace> {
        self.division.clone()
    }

    /// Returns the whole trace of a considered cluster.
    pub(super) fn cluster(
        &self,
        row: Row,
        mut steps: Vec<TraceStep>,
        policy: Option<&Policy>,
    ) -> ClusterTrace {
        let considered = steps.iter().all(|step| step.passed);
        if considered {
            steps.extend(self.filters(row));
        }
        let refusal = steps.iter().find(|step| !step.passed).map(|step| step.why.clone());
        let reason = self.left_out.get(&row).cloned().or(refusal).unwrap_or_default();
        let (rank, scores) =
            self.ranks.get(&row).map_or((None, &[][..]), |(rank, scores)| (Some(*rank), scores.as_slice()));
        let scorers = policy.map_or(&[][..], |policy| policy.scorers.as_slice());
        let part = |(scorer, score): (&berth_base::model::placement::Scorer, &i64)| ScorePart {
            name: scorer.name.clone(),
            weight: scorer.weight,
            score: *score,
        };
        // A scorer that only orders has no score to show.
        let shown =
            scorers.iter().zip(scores).filter(|(scorer, _)| !matches!(scorer.rule, ScoreRule::Even(_)));
        let scores = shown.map(part).collect();
        let replicas = self.replicas.get(&row).copied();
        ClusterTrace { reason, steps, scores, rank, replicas, ..ClusterTrace::default() }
    }
}

/// Returns the steps through the candidate rules, up to the first that refuses.
pub(super) fn candidate_steps<'a>(
    table: &'a Table<'a>,
    filters: &'a [Filter],
    is_current: &'a [bool],
) -> impl Fn(Row) -> Vec<TraceStep> + 'a {
    let checks: Vec<_> = filters.iter().map(|filter| Checked::new(table, filter, is_current)).collect();
    move |row| {
        let mut steps = Vec::new();
        for check in &checks {
            let refusal = check.refuse(row);
            steps.push(TraceStep {
                stage: Stage::Candidate,
                rule: check.words(),
                by: check.filter.by.clone(),
                passed: refusal.is_none(),
                why: refusal.map(|code| check.detail(code, row)).unwrap_or_default(),
            });
            if refusal.is_some() {
                break;
            }
        }
        steps
    }
}

/// Combines the decision with the steps that led to it.
pub(super) fn finish(
    decision: &Decision,
    origin: Pos,
    sticky: bool,
    table: &Table<'_>,
    cluster: impl Fn(Row) -> ClusterTrace,
) -> Trace {
    let mut clusters: BTreeMap<String, ClusterTrace> = table
        .rows()
        .map(|row| {
            let name = table.name(row).to_owned();
            (name.clone(), ClusterTrace { cluster: name, ..cluster(row) })
        })
        .collect();
    for pick in &decision.picks {
        // A cluster of an uncertain decision may be missing from the inventory.
        let trace = clusters.entry(pick.cluster.to_string()).or_default();
        trace.cluster = pick.cluster.to_string();
        trace.picked = true;
        trace.reason.clone_from(&pick.reason);
        trace.group.clone_from(&pick.group);
    }
    if let Some(condition) = decision.condition.as_ref().filter(|condition| !condition.status) {
        for trace in clusters.values_mut().filter(|trace| !trace.picked && trace.reason.is_empty()) {
            trace.reason.clone_from(&condition.message);
        }
    }
    Trace {
        key: decision.key.clone(),
        origin,
        sticky,
        condition: decision.condition.clone(),
        division: None,
        clusters: clusters.into_values().collect(),
    }
}

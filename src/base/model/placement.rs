//! Placements: the rules that pick clusters, from the dialects for the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::cluster::WorkloadName;
use super::decision::{Condition, Outcome};
use super::key::{Key, PlacementRef};
use super::named::Named;
use super::selector::{Measure, Selector, Term};
use crate::diag::Pos;
use crate::packed::Packed;

/// A placement, or a workload that follows placements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placement {
    pub key: Key,
    pub origin: Pos,
    pub source: Source,
    /// The clusters that the document names, in the order of the file.
    pub named: Vec<NamedCluster>,
}

/// A cluster's name in a placement, and its place.
#[derive(Clone, Debug, PartialEq)]
pub struct NamedCluster {
    pub name: String,
    pub at: Pos,
}

impl Placement {
    pub fn new(key: Key, origin: Pos, source: Source) -> Placement {
        Placement { key, origin, source, named: Vec::new() }
    }

    /// Returns the policy of a placement that follows no other one.
    pub fn own_policy(&self) -> Option<&Policy> {
        match &self.source {
            Source::Own(policy) => Some(policy),
            Source::Follows(_) => None,
        }
    }
}

/// The origin of a placement's clusters.
#[derive(Clone, Debug, PartialEq)]
pub enum Source {
    /// The placement's own policy.
    Own(Box<Policy>),
    /// The union of other placements' decisions, narrowed by filters.
    Follows(Follow),
}

/// Follows other placements' decisions.
#[derive(Clone, Debug, PartialEq)]
pub struct Follow {
    pub placements: Vec<PlacementRef>,
    pub filters: Vec<Filter>,
    pub condition: Wording,
}

/// The rules for picking clusters: candidates → filters → scorers → selection → groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The conditions on a candidate; all must pass.
    pub candidates: Vec<Filter>,
    pub filters: Vec<Filter>,
    pub scorers: Vec<Scorer>,
    pub ranking: Ranking,
    pub selection: Selection,
    pub retention: Retention,
    /// The seconds of silence after which another cluster replaces a picked one.
    pub replace_after: Option<i64>,
    pub groups: Option<Grouping>,
    /// The division of replicas among the picked clusters, if there is a number to divide.
    pub division: Option<Box<Division>>,
    /// Set if nothing can be decided; says what happens to an earlier decision.
    pub blocked: Option<Blocked>,
    /// The condition in the dialect's own words.
    pub condition: Wording,
    /// The policy as written, without the parts that may change freely: decisions with equal texts were made
    /// under the same policy.
    pub text: Packed,
}

impl Default for Source {
    fn default() -> Source {
        Source::Own(Box::new(Policy::BLANK))
    }
}

impl Policy {
    /// Picks every cluster, by name, from scratch each time. Dialects fill in the rest.
    pub const BLANK: Policy = Policy {
        candidates: Vec::new(),
        filters: Vec::new(),
        scorers: Vec::new(),
        ranking: Ranking::SumThenName,
        selection: Selection::All,
        retention: Retention::None,
        replace_after: None,
        groups: None,
        division: None,
        blocked: None,
        condition: SAYS_NOTHING,
        text: Packed::NULL,
    };
}

/// Makes the condition of an outcome, in a dialect's own words.
pub type Wording = Named<fn(&Outcome) -> Option<Condition>>;

/// Makes no condition.
pub const SAYS_NOTHING: Wording = Named { name: "nothing", function: |_| None };

/// Keeps the texts of policies unchanged.
pub const AS_WRITTEN: NormalForm = Named { name: "as written", function: Clone::clone };

/// A filter and the object that requires it.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    pub rule: Rule,
    /// The object that requires the filter, if it is not the placement itself: shown by `explain`.
    pub by: Option<Key>,
}

/// A condition on a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// No cluster passes, for this reason.
    Nowhere(String),
    /// The cluster's name is listed.
    Named(BTreeSet<String>),
    /// The cluster's labels match.
    Labels(Selector),
    /// At least one of the terms matches.
    AnyOf(Vec<Term>),
    /// The cluster is in at least one of these sets.
    InSets(Vec<ClusterSet>),
    /// The cluster is not leaving the fleet.
    NotLeaving,
    /// The cluster's agent joined, is healthy, and reported lately.
    Eligible(AgentLimits),
    /// At least one of these tolerates each taint.
    Tolerates(Vec<Toleration>),
    /// The cluster's namespaces, if it lists them, include this one.
    HoldsNamespace(String),
    /// The cluster reports that it is ready, or has no report.
    Ready,
    /// The placement's folder may place there. A cluster out of reach keeps its copies.
    Reachable(Reach),
}

/// The clusters that a folder may place into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// The folder, as messages name it.
    pub folder: String,
    pub clusters: Arc<BTreeSet<String>>,
}

/// A named set of clusters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterSet {
    pub name: String,
    /// `None` matches no cluster.
    pub members: Option<Selector>,
}

/// The ages, in seconds, at which a report is too old and its cluster counts as gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentLimits {
    pub heartbeat_seconds: i64,
    pub unhealthy_seconds: i64,
}

/// Allows a taint.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Toleration {
    /// `None` matches every key.
    pub key: Option<String>,
    /// `None` matches every value.
    pub value: Option<String>,
    /// The effect's word; `None` matches every effect.
    pub effect: Option<String>,
    /// The time of toleration after the taint was added; `None`: for ever.
    pub seconds: Option<i64>,
}

/// A named part of a score.
#[derive(Clone, Debug, PartialEq)]
pub struct Scorer {
    pub name: String,
    pub weight: i64,
    pub rule: ScoreRule,
}

/// The measure of a scorer.
#[derive(Clone, Debug, PartialEq)]
pub enum ScoreRule {
    /// 100 if the current decision has the cluster, else 0.
    Steady,
    /// Prefers clusters that few decisions picked.
    Balance,
    /// Prefers clusters with much of a resource allocatable.
    Allocatable(String),
    /// A score that an add-on measured, while it is valid.
    AddOn { resource: String, score: String },
    /// The weights of the matching preferred terms, or shares of them.
    Preferred(Vec<Preference>),
    /// Prefers clusters that even out the picks; picks are made one at a time.
    Spread(Vec<SpreadConstraint>),
    /// Picks one at a time, so that the numbers stay even; adds nothing to the score.
    Even(Vec<EvenConstraint>),
    /// A share of 100, by the place of a measurement among the compared clusters.
    Among(Sorter),
}

/// Adds its weight to the score of matching clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preference {
    pub weight: i64,
    pub term: Term,
    /// Adds a share of the weight instead of all of it.
    pub sorter: Option<Sorter>,
}

/// The share that a cluster gets of a weight, by the place of its measurement between the smallest and
/// largest ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sorter {
    pub measure: Measure,
    /// The smallest measurement gets the whole weight.
    pub ascending: bool,
}

/// Keeps the numbers of picks for the values of a label within `max_skew` of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadConstraint {
    pub key: String,
    pub max_skew: i64,
    /// Refuses picks that would break the constraint, instead of scoring them low.
    pub required: bool,
}

/// Limits the picks for each value of a label or claim to `max_skew` more than the value with the fewest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvenConstraint {
    pub key: String,
    pub of_claims: bool,
    pub max_skew: i64,
    /// Refuses picks that would break the constraint, instead of making them last.
    pub required: bool,
}

/// The order of clusters by the parts of their scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ranking {
    /// By the weighted sum, then by name ascending.
    SumThenName,
    /// Part by part in the order listed, then by name descending.
    PartsThenNameDescending,
}

/// The number of ranked clusters to pick.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Selection {
    All,
    /// The first ones, up to this number.
    First(usize),
    /// Only these names; names that do not pass leave the placement unfulfilled.
    Exactly(BTreeSet<String>),
    /// One choice after the other. A cluster that one choice takes is not available to later ones.
    InTurn(Vec<Choice>),
}

impl Selection {
    /// Returns the wanted number of clusters, if there is one.
    pub fn wanted(&self) -> Option<usize> {
        match self {
            Selection::All => None,
            Selection::First(count) => Some(*count),
            Selection::Exactly(names) => Some(names.len()),
            Selection::InTurn(choices) => choices.iter().map(|choice| choice.count).sum(),
        }
    }
}

/// One of several choices of clusters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Choice {
    /// The choice, as messages name it.
    pub name: String,
    /// Terms, one of which must match. Without terms every cluster matches.
    pub terms: Vec<Term>,
    /// `None` takes all remaining clusters.
    pub count: Option<usize>,
    /// With fewer clusters the placement is unfulfilled.
    pub least: usize,
}

/// The parts of the current decision that are reused without a new evaluation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retention {
    /// Nothing: each decision is made from scratch.
    None,
    /// Clusters picked under the same policy stay while they are in the fleet.
    SamePolicy(NormalForm),
}

/// Converts the text of an earlier policy, written by its author or another version of berth, into the form
/// of [`Policy::text`].
pub type NormalForm = Named<fn(&Json) -> Json>;

/// Splits the picked clusters into ordered groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Grouping {
    pub size: GroupSize,
    /// Named groups, taken in this order before the rest.
    pub named: Vec<(String, Term)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GroupSize {
    Count(usize),
    Percent(u32),
}

/// Divides a number of replicas among clusters by floors, ceilings and weights.
///
/// Participants are chosen by their own rules, not by the policy's filters. Without participants, nothing is
/// divided and the policy's filters apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// The object that requires the division, and its place.
    pub by: Key,
    pub origin: Pos,
    /// The workload of the replicas, by the name that members use in their capacity reports.
    pub workload: WorkloadName,
    pub total: i32,
    /// By cluster name, each with the place of its entry.
    pub shares: BTreeMap<String, (Share, Pos)>,
    /// The share of clusters without an entry; `None`: they do not take part.
    pub others: Option<Share>,
    /// Divides from scratch, instead of moving as few current replicas as possible.
    pub rebalance: bool,
    /// Part of the hash that breaks ties.
    pub hash_key: String,
    /// Selects the clusters that share the number.
    pub among: Vec<Filter>,
    /// Selects clusters among these. A cluster that is not selected loses its share.
    pub then: Vec<Filter>,
}

/// The limits of a cluster's share of the replicas.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Share {
    pub floor: i64,
    /// `None`: no ceiling.
    pub ceiling: Option<i64>,
    pub weight: i64,
}

/// Nothing can be decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocked {
    pub condition: Condition,
    /// Keeps an earlier decision, instead of picking no cluster.
    pub keep_earlier: bool,
}

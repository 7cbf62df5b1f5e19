//! Placements: the rules that pick clusters, as dialects hand them to the engine.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value as Json;

use super::cluster::WorkloadName;
use super::decision::{Condition, Outcome};
use super::key::Key;
use super::named::Named;
use super::placement_ref::PlacementRef;
use super::selector::{Measure, Selector, Term};
use crate::diag::Pos;
use crate::packed::Packed;

/// A placement, or a workload that follows placements.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placement {
    pub key: Key,
    pub origin: Pos,
    pub source: Source,
    /// The clusters that its author names, in the order of the file.
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
    /// A policy of its own.
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

/// The choice of clusters: candidates → filters → scorers → selection → groups.
#[derive(Clone, Debug, PartialEq)]
pub struct Policy {
    /// The conditions on a candidate; all must pass.
    pub candidates: Vec<Filter>,
    pub filters: Vec<Filter>,
    pub scorers: Vec<Scorer>,
    pub ranking: Ranking,
    pub selection: Selection,
    pub retention: Retention,
    /// The seconds of silence after which a cluster that would stay gives way to another one.
    pub replace_after: Option<i64>,
    pub groups: Option<Grouping>,
    /// The division of replicas among the picked clusters, where there is a number to divide.
    pub division: Option<Box<Division>>,
    /// Set where nothing can be decided at all, with what then happens to an earlier decision.
    pub blocked: Option<Blocked>,
    /// The condition in the dialect's own words.
    pub condition: Wording,
    /// The policy as its author wrote it, without what may change freely: a decision made under an
    /// equal text was made under the same policy.
    pub text: Packed,
}

impl Default for Source {
    fn default() -> Source {
        Source::Own(Box::new(Policy::BLANK))
    }
}

impl Policy {
    /// Every cluster, by name, decided from scratch each time. A dialect fills in what it knows.
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

/// Tells the condition of an outcome in a dialect's own words.
pub type Wording = Named<fn(&Outcome) -> Option<Condition>>;

/// Tells no condition.
pub const SAYS_NOTHING: Wording = Named { name: "nothing", function: |_| None };

/// Takes the texts of policies as they are.
pub const AS_WRITTEN: NormalForm = Named { name: "as written", function: Clone::clone };

/// A filter and who asked for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Filter {
    pub rule: Rule,
    /// The object that asks, where that is not the placement itself: shown by `explain`.
    pub by: Option<Key>,
}

/// A condition on a cluster.
#[derive(Clone, Debug, PartialEq)]
pub enum Rule {
    /// No cluster passes; says why.
    Nowhere(String),
    /// Its name is listed.
    Named(BTreeSet<String>),
    /// These labels.
    Labels(Selector),
    /// At least one of the terms.
    AnyOf(Vec<Term>),
    /// In at least one of these sets.
    InSets(Vec<ClusterSet>),
    /// Not on its way out of the fleet.
    NotLeaving,
    /// Its agent joined, is healthy, and reported of late.
    Eligible(AgentLimits),
    /// Every taint is tolerated by one of these.
    Tolerates(Vec<Toleration>),
    /// Its namespaces, where the cluster lists them, include this one.
    HoldsNamespace(String),
    /// Reported as ready, or without any report.
    Ready,
    /// The placement's folder may place there. A cluster out of reach keeps the copies it has.
    Reachable(Reach),
}

/// The clusters that a folder may place into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reach {
    /// As messages name it.
    pub folder: String,
    pub clusters: Arc<BTreeSet<String>>,
}

/// A named set of clusters.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClusterSet {
    pub name: String,
    /// `None` holds no cluster.
    pub members: Option<Selector>,
}

/// The ages, in seconds, beyond which a report is too old and its cluster counts as gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct AgentLimits {
    pub heartbeat_seconds: i64,
    pub unhealthy_seconds: i64,
}

/// Lets a taint pass.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Toleration {
    /// `None` fits every key.
    pub key: Option<String>,
    /// `None` fits every value.
    pub value: Option<String>,
    /// The effect's word; `None` fits every effect.
    pub effect: Option<String>,
    /// For how long after the taint was added; `None` for ever.
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
    /// 100 where the current decision has the cluster, else 0.
    Steady,
    /// Prefers clusters that few decisions picked.
    Balance,
    /// Prefers clusters with much of a resource allocatable.
    Allocatable(String),
    /// A score that an add-on measured, while it is valid.
    AddOn { resource: String, score: String },
    /// The weights of the preferred terms that match, or shares of them.
    Preferred(Vec<Preference>),
    /// Prefers clusters that even out the picks, which are then made one at a time.
    Spread(Vec<SpreadConstraint>),
    /// Picks one at a time, so that they stay even; adds nothing to the score.
    Even(Vec<EvenConstraint>),
    /// A share of 100, by where a measurement lies among the clusters that are compared.
    Among(Sorter),
}

/// Adds its weight to the score of clusters that match.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Preference {
    pub weight: i64,
    pub term: Term,
    /// Adds a share of the weight in place of all of it.
    pub sorter: Option<Sorter>,
}

/// The share a cluster gets of a weight, by where its measurement lies between the smallest and largest ones.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sorter {
    pub measure: Measure,
    /// The smallest gets the whole weight.
    pub ascending: bool,
}

/// Keeps the numbers of picks with each value of a label within `max_skew` of each other.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SpreadConstraint {
    pub key: String,
    pub max_skew: i64,
    /// Refuses what would break it, rather than scoring it low.
    pub required: bool,
}

/// Lets no value of a label or claim have more than `max_skew` picks above the one with the fewest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EvenConstraint {
    pub key: String,
    pub of_claims: bool,
    pub max_skew: i64,
    /// Refuses what would break it, rather than picking it last.
    pub required: bool,
}

/// The order that the parts of a score give.
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
    /// The first so many.
    First(usize),
    /// These names and no others; those that do not pass leave the placement unfulfilled.
    Exactly(BTreeSet<String>),
    /// One choice after the other. A cluster that one takes does not count for those after it.
    InTurn(Vec<Choice>),
}

impl Selection {
    /// The number of clusters asked for, where there is one.
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
    /// As messages name it.
    pub name: String,
    /// Terms of which one must match. Without terms every cluster does.
    pub terms: Vec<Term>,
    /// `None` takes all that are left.
    pub count: Option<usize>,
    /// Fewer leave the placement unfulfilled.
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

/// Brings the text of an earlier policy, as its author or another version of berth wrote it, into the form of
/// [`Policy::text`].
pub type NormalForm = Named<fn(&Json) -> Json>;

/// Cuts the picked clusters into ordered groups.
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
/// Those who take part are found by rules of their own, in place of the policy's filters. Where nobody
/// takes part, nothing is divided and the policy's filters stand.
#[derive(Clone, Debug, PartialEq)]
pub struct Division {
    /// The object that asks for it, and where it stands.
    pub by: Key,
    pub origin: Pos,
    /// The workload of the replicas, as members name it when they report their capacity.
    pub workload: WorkloadName,
    pub total: i32,
    /// By cluster name, each with the place of its entry.
    pub shares: BTreeMap<String, (Share, Pos)>,
    /// For clusters without an entry of their own; without this they take no part.
    pub others: Option<Share>,
    /// Divides from scratch, rather than moving as few of the current replicas as it can.
    pub rebalance: bool,
    /// Goes into the hash that breaks ties.
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
    /// `None` for as many as there are.
    pub ceiling: Option<i64>,
    pub weight: i64,
}

/// Nothing can be decided.
#[derive(Clone, Debug, PartialEq)]
pub struct Blocked {
    pub condition: Condition,
    /// Leave an earlier decision as it is, rather than deciding for no cluster.
    pub keep_earlier: bool,
}

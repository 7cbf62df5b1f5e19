//! A policy → the parts of a cluster that it reads: its digest covers them, and the facts contain them.

use std::collections::BTreeSet;

use berth_base::model::cluster::WorkloadName;
use berth_base::model::placement::{
    AgentLimits, Filter, Follow, Placement, Policy, Rule, ScoreRule, Selection, Source, Toleration,
};
use berth_base::model::rollout::Strategy;
use berth_base::model::rollout_policy::PolicyStrategy;
use berth_base::model::selector::{Measure, Term};
use berth_base::model::{Fleet, Selector, View};

/// Reports whether a placement's decision reads how many others pick each cluster.
pub(super) fn reads_load(placement: &Placement) -> bool {
    let mut scorers = placement.own_policy().into_iter().flat_map(|policy| &policy.scorers);
    scorers.any(|scorer| scorer.rule == ScoreRule::Balance)
}

/// A part of a cluster that a rule reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Read<'a> {
    Label(&'a str),
    Claim(&'a str),
    Measure(&'a Measure),
    Leaving,
    Taints,
    /// The currently tolerated taints; read only if a toleration expires.
    Tolerated(&'a [Toleration]),
    Eligible(AgentLimits),
    Namespace(&'a str),
    /// The allocatable amount of a resource whose capacity is also known.
    Resource(&'a str),
    Score(&'a str, &'a str),
    Ready,
    /// The whole view that an expression can read.
    Shown(View),
    /// The number of replicas of a workload that fit into the cluster.
    Room(&'a WorkloadName),
    /// A silence of the member for this many seconds, after which the cluster is replaced.
    Replaced(i64),
}

pub(super) type Reads<'a> = BTreeSet<Read<'a>>;

/// Adds the reads of a policy's filters, scorers and groups.
pub(super) fn of_policy<'a>(policy: &'a Policy, reads: &mut Reads<'a>) {
    of_filters(&policy.filters, reads);
    for scorer in &policy.scorers {
        match &scorer.rule {
            ScoreRule::Steady | ScoreRule::Balance => {}
            ScoreRule::Allocatable(resource) => {
                reads.insert(Read::Resource(resource));
            }
            ScoreRule::Among(sorter) => {
                reads.insert(Read::Measure(&sorter.measure));
            }
            ScoreRule::AddOn { resource, score } => {
                reads.insert(Read::Score(resource, score));
            }
            ScoreRule::Spread(constraints) => {
                reads.extend(constraints.iter().map(|constraint| Read::Label(&constraint.key)));
            }
            ScoreRule::Even(constraints) => {
                reads.extend(constraints.iter().map(|constraint| match constraint.of_claims {
                    true => Read::Claim(&constraint.key),
                    false => Read::Label(&constraint.key),
                }));
            }
            ScoreRule::Preferred(preferred) => {
                for preference in preferred {
                    of_term(&preference.term, reads);
                    reads.extend(preference.sorter.iter().map(|sorter| Read::Measure(&sorter.measure)));
                }
            }
        }
    }
    if let Selection::InTurn(choices) = &policy.selection {
        choices.iter().flat_map(|choice| &choice.terms).for_each(|term| of_term(term, reads));
    }
    if let Some(division) = &policy.division {
        of_filters(&division.among, reads);
        of_filters(&division.then, reads);
        reads.insert(Read::Room(&division.workload));
    }
    reads.extend(policy.replace_after.map(Read::Replaced));
    let named = policy.groups.iter().flat_map(|groups| &groups.named);
    named.for_each(|(_, term)| of_term(term, reads));
}

/// Adds the reads of a placement that follows others, beside the followed decisions.
pub(super) fn of_follow<'a>(follow: &'a Follow, reads: &mut Reads<'a>) {
    of_filters(&follow.filters, reads);
}

/// Adds the labels by which stages and pins of rollouts select clusters.
pub(super) fn of_rollouts<'a>(fleet: &'a Fleet, reads: &mut Reads<'a>) {
    let policies = || fleet.rollout_policies.values();
    let written = policies().filter_map(|policy| match &policy.strategy {
        Some(PolicyStrategy::Written(Strategy::Stages(stages))) => Some(stages),
        _ => None,
    });
    let stages = fleet.stage_strategies.values().map(|strategy| &strategy.stages).chain(written).flatten();
    for stage in stages {
        reads.extend(stage.selector.iter().flat_map(Selector::keys).map(Read::Label));
        reads.extend(stage.sorted_by.as_deref().map(Read::Label));
    }
    let pins = policies().flat_map(|policy| &policy.pins);
    reads.extend(pins.filter_map(|pin| pin.selector.as_ref()).flat_map(Selector::keys).map(Read::Label));
}

/// Adds everything that a placement reads.
pub(super) fn of_placement<'a>(placement: &'a Placement, reads: &mut Reads<'a>) {
    match &placement.source {
        Source::Own(policy) => {
            of_filters(&policy.candidates, reads);
            of_policy(policy, reads);
        }
        Source::Follows(follow) => of_follow(follow, reads),
    }
}

pub(super) fn of_filters<'a>(filters: &'a [Filter], reads: &mut Reads<'a>) {
    for filter in filters {
        match &filter.rule {
            Rule::Nowhere(_) | Rule::Named(_) | Rule::Reachable(_) => {}
            Rule::Labels(selector) => reads.extend(selector.keys().map(Read::Label)),
            Rule::AnyOf(terms) => terms.iter().for_each(|term| of_term(term, reads)),
            Rule::InSets(sets) => {
                let keys = sets.iter().flat_map(|set| &set.members).flat_map(|members| members.keys());
                reads.extend(keys.map(Read::Label));
            }
            Rule::NotLeaving => {
                reads.insert(Read::Leaving);
            }
            Rule::Eligible(limits) => {
                reads.insert(Read::Eligible(*limits));
            }
            Rule::Tolerates(tolerations) => {
                reads.insert(Read::Taints);
                if tolerations.iter().any(|toleration| toleration.seconds.is_some()) {
                    reads.insert(Read::Tolerated(tolerations));
                }
            }
            Rule::HoldsNamespace(namespace) => {
                reads.insert(Read::Namespace(namespace));
            }
            Rule::Ready => {
                reads.insert(Read::Ready);
            }
        }
    }
}

fn of_term<'a>(term: &'a Term, reads: &mut Reads<'a>) {
    reads.extend(term.labels.keys().map(Read::Label));
    reads.extend(term.claims.keys().map(Read::Claim));
    reads.extend(term.properties.iter().map(|one| Read::Measure(&one.measure)));
    reads.extend(term.expressions.iter().map(|one| Read::Shown(one.view)));
}

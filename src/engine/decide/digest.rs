//! The inputs of a placement's decision → its digest, and the next moment at which time alone changes a
//! verdict.
//!
//! The digest covers the policy, clusters by name, and exactly the parts of each cluster that the rules read;
//! never the decisions of other placements. It covers the clusters that the placement has, and those that it
//! could pick: a refused cluster changes nothing. If the decision reports refused clusters, or spreads its
//! picks over all clusters, the digest covers every candidate. Time counts through verdicts only. Each part
//! is hashed once for equal candidates, however many placements read it.
//!
//! A policy → the parts of a cluster that it reads: its digest covers them, and the facts contain them.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::candidates::{Candidates, Open};
use super::cluster_table::{Row, Table, reaches, resource_of};
use super::filter::{eligibility, expiry, flip, is_ready, untolerated};
use super::policy_encoding::{self, Encoder};
use super::remembered::Remembered;
use super::score::valid;
use berth_base::model::cluster::WorkloadName;
use berth_base::model::placement::{
    AgentLimits, Filter, Follow, Placement, Policy, Rule, ScoreRule, Selection, Source, Toleration,
};
use berth_base::model::rollout::Strategy;
use berth_base::model::rollout_policy::PolicyStrategy;
use berth_base::model::selector::{Measure, Term};
use berth_base::model::{Cluster, ClusterView, Digest, Effect, Fleet, Selector, Timestamp};

/// Part of every digest: another text makes all placements be decided again.
const ENGINE: &str = "berth engine 1";

/// Represents all clusters where candidates are not computed yet.
const EVERYBODY: u32 = u32::MAX;

/// The hashes so far, by candidates and by the part read; `None` represents the names.
#[derive(Default)]
pub(super) struct Digests<'f> {
    columns: Remembered<(u32, Option<Read<'f>>), DigestColumn>,
}

#[derive(Clone, Copy)]
struct DigestColumn {
    hash: [u8; 32],
    flips: Option<Timestamp>,
}

/// Reports whether a decision with this many picks depends on clusters that it could not pick.
pub(super) fn covers_all(policy: &Policy, picks: usize) -> bool {
    let is_short = match policy.selection {
        Selection::First(count) => picks < count,
        Selection::All | Selection::Exactly(_) | Selection::InTurn(_) => false,
    };
    let spreads =
        |rule: &ScoreRule| matches!(rule, ScoreRule::Spread(constraints) if !constraints.is_empty());
    picks == 0 || is_short || policy.scorers.iter().any(|scorer| spreads(&scorer.rule))
}

impl<'f> Digests<'f> {
    /// Returns the digest of a decision with these picks.
    pub(super) fn of(&self, table: &Table<'_>, open: &Open, picks: &[Row], policy: &'f Policy) -> Digest {
        let covers_all = covers_all(policy, picks.len());
        let covered = if covers_all { &open.all } else { &open.passing };
        let (mut encoder, reads) = begin(ENGINE, policy);
        encoder.tag(u8::from(covers_all));
        self.columns(&mut encoder, table, covered, &reads);
        let mut rest = covered.rows.iter().peekable();
        for row in picks.iter().filter(|row| !reaches(&mut rest, **row)) {
            let cluster = table.cluster(*row);
            encoder.text(&cluster.name);
            for read in &reads {
                encode_read(&mut encoder, table, *row, cluster, read);
            }
        }
        finish(&encoder)
    }

    /// Returns the first moment at which time alone changes a verdict of a policy on any cluster.
    pub(super) fn flips_of(
        &self,
        table: &Table<'_>,
        candidates: &Candidates,
        policy: &'f Policy,
    ) -> Option<Timestamp> {
        let mut reads = Reads::new();
        of_policy(policy, &mut reads);
        self.earliest(self.flips(table, &policy.candidates), table, || candidates.clone(), reads)
    }

    /// Returns the next moment at which time alone changes a filter's verdict on any cluster.
    pub(super) fn flips(&self, table: &Table<'_>, filters: &'f [Filter]) -> Option<Timestamp> {
        let mut reads = Reads::new();
        of_filters(filters, &mut reads);
        let everybody =
            || Candidates { id: Some(EVERYBODY), rows: table.rows().collect::<Vec<Row>>().into() };
        self.earliest(None, table, everybody, reads)
    }

    fn earliest(
        &self,
        first: Option<Timestamp>,
        table: &Table<'_>,
        candidates: impl Fn() -> Candidates,
        reads: Reads<'f>,
    ) -> Option<Timestamp> {
        let is_timed = |read: &Read<'_>| {
            matches!(read, Read::Tolerated(_) | Read::Eligible(_) | Read::Score(..) | Read::Replaced(_))
        };
        let timed = reads.into_iter().filter(is_timed);
        timed.fold(first, |flips, read| earlier(flips, self.column(table, &candidates(), Some(read)).flips))
    }

    fn columns(&self, encoder: &mut Encoder, table: &Table<'_>, candidates: &Candidates, reads: &Reads<'f>) {
        for read in std::iter::once(None).chain(reads.iter().map(|read| Some(*read))) {
            encoder.bytes.extend_from_slice(&self.column(table, candidates, read).hash);
        }
    }

    fn column(&self, table: &Table<'_>, candidates: &Candidates, read: Option<Read<'f>>) -> DigestColumn {
        let key = candidates.id.map(|id| (id, read));
        if let Some(column) = key.and_then(|key| self.columns.get(&key)) {
            return column;
        }
        let (mut encoder, mut flips) = (Encoder::default(), None);
        encoder.count(candidates.rows.len());
        for row in candidates.rows.iter() {
            let cluster = table.cluster(*row);
            match &read {
                None => encoder.text(&cluster.name),
                Some(read) => flips = earlier(flips, encode_read(&mut encoder, table, *row, cluster, read)),
            }
        }
        let column = DigestColumn { hash: Sha256::digest(&encoder.bytes).into(), flips };
        match key {
            Some(key) => self.columns.keep(key, column),
            None => column,
        }
    }
}

/// Begins a digest with the policy, and returns the parts of clusters that it reads.
fn begin<'f>(engine: &str, policy: &'f Policy) -> (Encoder, Reads<'f>) {
    let mut encoder = Encoder::default();
    encoder.text(engine);
    policy_encoding::policy(&mut encoder, policy);
    let mut reads = Reads::new();
    of_policy(policy, &mut reads);
    (encoder, reads)
}

fn finish(encoder: &Encoder) -> Digest {
    let mut digest = [0; 16];
    digest.copy_from_slice(&Sha256::digest(&encoder.bytes)[..16]);
    Digest(digest)
}

/// Encodes the part that one cluster has, and returns the next moment at which time alone changes it.
fn encode_read(
    encoder: &mut Encoder,
    table: &Table<'_>,
    row: Row,
    cluster: &Cluster,
    read: &Read<'_>,
) -> Option<Timestamp> {
    let mut flips = None;
    match read {
        Read::Label(key) => encoder.maybe(cluster.labels.get(*key), |encoder, text| encoder.text(text)),
        Read::Claim(key) => encoder.maybe(cluster.claims.get(*key), |encoder, text| encoder.text(text)),
        Read::Measure(measure) => {
            let amount = table.amounts(measure)[row as usize];
            encoder.maybe(amount, |encoder, amount| encoder.bytes.extend(amount.nanos().to_le_bytes()));
        }
        Read::Leaving => encoder.tag(u8::from(cluster.leaving)),
        Read::Taints => encoder.all(cluster.taints.iter(), |encoder, taint| {
            [&taint.key, &taint.value, &taint.effect_word].into_iter().for_each(|part| encoder.text(part));
            encoder.tag(match taint.effect {
                Effect::Refuse => 1,
                Effect::RefuseNew => 2,
                Effect::Prefer => 3,
            });
        }),
        Read::Tolerated(tolerations) => {
            let open: Vec<_> = untolerated(cluster, tolerations, table.now).collect();
            encoder.all(cluster.taints.iter(), |encoder, taint| {
                encoder.tag(u8::from(open.iter().any(|one| std::ptr::eq(*one, taint))));
            });
            let ends =
                cluster.taints.iter().filter(|taint| taint.frozen.is_none()).flat_map(|taint| {
                    tolerations.iter().filter_map(move |toleration| expiry(toleration, taint))
                });
            flips = ends.filter(|end| *end > table.now).min();
        }
        Read::Eligible(limits) => {
            let (verdict, until) = eligibility(cluster, *limits, table.now);
            encoder.maybe(verdict, |encoder, code| encoder.number(i64::from(code)));
            flips = until;
        }
        Read::Namespace(namespace) => {
            let holds = cluster.namespaces.as_ref().is_none_or(|listed| listed.contains(*namespace));
            encoder.tag(u8::from(holds));
        }
        Read::Resource(resource) => {
            let amount = resource_of(cluster, resource).map(f64::to_bits);
            encoder.maybe(amount, |encoder, bits| encoder.bytes.extend(bits.to_le_bytes()));
        }
        Read::Score(resource, name) => {
            let score = valid(cluster, &((*resource).to_owned(), (*name).to_owned()), table.now);
            encoder.maybe(score, |encoder, score| encoder.number(score.value));
            flips = score.and_then(|score| score.valid_until).map(flip);
        }
        Read::Ready => encoder.tag(u8::from(is_ready(cluster))),
        // The whole view counts, whatever the expression reads. An expression can read any score, however
        // old.
        Read::Shown(view) => {
            encoder.text(&(view.shown)(cluster).to_string());
            encoder.all(cluster.scores.iter(), |encoder, ((resource, name), score)| {
                encoder.text(resource);
                encoder.text(name);
                encoder.number(score.value);
                encoder.count(score.index);
            });
        }
        Read::Room(workload) => {
            let room = cluster.workloads.get(*workload).and_then(|report| report.capacity);
            encoder.maybe(room, Encoder::number);
        }
        Read::Replaced(seconds) => {
            let end = cluster.silence.and_then(|silence| silence.lasts(*seconds));
            encoder.tag(u8::from(end.is_some_and(|end| end <= table.now)));
            flips = end.filter(|end| *end > table.now);
        }
    }
    flips
}

/// Returns the earlier of two moments.
pub(super) fn earlier(a: Option<Timestamp>, b: Option<Timestamp>) -> Option<Timestamp> {
    a.into_iter().chain(b).min()
}

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
    Shown(ClusterView),
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
fn of_follow<'a>(follow: &'a Follow, reads: &mut Reads<'a>) {
    of_filters(&follow.filters, reads);
}

/// Adds the labels by which stages and pins of rollouts select clusters.
pub(super) fn reads_of_rollouts<'a>(fleet: &'a Fleet, reads: &mut Reads<'a>) {
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
pub(super) fn reads_of_placement<'a>(placement: &'a Placement, reads: &mut Reads<'a>) {
    match &placement.source {
        Source::Own(policy) => {
            of_filters(&policy.candidates, reads);
            of_policy(policy, reads);
        }
        Source::Follows(follow) => of_follow(follow, reads),
    }
}

fn of_filters<'a>(filters: &'a [Filter], reads: &mut Reads<'a>) {
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

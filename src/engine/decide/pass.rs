//! One pass over all placements: first those with a policy of their own, then those that follow others.

use std::collections::{BTreeMap, BTreeSet};

use super::cache::{CacheEntry, DecisionCache};
use super::candidates::CandidateSets;
use super::cluster_table::{Row, Table};
use super::digest::{Digests, earlier};
use super::divide;
use super::followed_placements;
use super::group;
use super::own_policy::{self, Case};
use super::recorder::Counts;
use super::score::Load;
use super::trace::{self, ClusterTrace, Stage, Step, Steps, Trace};
use super::uncertain;
use super::warnings;
use berth_base::diag::Diagnostics;
use berth_base::model::fleet::Doubt;
use berth_base::model::placement::{Follow, Placement, PlacementRef, Policy, Retention, ScoreRule, Source};
use berth_base::model::{Decision, Digest, Fleet, Key, Refused, Shared, Timestamp};

const IN_DOUBT: &str = "kept: a file that it depends on cannot be read";
const UNRESOLVED: &str = "kept: a placement that is followed cannot be found";

/// One pass over all placements: its inputs and its results so far.
pub(super) struct Pass<'f, 't> {
    pub(super) fleet: &'f Fleet,
    previous: &'f BTreeMap<Key, Decision>,
    table: &'t Table<'t>,
    sets: CandidateSets,
    digests: Digests<'f>,
    load: Load,
    /// Some policy looks at the load; otherwise nobody keeps count.
    balances: bool,
    /// The placement to trace.
    watched: Option<&'f Key>,
    pub(super) decisions: BTreeMap<Key, Decision>,
    pub(super) diagnostics: Diagnostics,
    pub(super) decided: usize,
    pub(super) stood: usize,
    pub(super) next_change: Option<Timestamp>,
    pub(super) trace: Option<Trace>,
    /// The cache for the next pass.
    pub(super) settled: DecisionCache,
    /// Placements whose decision was settled before, and stays.
    unmoved: BTreeSet<&'f Key>,
}

impl<'f, 't> Pass<'f, 't> {
    pub(super) fn new(
        fleet: &'f Fleet,
        previous: &'f BTreeMap<Key, Decision>,
        table: &'t Table<'t>,
        settled: DecisionCache,
    ) -> Pass<'f, 't> {
        let policies = fleet.placements.values().filter_map(|placement| own_policy(placement));
        let balances = policies.flat_map(|policy| &policy.scorers).any(|one| one.rule == ScoreRule::Balance);
        Pass {
            fleet,
            previous,
            table,
            sets: CandidateSets::default(),
            digests: Digests::default(),
            load: Load::new(table.len()),
            balances,
            watched: None,
            decisions: BTreeMap::new(),
            diagnostics: Diagnostics::new(),
            decided: 0,
            stood: 0,
            next_change: None,
            trace: None,
            settled,
            unmoved: BTreeSet::new(),
        }
    }

    /// Traces this placement's decision.
    pub(super) fn watch(&mut self, key: &'f Key) {
        self.watched = Some(key);
    }

    /// Decides everything; `memo` is of the same world.
    pub(super) fn all(&mut self, memo: Option<&DecisionCache>) {
        self.keep_vanished();
        if self.balances {
            self.count_load();
        }
        let fleet = self.fleet;
        for placement in fleet.placements.values() {
            if let Source::Own(policy) = &placement.source {
                let settled = memo.and_then(|memo| memo.get(placement, self.table.now));
                match self.previous.get(&placement.key).zip(settled).filter(|(now, settled)| settled.is(now))
                {
                    Some((previous, settled)) => {
                        self.reuse(placement, stand(placement, previous), settled);
                    }
                    None => self.own(placement, policy),
                }
            }
        }
        for placement in fleet.placements.values() {
            if let Source::Follows(follow) = &placement.source {
                let settled = memo.and_then(|memo| memo.get(placement, self.table.now));
                match settled.filter(|settled| self.follows_the_same(follow, &settled.followed)) {
                    Some(settled) => self.reuse(placement, settled.decision.clone(), settled),
                    None => self.follow(placement, follow),
                }
            }
        }
    }

    /// Takes over what was settled.
    fn reuse(&mut self, placement: &'f Placement, decision: Decision, settled: &Shared<CacheEntry>) {
        self.next_change = earlier(self.next_change, settled.flips);
        self.diagnostics.extend(settled.diagnostics.iter().cloned());
        self.stood += 1;
        self.unmoved.insert(&placement.key);
        self.decisions.insert(placement.key.clone(), decision);
        self.settled.settle(settled.clone());
    }

    /// Reports whether the references resolve to the same placements, and their decisions are unchanged.
    fn follows_the_same(&self, follow: &Follow, followed: &[Key]) -> bool {
        follow.placements.len() == followed.len()
            && follow.placements.iter().zip(followed).all(|(wanted, key)| {
                self.unmoved.contains(key)
                    && self.fleet.find(wanted).is_some_and(|placement| placement.key == *key)
            })
    }

    /// Decisions whose placement is gone, but perhaps only because its file cannot be read.
    fn keep_vanished(&mut self) {
        for (key, previous) in self.previous {
            if !self.fleet.placements.contains_key(key)
                && uncertain::may_have_moved(&self.fleet.doubt, previous)
            {
                self.decisions.insert(key.clone(), Decision { digest: None, ..previous.clone() });
            }
        }
    }

    /// Counts the load of current decisions on each cluster. Placements that follow others add no load.
    fn count_load(&mut self) {
        for (key, previous) in self.previous {
            let counts = match self.fleet.placements.get(key) {
                Some(placement) => own_policy(placement).is_some(),
                None => self.decisions.contains_key(key) && previous.policy.is_some(),
            };
            if counts {
                self.load.add(&self.table.rows_of(&previous.picks));
            }
        }
    }

    fn own(&mut self, placement: &'f Shared<Placement>, policy: &'f Policy) {
        let (table, previous) = (self.table, self.previous.get(&placement.key));
        let earlier_rows = previous.map(|previous| table.rows_of(&previous.picks)).unwrap_or_default();
        let in_force = if looks_back(policy) { marks(table, &earlier_rows) } else { Vec::new() };
        let candidates = self.sets.of(table, &policy.candidates, &in_force);
        let (digest, flips) = self.digests.of(table, &candidates, policy);
        self.next_change = earlier(self.next_change, flips);
        let case = Case {
            table,
            policy,
            candidates: &candidates.rows,
            previous,
            earlier: &earlier_rows,
            in_force: &in_force,
            load: &self.load,
            held: previous.is_some_and(|previous| uncertain::applies(&self.fleet.doubt, previous)),
        };
        let standing = previous.filter(|previous| stands(&case, previous, digest));
        let decision = match standing {
            Some(previous) => stand(placement, previous),
            None => decide(&case, placement, digest),
        };
        if self.watched == Some(&placement.key) {
            self.trace = Some(trace_own(&case, placement, &decision, standing.is_some()));
        }
        let mut said = Diagnostics::new();
        divide::warn(&case, placement, &decision, standing.is_none(), &mut said);
        warnings::about_names(placement, policy, table, &mut said);
        warnings::about(placement, &decision, &mut said);
        // What a new division has to say is said once.
        let settled = !case.held && (standing.is_some() || policy.division.is_none());
        match standing {
            Some(_) => self.stood += 1,
            None => self.decided += 1,
        }
        if self.balances && standing.is_none() {
            self.load.remove(&earlier_rows);
            self.load.add(&table.rows_of(&decision.picks));
        }
        if settled {
            self.settle(placement, &decision, &said, flips, Vec::new());
        }
        self.diagnostics.extend(said);
        self.decisions.insert(placement.key.clone(), decision);
    }

    fn settle(
        &mut self,
        placement: &Shared<Placement>,
        decision: &Decision,
        said: &Diagnostics,
        flips: Option<Timestamp>,
        followed: Vec<Key>,
    ) {
        let (placement, decision) = (placement.clone(), decision.clone());
        let diagnostics = said.iter().cloned().collect();
        self.settled.settle(CacheEntry { placement, decision, diagnostics, flips, followed }.into());
    }

    fn follow(&mut self, placement: &'f Shared<Placement>, follow: &'f Follow) {
        let (table, previous) = (self.table, self.previous.get(&placement.key));
        let flips = self.digests.flips(table, &follow.filters);
        self.next_change = earlier(self.next_change, flips);
        let mut said = Diagnostics::new();
        let union = followed_placements::union(self.fleet, table, &self.decisions, follow, &mut said);
        let mut counts = Counts::default();
        let in_force = match previous {
            Some(previous) if follow.filters.iter().any(super::filter::looks_at_own_picks) => {
                marks(table, &table.rows_of(&previous.picks))
            }
            _ => Vec::new(),
        };
        let followed = followed_placements::follow(table, follow, &union, &in_force, &mut counts);
        let followed_all = followed.complete;
        let mut decision = Decision {
            picks: followed.picks.into(),
            refused: counts.finish(),
            condition: followed.condition,
            ..empty(placement)
        };
        if let Some(previous) = previous {
            // Who is served is another step's business: until then it is as it was.
            let waited = |pick: &berth_base::model::Pick| {
                previous.pick(&pick.cluster).is_some_and(|pick| pick.pending)
            };
            if previous.picks.iter().any(|pick| pick.pending) {
                decision.picks.iter_mut().for_each(|pick| pick.pending = waited(pick));
            }
            if !followed.complete {
                uncertain::restore(&mut decision, previous, None, UNRESOLVED);
            } else if uncertain::applies(&self.fleet.doubt, previous) {
                uncertain::restore(&mut decision, previous, None, IN_DOUBT);
            }
        }
        if self.watched == Some(&placement.key) {
            self.trace = Some(trace_follow(table, placement, follow, &union, &in_force, &decision));
        }
        let same = previous.is_some_and(|previous| stand(placement, previous) == decision);
        if same {
            self.stood += 1;
        } else {
            self.decided += 1;
        }
        warnings::about(placement, &decision, &mut said);
        let found = |wanted: &PlacementRef| Some(self.fleet.find(wanted)?.key.clone());
        let followed: Option<Vec<Key>> = follow.placements.iter().map(found).collect();
        let doubtless = followed_all && self.fleet.doubt == Doubt::default();
        if let Some(followed) = followed.filter(|_| doubtless) {
            self.settle(placement, &decision, &said, flips, followed);
        }
        self.diagnostics.extend(said);
        self.decisions.insert(placement.key.clone(), decision);
    }
}

fn own_policy(placement: &Placement) -> Option<&Policy> {
    match &placement.source {
        Source::Own(policy) => Some(policy),
        Source::Follows(_) => None,
    }
}

/// Reports whether a policy reads the current picks of its own placement.
fn looks_back(policy: &Policy) -> bool {
    let tolerates = super::filter::looks_at_own_picks;
    policy.scorers.iter().any(|scorer| scorer.rule == ScoreRule::Steady)
        || policy.candidates.iter().chain(&policy.filters).any(tolerates)
}

fn marks(table: &Table<'_>, rows: &[Row]) -> Vec<bool> {
    if rows.is_empty() {
        return Vec::new();
    }
    let mut marks = vec![false; table.len()];
    rows.iter().for_each(|row| marks[*row as usize] = true);
    marks
}

/// Nothing the decision read has changed, and its clusters are still there.
fn stands(case: &Case<'_>, previous: &Decision, digest: Digest) -> bool {
    let leaves = |row: &Row| case.table.cluster(*row).leaving;
    previous.digest == Some(digest)
        && case.earlier.len() == previous.picks.len()
        && !(matches!(case.policy.retention, Retention::SamePolicy(_)) && case.earlier.iter().any(leaves))
}

/// An earlier decision without what rendering adds to it.
fn stand(placement: &Placement, previous: &Decision) -> Decision {
    Decision {
        picks: previous.picks.clone(),
        refused: previous.refused.clone(),
        condition: previous.condition.clone(),
        digest: previous.digest,
        policy: previous.policy.clone(),
        ..empty(placement)
    }
}

fn empty(placement: &Placement) -> Decision {
    Decision {
        key: placement.key.clone(),
        source: placement.origin.file.to_string(),
        picks: Shared::new(),
        refused: Vec::new(),
        condition: None,
        digest: None,
        policy: None,
        objects: Vec::new(),
        failures: Vec::new(),
    }
}

fn decide(case: &Case<'_>, placement: &Placement, digest: Digest) -> Decision {
    let mut counts = Counts::default();
    let made = own_policy::decide(case, &mut counts);
    let refused: Vec<Refused> = counts.finish();
    let mut decision = Decision {
        picks: made.picks.into(),
        refused,
        condition: made.condition,
        digest: Some(digest),
        policy: Some(case.policy.text.clone()),
        ..empty(placement)
    };
    if let Some(previous) = case.previous.filter(|_| case.held) {
        uncertain::restore(&mut decision, previous, Some(case.policy), IN_DOUBT);
    }
    // What is left as it is keeps its groups too.
    if let (Some(grouping), None) = (&case.policy.groups, &case.policy.blocked) {
        group::assign(case.table, grouping, &mut decision.picks);
    }
    decision
}

fn trace_own(case: &Case<'_>, placement: &Placement, decision: &Decision, stood: bool) -> Trace {
    let mut steps = Steps::default();
    own_policy::decide(case, &mut steps);
    // A cluster that stays is not looked at again: its steps are those that it would go through today.
    let mut anew = Steps::default();
    if matches!(case.policy.retention, Retention::SamePolicy(_)) && steps.keeps_any() {
        own_policy::decide(&Case { previous: None, earlier: &[], in_force: &[], ..*case }, &mut anew);
    }
    let candidate = trace::candidate_steps(case.table, &case.policy.candidates, case.in_force);
    let trace = trace::finish(decision, placement.origin.clone(), stood, case.table, |row| {
        if steps.keeps(row) {
            anew.kept_cluster(row, candidate(row), case.policy)
        } else {
            steps.cluster(row, candidate(row), Some(case.policy))
        }
    });
    Trace { division: steps.division(), ..trace }
}

fn trace_follow(
    table: &Table<'_>,
    placement: &Placement,
    follow: &Follow,
    union: &followed_placements::Union<'_>,
    in_force: &[bool],
    decision: &Decision,
) -> Trace {
    let mut steps = Steps::default();
    followed_placements::follow(table, follow, union, in_force, &mut steps);
    let followed: Vec<_> = follow.placements.iter().map(|one| one.describe()).collect();
    let followed = followed.join(" or ");
    trace::finish(decision, placement.origin.clone(), false, table, |row| -> ClusterTrace {
        let passed = union.rows.binary_search_by_key(&row, |(row, _)| *row).is_ok();
        let why = if passed { String::new() } else { format!("not picked by {followed}") };
        let rule = format!("picked by {followed}");
        steps.cluster(row, vec![Step { stage: Stage::Follow, rule, by: None, passed, why }], None)
    })
}

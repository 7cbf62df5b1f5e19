//! One pass over all placements: first those with a policy of their own, then those that follow others.

use std::collections::{BTreeMap, BTreeSet};

use super::cache::{CacheEntry, DecisionCache};
use super::candidates::CandidateSets;
use super::case::Case;
use super::cluster_table::{Row, Table};
use super::digest::{Digests, earlier};
use super::divide;
use super::followed_placements::{self, Following};
use super::group;
use super::own_policy;
use super::recorder::Counts;
use super::score::Load;
use super::trace::{self, ClusterTrace, Stage, Step, Steps, Trace};
use super::uncertain;
use super::warnings;
use berth_base::diag::Diagnostics;
use berth_base::model::PlacementRef;
use berth_base::model::fleet::Doubt;
use berth_base::model::placement::{Follow, Placement, Policy, Retention, ScoreRule, Source};
use berth_base::model::{Decision, Digest, Fleet, Key, Map, Refused, Shared, Timestamp};

const IN_DOUBT: &str = "kept: a file that it depends on cannot be read";
const UNRESOLVED: &str = "kept: a placement that is followed cannot be found";

/// One pass over all placements: its inputs and its results so far.
pub(super) struct Pass<'f, 't> {
    pub(super) fleet: &'f Fleet,
    previous: &'f Map<Key, Decision>,
    table: &'t Table<'t>,
    sets: CandidateSets,
    digests: Digests<'f>,
    load: Load,
    /// A policy reads the load; otherwise nothing counts it.
    balances: bool,
    /// The placements to trace.
    watched: BTreeSet<&'f Key>,
    pub(super) decisions: Map<Key, Decision>,
    pub(super) diagnostics: Diagnostics,
    pub(super) decided: usize,
    pub(super) sticky: usize,
    pub(super) next_change: Option<Timestamp>,
    pub(super) traces: BTreeMap<Key, Trace>,
    /// The cache for the next pass.
    pub(super) next_cache: DecisionCache,
    /// Placements whose decision came from the cache.
    reused: BTreeSet<&'f Key>,
}

/// How long a decision lasts: until the moment given, and while the placements that it follows stay as they are.
struct Lasting {
    flips: Option<Timestamp>,
    followed: Vec<Key>,
}

impl<'f, 't> Pass<'f, 't> {
    pub(super) fn new(
        fleet: &'f Fleet,
        previous: &'f Map<Key, Decision>,
        table: &'t Table<'t>,
        next_cache: DecisionCache,
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
            watched: BTreeSet::new(),
            decisions: Map::new(),
            diagnostics: Diagnostics::new(),
            decided: 0,
            sticky: 0,
            next_change: None,
            traces: BTreeMap::new(),
            next_cache,
            reused: BTreeSet::new(),
        }
    }

    /// Traces this placement's decision.
    pub(super) fn watch(&mut self, key: &'f Key) {
        self.watched.insert(key);
    }

    /// Decides everything; `cache` is of the same world.
    pub(super) fn all(&mut self, cache: Option<&DecisionCache>) {
        self.keep_vanished();
        if self.balances {
            self.count_load();
        }
        let fleet = self.fleet;
        for placement in fleet.placements.values() {
            if let Source::Own(policy) = &placement.source {
                let cached = cache.and_then(|cache| cache.get(placement, self.table.now));
                match self.previous.get(&placement.key).zip(cached).filter(|(now, cached)| cached.is(now)) {
                    Some((previous, cached)) => {
                        self.reuse(placement, stand(placement, previous), cached);
                    }
                    None => self.own(placement, policy),
                }
            }
        }
        for placement in fleet.placements.values() {
            if let Source::Follows(follow) = &placement.source {
                let cached = cache.and_then(|cache| cache.get(placement, self.table.now));
                match cached.filter(|cached| self.follows_the_same(follow, &cached.followed)) {
                    Some(cached) => self.reuse(placement, cached.decision.clone(), cached),
                    None => self.follow(placement, follow),
                }
            }
        }
    }

    /// Reuses a cached decision.
    fn reuse(&mut self, placement: &'f Placement, decision: Decision, cached: &Shared<CacheEntry>) {
        self.next_change = earlier(self.next_change, cached.flips);
        self.diagnostics.extend(cached.diagnostics.iter().cloned());
        self.sticky += 1;
        self.reused.insert(&placement.key);
        self.decisions.insert(placement.key.clone(), decision);
        self.next_cache.insert(cached.clone());
    }

    /// Reports whether the references resolve to the same placements, and their decisions are unchanged.
    fn follows_the_same(&self, follow: &Follow, followed: &[Key]) -> bool {
        follow.placements.len() == followed.len()
            && follow.placements.iter().zip(followed).all(|(wanted, key)| {
                self.reused.contains(key)
                    && self.fleet.find(wanted).is_some_and(|placement| placement.key == *key)
            })
    }

    /// Keeps decisions whose placement is missing, if it may only be in an unreadable file.
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
        let current_rows = previous.map(|previous| table.rows_of(&previous.picks)).unwrap_or_default();
        let is_current = if looks_back(policy) { marks(table, &current_rows) } else { Vec::new() };
        let candidates = self.sets.of(table, &policy.candidates, &is_current);
        let (digest, flips) = self.digests.of(table, &candidates, policy);
        self.next_change = earlier(self.next_change, flips);
        let case = Case {
            table,
            policy,
            candidates: &candidates.rows,
            previous,
            current_rows: &current_rows,
            is_current: &is_current,
            load: &self.load,
            is_uncertain: previous.is_some_and(|previous| uncertain::applies(&self.fleet.doubt, previous)),
        };
        let standing = previous.filter(|previous| stands(&case, previous, digest));
        let decision = match standing {
            Some(previous) => stand(placement, previous),
            None => decide(&case, placement, digest),
        };
        if self.watched.contains(&placement.key) {
            let trace = trace_own(&case, placement, &decision, standing.is_some());
            self.traces.insert(placement.key.clone(), trace);
        }
        let mut said = Diagnostics::new();
        divide::warn(&case, placement, &decision, standing.is_none(), &mut said);
        warnings::about_names(placement, policy, table, &mut said);
        warnings::about(placement, &decision, &mut said);
        // A new division's warnings appear once.
        let is_cacheable = !case.is_uncertain && (standing.is_some() || policy.division.is_none());
        match standing {
            Some(_) => self.sticky += 1,
            None => self.decided += 1,
        }
        if self.balances && standing.is_none() {
            self.load.remove(&current_rows);
            self.load.add(&table.rows_of(&decision.picks));
        }
        let lasting = is_cacheable.then(|| Lasting { flips, followed: Vec::new() });
        self.take(placement, decision, said, lasting);
    }

    /// Takes a decision over with what it says; the cache keeps one that lasts.
    fn take(
        &mut self,
        placement: &Shared<Placement>,
        decision: Decision,
        said: Diagnostics,
        lasting: Option<Lasting>,
    ) {
        if let Some(Lasting { flips, followed }) = lasting {
            let (placement, decision) = (placement.clone(), decision.clone());
            let diagnostics = said.iter().cloned().collect();
            self.next_cache.insert(CacheEntry { placement, decision, diagnostics, flips, followed }.into());
        }
        self.diagnostics.extend(said);
        self.decisions.insert(placement.key.clone(), decision);
    }

    fn follow(&mut self, placement: &'f Shared<Placement>, follow: &'f Follow) {
        let (table, previous) = (self.table, self.previous.get(&placement.key));
        let flips = self.digests.flips(table, &follow.filters);
        self.next_change = earlier(self.next_change, flips);
        let mut said = Diagnostics::new();
        let union = followed_placements::union(self.fleet, table, &self.decisions, follow, &mut said);
        let mut counts = Counts::default();
        let is_current = match previous {
            Some(previous) if follow.filters.iter().any(super::filter::looks_at_own_picks) => {
                marks(table, &table.rows_of(&previous.picks))
            }
            _ => Vec::new(),
        };
        let following = Following { table, follow, union: &union, is_current: &is_current };
        let followed = following.picks(&mut counts);
        let followed_all = followed.complete;
        let mut decision = Decision {
            picks: followed.picks.into(),
            refused: counts.finish(),
            condition: followed.condition,
            ..empty(placement)
        };
        if let Some(previous) = previous {
            // Which picks are served is decided later, in `release`: until then they stay.
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
        if self.watched.contains(&placement.key) {
            let trace = trace_follow(&following, placement, &decision);
            self.traces.insert(placement.key.clone(), trace);
        }
        let same = previous.is_some_and(|previous| stand(placement, previous) == decision);
        if same {
            self.sticky += 1;
        } else {
            self.decided += 1;
        }
        warnings::about(placement, &decision, &mut said);
        let found = |wanted: &PlacementRef| Some(self.fleet.find(wanted)?.key.clone());
        let followed: Option<Vec<Key>> = follow.placements.iter().map(found).collect();
        let doubtless = followed_all && self.fleet.doubt == Doubt::default();
        let lasting = followed.filter(|_| doubtless).map(|followed| Lasting { flips, followed });
        self.take(placement, decision, said, lasting);
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

/// Reports whether the decision is sticky: its digest is equal, and its clusters still exist.
fn stands(case: &Case<'_>, previous: &Decision, digest: Digest) -> bool {
    let leaves = |row: &Row| case.table.cluster(*row).leaving;
    previous.digest == Some(digest)
        && case.current_rows.len() == previous.picks.len()
        && !(matches!(case.policy.retention, Retention::SamePolicy(_))
            && case.current_rows.iter().any(leaves))
}

/// Copies a current decision without the parts that rendering adds.
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
    Decision::new(placement.key.clone(), placement.origin.file.to_string())
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
    if let Some(previous) = case.previous.filter(|_| case.is_uncertain) {
        uncertain::restore(&mut decision, previous, Some(case.policy), IN_DOUBT);
    }
    // A blocked placement keeps its groups too.
    if let (Some(grouping), None) = (&case.policy.groups, &case.policy.blocked) {
        group::assign(case.table, grouping, &mut decision.picks);
    }
    decision
}

fn trace_own(case: &Case<'_>, placement: &Placement, decision: &Decision, sticky: bool) -> Trace {
    let mut steps = Steps::default();
    own_policy::decide(case, &mut steps);
    // A retained pick passes no filters: its trace shows the steps that it would take now.
    let mut anew = Steps::default();
    if matches!(case.policy.retention, Retention::SamePolicy(_)) && steps.keeps_any() {
        own_policy::decide(&Case { previous: None, current_rows: &[], is_current: &[], ..*case }, &mut anew);
    }
    let candidate = trace::candidate_steps(case.table, &case.policy.candidates, case.is_current);
    let trace = trace::finish(decision, placement.origin.clone(), sticky, case.table, |row| {
        if steps.keeps(row) {
            anew.kept_cluster(row, candidate(row), case.policy)
        } else {
            steps.cluster(row, candidate(row), Some(case.policy))
        }
    });
    Trace { division: steps.division(), ..trace }
}

fn trace_follow(following: &Following<'_>, placement: &Placement, decision: &Decision) -> Trace {
    let Following { table, follow, union, .. } = following;
    let mut steps = Steps::default();
    following.picks(&mut steps);
    let followed: Vec<_> = follow.placements.iter().map(|one| one.describe()).collect();
    let followed = followed.join(" or ");
    trace::finish(decision, placement.origin.clone(), false, table, |row| -> ClusterTrace {
        let passed = union.rows.binary_search_by_key(&row, |(row, _)| *row).is_ok();
        let why = if passed { String::new() } else { format!("not picked by {followed}") };
        let rule = format!("picked by {followed}");
        steps.cluster(row, vec![Step { stage: Stage::Follow, rule, by: None, passed, why }], None)
    })
}

//! One pass over all placements: first those with a policy of their own, then those that follow others.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::alike;
use super::cache::Results;
use super::candidates::{CandidateSets, Open};
use super::case::Case;
use super::cluster_table::{Row, Table};
use super::digest::{Digests, covers_all};
use super::divide;
use super::followed_placements::{self, Following};
use super::group;
use super::own_policy::{self, Chosen};
use super::placement_trace;
use super::policy_reads::reads_load;
use super::recorder::Counts;
use super::score::Load;
use super::trace::Trace;
use super::uncertain;
use super::warnings;
use berth_base::diag::Diagnostics;
use berth_base::model::fleet::Doubt;
use berth_base::model::placement::{Follow, Placement, Policy, Retention, ScoreRule, Source};
use berth_base::model::{Decision, Fleet, Key, Map, Pick, Shared, Timestamp};
use berth_base::text::shared_values::SharedValues;

const IN_DOUBT: &str = "kept: a file that it depends on cannot be read";
const UNRESOLVED: &str = "kept: a placement that is followed cannot be found";

/// One pass over the placements: its inputs and its results so far.
pub(super) struct Pass<'f, 't> {
    fleet: &'f Fleet,
    previous: &'f Map<Key, Decision>,
    table: &'t Table<'t>,
    sets: CandidateSets,
    digests: Digests<'f>,
    load: Load,
    /// A policy reads the load; otherwise nothing counts it.
    balances: bool,
    /// The new picks so far. Many placements pick the same clusters for the same reasons, and share the list.
    picks: SharedValues<Shared<Vec<Pick>>>,
    /// The placements to trace.
    watched: BTreeSet<&'f Key>,
    pub(super) results: Results,
    /// The number of new decisions.
    pub(super) decided: usize,
    pub(super) traces: BTreeMap<Key, Trace>,
}

/// A decision with all there is to say about it.
struct Result {
    decision: Decision,
    said: Diagnostics,
    is_new: bool,
    /// The next pass decides again in any case.
    is_unsettled: bool,
    flips: Option<Timestamp>,
    trace: Option<Trace>,
}

/// The decisions that are made at a time, on all processors, before their picks are shared.
const AT_ONCE: usize = 1024;

impl<'f, 't> Pass<'f, 't> {
    pub(super) fn new(
        fleet: &'f Fleet,
        previous: &'f Map<Key, Decision>,
        table: &'t Table<'t>,
    ) -> Pass<'f, 't> {
        let balances = fleet.placements.values().any(|placement| reads_load(placement));
        Pass {
            fleet,
            previous,
            table,
            sets: CandidateSets::default(),
            digests: Digests::default(),
            load: Load::new(table.len()),
            balances,
            picks: SharedValues::default(),
            watched: BTreeSet::new(),
            results: Results::default(),
            decided: 0,
            traces: BTreeMap::new(),
        }
    }

    /// Traces this placement's decision.
    pub(super) fn watch(&mut self, key: &'f Key) {
        self.watched.insert(key);
    }

    /// Decides everything.
    pub(super) fn all(&mut self) {
        self.keep_vanished();
        self.decide(|fleet| fleet.placements.values());
    }

    /// Decides these placements, and takes the results for all others over.
    pub(super) fn some(&mut self, results: Results, keys: &BTreeSet<Key>) {
        self.results = results;
        self.decide(|fleet| keys.iter().filter_map(|key| fleet.placements.get(key)));
    }

    /// Decides those with a policy of their own, then those that follow others.
    fn decide<Placements>(&mut self, placements: impl Fn(&'f Fleet) -> Placements)
    where
        Placements: Iterator<Item = &'f Shared<Placement>>,
    {
        if self.balances {
            self.count_load();
        }
        let own: Vec<(&Placement, &Policy)> =
            placements(self.fleet).filter_map(|one| Some((&**one, one.own_policy()?))).collect();
        // Where the load counts, each decision reads those before it.
        for part in own.chunks(if self.balances { 1 } else { AT_ONCE }) {
            for ((placement, _), result) in part.iter().zip(self.own_of(part)) {
                self.take(placement, result);
            }
        }
        for placement in placements(self.fleet) {
            if let Source::Follows(follow) = &placement.source {
                let result = self.follow(placement, follow);
                self.take(placement, result);
            }
        }
    }

    fn take(&mut self, placement: &Placement, result: Result) {
        let Result { mut decision, said, is_new, is_unsettled, flips, trace } = result;
        let key = &placement.key;
        if self.balances && is_new && placement.own_policy().is_some() {
            let before = self.previous(key).map(|previous| self.table.rows_of(&previous.picks));
            self.load.remove(&before.unwrap_or_default());
            self.load.add(&self.table.rows_of(&decision.picks));
        }
        let results = &mut self.results;
        self.decided += usize::from(is_new);
        if let Some(trace) = trace {
            self.traces.insert(key.clone(), trace);
        }
        decision.forget_turns();
        if is_new {
            self.picks.share(&mut decision.picks);
        }
        results.decisions.insert(key.clone(), decision);
        if !said.is_empty() {
            results.said.insert(key.clone(), said.into_iter().collect());
        }
        if let Some(flips) = flips {
            results.flips.insert(key.clone(), flips);
        }
        if is_unsettled {
            results.unsettled.insert(key.clone());
        }
    }

    /// Keeps decisions whose placement is missing, if it may only be in an unreadable file.
    fn keep_vanished(&mut self) {
        for (key, previous) in self.previous {
            if !self.fleet.placements.contains_key(key)
                && uncertain::may_have_moved(&self.fleet.doubt, previous)
            {
                let mut decision = Decision { digest: None, ..previous.clone() };
                decision.forget_turns();
                self.results.decisions.insert(key.clone(), decision);
            }
        }
    }

    /// Counts the load of current decisions on each cluster. Placements that follow others add no load.
    fn count_load(&mut self) {
        for key in self.previous.keys() {
            let Some(previous) = self.previous(key) else { continue };
            let counts = match self.fleet.placements.get(key) {
                Some(placement) => placement.own_policy().is_some(),
                None => self.results.decisions.contains_key(key) && previous.policy.is_some(),
            };
            if counts {
                self.load.add(&self.table.rows_of(&previous.picks));
            }
        }
    }

    /// The decision before, without the clusters that only keep a copy: no decision goes on from these.
    fn previous(&self, key: &Key) -> Option<Cow<'f, Decision>> {
        let mut previous = Cow::Borrowed(self.previous.get(key)?);
        if previous.picks.iter().any(|pick| pick.leaving) {
            let picks = previous.picked().cloned().collect();
            previous.to_mut().picks = picks;
        }
        Some(previous)
    }

    /// Decides these by their own policies: of several that are alike, the first.
    fn own_of(&self, part: &[(&Placement, &'f Policy)]) -> Vec<Result> {
        let is_certain = self.fleet.doubt == Doubt::default();
        let firsts = alike::firsts(part, self.previous, |placement| {
            is_certain && !self.watched.contains(&placement.key)
        });
        alike::make(&firsts, |at| self.own(part[at].0, part[at].1), |other, at| self.like(other, part[at].0))
    }

    /// The result for a placement that is decided as another one.
    fn like(&self, other: &Result, placement: &Placement) -> Result {
        let decision = stand(placement, &other.decision);
        let mut said = Diagnostics::new();
        warnings::about_names(placement, self.table, &mut said);
        warnings::about(placement, &decision, self.table, &mut said);
        Result { decision, said, trace: None, ..*other }
    }

    fn own(&self, placement: &Placement, policy: &'f Policy) -> Result {
        let (table, previous) = (self.table, self.previous(&placement.key));
        let previous = previous.as_deref();
        let current_rows = previous.map(|previous| table.rows_of(&previous.picks)).unwrap_or_default();
        let is_current = if looks_back(policy) { marks(table, &current_rows) } else { Vec::new() };
        let candidates = self.sets.of(table, &policy.candidates, &is_current);
        let open = self.sets.open(table, policy);
        let flips = self.digests.flips_of(table, &candidates, policy);
        let case = Case {
            table,
            policy,
            candidates: &candidates.rows,
            passing: None,
            previous,
            current_rows: &current_rows,
            is_current: &is_current,
            load: &self.load,
            is_uncertain: previous.is_some_and(|previous| uncertain::applies(&self.fleet.doubt, previous)),
        };
        let standing = self.standing(&case, &open, policy);
        let decision = match standing {
            Some(previous) => stand(placement, previous),
            None => self.decide_own(&case, &open, placement, policy),
        };
        let is_watched = self.watched.contains(&placement.key);
        let trace = is_watched
            .then(|| placement_trace::of_own_policy(&case, placement, &decision, standing.is_some()));
        let mut said = Diagnostics::new();
        divide::warn(&case, placement, &decision, standing.is_none(), &mut said);
        warnings::about_names(placement, table, &mut said);
        warnings::about(placement, &decision, table, &mut said);
        let is_new = standing.is_none();
        // A new division's warnings appear once. A new decision that counts the load reads all others.
        let is_unsettled = is_new && (policy.division.is_some() || self.balances);
        Result { decision, said, is_new, is_unsettled, flips, trace }
    }

    /// Returns the decision before if it is sticky: its digest is equal, and its clusters still exist.
    fn standing<'d>(&self, case: &Case<'d>, open: &Open, policy: &'f Policy) -> Option<&'d Decision> {
        let Case { table, previous, current_rows, .. } = *case;
        let previous = previous?;
        let leaves = |row: &Row| table.cluster(*row).leaving;
        if current_rows.len() != previous.picks.len()
            || matches!(policy.retention, Retention::SamePolicy(_)) && current_rows.iter().any(leaves)
        {
            return None;
        }
        let is_equal = previous.digest? == self.digests.of(table, open, current_rows, policy);
        is_equal.then_some(previous)
    }

    fn decide_own(
        &self,
        case: &Case<'_>,
        open: &Open,
        placement: &Placement,
        policy: &'f Policy,
    ) -> Decision {
        let (table, digests) = (self.table, &self.digests);
        let (Chosen { picks, condition }, refused) = own_policy::decide_and_count(case, open);
        let (rows, picks): (Vec<Row>, Vec<Pick>) = picks.into_iter().unzip();
        let mut decision = Decision {
            picks: picks.into(),
            refused,
            condition,
            digest: Some(digests.of(table, open, &rows, policy)),
            policy: Some(policy.text.clone()),
            ..empty(placement)
        };
        if let Some(previous) = case.previous.filter(|_| case.is_uncertain) {
            uncertain::restore(&mut decision, previous, Some(policy), IN_DOUBT);
        }
        if !covers_all(policy, decision.picks.len()) {
            decision.refused.clear();
        }
        // A blocked placement keeps its groups too.
        if let (Some(grouping), None) = (&policy.groups, &policy.blocked) {
            group::assign(table, grouping, &mut decision.picks);
        }
        decision.share_picks(case.previous);
        decision
    }

    fn follow(&self, placement: &Placement, follow: &'f Follow) -> Result {
        let (table, previous) = (self.table, self.previous(&placement.key));
        let previous = previous.as_deref();
        let flips = self.digests.flips(table, &follow.filters);
        let mut said = Diagnostics::new();
        let union = followed_placements::union(self.fleet, table, &self.results.decisions, follow, &mut said);
        let mut counts = Counts::default();
        let is_current = match previous {
            Some(previous) if follow.filters.iter().any(super::filter::looks_at_own_picks) => {
                marks(table, &table.rows_of(&previous.picks))
            }
            _ => Vec::new(),
        };
        let following = Following { table, follow, union: &union, is_current: &is_current };
        let followed = following.picks(&mut counts);
        let mut decision = Decision {
            picks: followed.picks.into(),
            refused: counts.finish(),
            condition: followed.condition,
            ..empty(placement)
        };
        if let Some(previous) = previous {
            if !followed.complete {
                uncertain::restore(&mut decision, previous, None, UNRESOLVED);
            } else if uncertain::applies(&self.fleet.doubt, previous) {
                uncertain::restore(&mut decision, previous, None, IN_DOUBT);
            }
        }
        decision.share_picks(previous);
        let is_watched = self.watched.contains(&placement.key);
        let trace = is_watched.then(|| placement_trace::of_followed(&following, placement, &decision));
        warnings::about(placement, &decision, table, &mut said);
        let is_new = previous.is_none_or(|previous| {
            let mut previous = stand(placement, previous);
            previous.forget_turns();
            previous != decision
        });
        Result { decision, said, is_new, is_unsettled: false, flips, trace }
    }
}

/// Reports whether a policy reads the current picks of its own placement.
pub(super) fn looks_back(policy: &Policy) -> bool {
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

//! One pass over all placements: first those with their own policy, then those that follow others.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use super::cache::PlacementResults;
use super::candidates::{CandidateSets, Open};
use super::cluster_table::{Row, Table};
use super::digest::{Digests, covers_all, reads_load};
use super::filter::TermNeeds;
use super::findings::RefusalCounts;
use super::followed_placements::Following;
use super::own_policy::{Chosen, DecisionCase};
use super::score::Load;
use super::trace::{ClusterTrace, Stage, Steps, Trace, TraceStep};
use super::{divide, findings, followed_placements, own_policy, trace, uncertain};
use berth_base::diag::Diagnostics;
use berth_base::model::decision::Digest;
use berth_base::model::fleet::Doubt;
use berth_base::model::placement::{
    Follow, GroupSize, Grouping, Placement, Policy, Retention, ScoreRule, Source,
};
use berth_base::model::rollout::share_of;
use berth_base::model::shared::ByAllocation;
use berth_base::model::{Decision, Fleet, Group, Key, Map, Pick, Shared, Timestamp};
use berth_base::parallel;
use berth_base::text::SharedValues;

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
    /// Some policy reads the load; otherwise nothing counts it.
    balances: bool,
    /// The new picks so far. Many placements pick the same clusters for the same reasons, and share the list.
    picks: SharedValues<Shared<Vec<Pick>>>,
    /// The placements to trace.
    watched: BTreeSet<&'f Key>,
    pub(super) results: PlacementResults,
    /// The number of new decisions.
    pub(super) decided: usize,
    /// Receives the traces.
    sink: Option<Sink<'t>>,
}

/// A receiver of traces, called once for each traced placement, by several threads at a time.
pub(super) type Sink<'t> = &'t (dyn Fn(Trace) + Sync);

/// A decision with its diagnostics, and its effect on the next pass.
struct Result {
    decision: Decision,
    diagnostics: Diagnostics,
    is_new: bool,
    /// The next pass must decide again.
    is_unsettled: bool,
    flips: Option<Timestamp>,
}

/// The number of decisions made in parallel, before their picks are shared.
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
            results: PlacementResults::default(),
            decided: 0,
            sink: None,
        }
    }

    /// Traces the decisions of these placements.
    pub(super) fn watch(&mut self, keys: impl IntoIterator<Item = &'f Key>, sink: Sink<'t>) {
        self.watched.extend(keys);
        self.sink = Some(sink);
    }

    /// Decides all placements.
    pub(super) fn all(&mut self) {
        self.keep_vanished();
        self.decide(|fleet| fleet.placements.values());
    }

    /// Decides these placements, and reuses the results of all others.
    pub(super) fn some(&mut self, results: PlacementResults, keys: &BTreeSet<Key>) {
        self.results = results;
        self.decide(|fleet| keys.iter().filter_map(|key| fleet.placements.get(key)));
    }

    /// Decides the placements with their own policy, then those that follow others.
    fn decide<Placements>(&mut self, placements: impl Fn(&'f Fleet) -> Placements)
    where
        Placements: Iterator<Item = &'f Shared<Placement>>,
    {
        if self.balances {
            self.count_load();
        }
        let own: Vec<(&Placement, &Policy)> =
            placements(self.fleet).filter_map(|one| Some((&**one, one.own_policy()?))).collect();
        // If a policy reads the load, each decision reads the decisions before it.
        let at_once = if self.balances { 1 } else { AT_ONCE };
        for part in own.chunks(at_once) {
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
        let Result { mut decision, diagnostics, is_new, is_unsettled, flips } = result;
        let key = &placement.key;
        if self.balances && is_new && placement.own_policy().is_some() {
            let before = self.previous(key).map(|previous| self.table.rows_of(&previous.picks));
            self.load.remove(&before.unwrap_or_default());
            self.load.add(&self.table.rows_of(&decision.picks));
        }
        let results = &mut self.results;
        self.decided += usize::from(is_new);
        decision.forget_turns();
        if is_new {
            self.picks.share(&mut decision.picks);
        }
        results.decisions.insert(key.clone(), decision);
        if !diagnostics.is_empty() {
            results.diagnostics.insert(key.clone(), diagnostics.into_iter().collect());
        }
        if let Some(flips) = flips {
            results.flips.insert(key.clone(), flips);
        }
        if is_unsettled {
            results.unsettled.insert(key.clone());
        }
    }

    /// Keeps decisions whose placement is missing, if an unreadable file may contain it.
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

    /// Returns the current decision without clusters that only keep a copy: these are no current picks.
    fn previous(&self, key: &Key) -> Option<Cow<'f, Decision>> {
        let mut previous = Cow::Borrowed(self.previous.get(key)?);
        if previous.picks.iter().any(|pick| pick.leaving) {
            let picks = previous.picked().cloned().collect();
            previous.to_mut().picks = picks;
        }
        Some(previous)
    }

    /// Decides these placements by their own policies; of several equal ones, only the first is computed.
    fn own_of(&self, part: &[(&Placement, &'f Policy)]) -> Vec<Result> {
        let is_certain = self.fleet.doubt == Doubt::default();
        let firsts =
            firsts(part, self.previous, |placement| is_certain && !self.watched.contains(&placement.key));
        make(&firsts, |at| self.own(part[at].0, part[at].1), |other, at| self.like(other, part[at].0))
    }

    /// Derives the result for a placement from the result of an equal one.
    fn like(&self, other: &Result, placement: &Placement) -> Result {
        let decision = stand(placement, &other.decision);
        let mut diagnostics = Diagnostics::new();
        findings::warn_about_names(placement, self.table, &mut diagnostics);
        findings::warn_about(placement, &decision, self.table, &mut diagnostics);
        Result { decision, diagnostics, ..*other }
    }

    fn own(&self, placement: &Placement, policy: &'f Policy) -> Result {
        let (table, previous) = (self.table, self.previous(&placement.key));
        let previous = previous.as_deref();
        let current_rows = previous.map(|previous| table.rows_of(&previous.picks)).unwrap_or_default();
        let is_current = if looks_back(policy) { marks(table, &current_rows) } else { Vec::new() };
        let candidates = self.sets.of(table, &policy.candidates, &is_current);
        let open = self.sets.open(table, policy);
        let flips = self.digests.flips_of(table, &candidates, policy);
        let case = DecisionCase {
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
        self.trace(placement, || of_own_policy(&case, placement, &decision, standing.is_some()));
        let mut diagnostics = Diagnostics::new();
        divide::warn(&case, placement, &decision, standing.is_none(), &mut diagnostics);
        findings::warn_about_names(placement, table, &mut diagnostics);
        findings::warn_about(placement, &decision, table, &mut diagnostics);
        let is_new = standing.is_none();
        // A new division's warnings appear once. A new decision that reads the load depends on all others.
        let is_unsettled = is_new && (policy.division.is_some() || self.balances);
        Result { decision, diagnostics, is_new, is_unsettled, flips }
    }

    /// Gives the trace of a placement away, if somebody watches it.
    fn trace(&self, placement: &Placement, trace: impl FnOnce() -> Trace) {
        if let Some(sink) = self.sink.filter(|_| self.watched.contains(&placement.key)) {
            sink(trace());
        }
    }

    /// Returns the current decision if it is sticky: its digest is equal, and its clusters still exist.
    fn standing<'d>(&self, case: &DecisionCase<'d>, open: &Open, policy: &'f Policy) -> Option<&'d Decision> {
        let DecisionCase { table, previous, current_rows, .. } = *case;
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
        case: &DecisionCase<'_>,
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
        // A blocked placement keeps its groups.
        if let (Some(grouping), None) = (&policy.groups, &policy.blocked) {
            assign(table, grouping, &mut decision.picks);
        }
        decision.share_picks(case.previous);
        decision
    }

    fn follow(&self, placement: &Placement, follow: &'f Follow) -> Result {
        let (table, previous) = (self.table, self.previous(&placement.key));
        let previous = previous.as_deref();
        let flips = self.digests.flips(table, &follow.filters);
        let mut diagnostics = Diagnostics::new();
        let union =
            followed_placements::union(self.fleet, table, &self.results.decisions, follow, &mut diagnostics);
        let mut counts = RefusalCounts::default();
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
        self.trace(placement, || of_followed(&following, placement, &decision));
        findings::warn_about(placement, &decision, table, &mut diagnostics);
        let is_new = previous.is_none_or(|previous| {
            let mut previous = stand(placement, previous);
            previous.forget_turns();
            previous != decision
        });
        Result { decision, diagnostics, is_new, is_unsettled: false, flips }
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

/// The current picks, and the digest of the current decision.
type Likeness<'d> = (ByAllocation<'d, Vec<Pick>>, Option<Digest>);

/// Returns for each placement the index of the first placement with the same policy and an equal current
/// decision; its own index if there is none. A policy reads nothing else of its placement.
pub(super) fn firsts(
    placements: &[(&Placement, &Policy)],
    previous: &Map<Key, Decision>,
    may_share: impl Fn(&Placement) -> bool,
) -> Vec<usize> {
    let mut firsts: BTreeMap<Likeness<'_>, (usize, &Decision)> = BTreeMap::new();
    let first = |(place, (placement, policy)): (usize, &(&Placement, &Policy))| {
        // The warnings of a division name its placement.
        let may_share = policy.division.is_none() && may_share(placement);
        let Some(before) = previous.get(&placement.key).filter(|_| may_share) else { return place };
        let likeness = (ByAllocation(&before.picks), before.digest);
        let (first, other) = *firsts.entry(likeness).or_insert((place, before));
        let is_alike = first == place || is_decided_as(before, other) && *policy == placements[first].1;
        if is_alike { first } else { place }
    };
    placements.iter().enumerate().map(first).collect()
}

/// Computes the result of each placement; equal placements derive it from the first.
pub(super) fn make<R: Send>(
    firsts: &[usize],
    decide: impl Fn(usize) -> R + Sync,
    like: impl Fn(&R, usize) -> R,
) -> Vec<R> {
    let (alone, others): (Vec<usize>, Vec<usize>) =
        (0..firsts.len()).partition(|place| firsts[*place] == *place);
    let results = parallel::map_large(&alone, |place| decide(*place));
    let mut results: BTreeMap<usize, R> = alone.into_iter().zip(results).collect();
    for place in others {
        let result = like(&results[&firsts[place]], place);
        results.insert(place, result);
    }
    results.into_values().collect()
}

/// Reports whether two decisions with the same picks are equal, apart from the placements' names and objects.
fn is_decided_as(one: &Decision, other: &Decision) -> bool {
    (one.digest, &one.condition, &one.refused, &one.policy)
        == (other.digest, &other.condition, &other.refused, &other.policy)
}

/// Assigns each pick its group. The picks are in name order, which is also the order within a group.
pub(super) fn assign(table: &Table<'_>, grouping: &Grouping, picks: &mut [Pick]) {
    picks.iter_mut().for_each(|pick| pick.group = None);
    let size = chunk(grouping.size, picks.len());
    let mut index = 0;
    for (name, term) in &grouping.named {
        let needs = TermNeeds::new(table, term);
        // A cluster of an uncertain decision may be missing from the inventory, and then matches no named
        // group.
        let fits = |pick: &Pick| table.row(&pick.cluster).is_some_and(|row| needs.matches(row));
        index = fill(picks, fits, name, size, index);
    }
    fill(picks, |_| true, "", size, index);
}

/// Puts the matching picks without a group into chunks of one name; returns the next index.
fn fill(picks: &mut [Pick], fits: impl Fn(&Pick) -> bool, name: &str, size: usize, first: usize) -> usize {
    let mut taken = 0;
    for pick in picks.iter_mut().filter(|pick| pick.group.is_none()) {
        if fits(pick) {
            pick.group = Some(Group { index: first + taken / size, name: name.to_owned() });
            taken += 1;
        }
    }
    first + taken.div_ceil(size)
}

/// Returns the number of clusters in a chunk. A size of 0, or above the number picked, makes one chunk of
/// all.
fn chunk(size: GroupSize, picked: usize) -> usize {
    let wanted = match size {
        GroupSize::Count(count) => count,
        GroupSize::Percent(percent) => share_of(percent, picked),
    };
    if wanted == 0 || wanted > picked { picked.max(1) } else { wanted }
}

pub(super) fn of_own_policy(
    case: &DecisionCase<'_>,
    placement: &Placement,
    decision: &Decision,
    sticky: bool,
) -> Trace {
    let mut steps = Steps::default();
    own_policy::decide(case, &mut steps);
    // A retained pick passes no filters: its trace shows the steps that it would take now.
    let mut anew = Steps::default();
    if matches!(case.policy.retention, Retention::SamePolicy(_)) && steps.keeps_any() {
        own_policy::decide(
            &DecisionCase { previous: None, current_rows: &[], is_current: &[], ..*case },
            &mut anew,
        );
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

pub(super) fn of_followed(following: &Following<'_>, placement: &Placement, decision: &Decision) -> Trace {
    let Following { table, follow, union, .. } = following;
    let mut steps = Steps::default();
    following.picks(&mut steps);
    let followed: Vec<_> = follow.placements.iter().map(|one| one.describe()).collect();
    let followed = followed.join(" or ");
    trace::finish(decision, placement.origin.clone(), false, table, |row| -> ClusterTrace {
        let passed = union.rows.binary_search_by_key(&row, |(row, _)| *row).is_ok();
        let why = if passed { String::new() } else { format!("not picked by {followed}") };
        let rule = format!("picked by {followed}");
        steps.cluster(row, vec![TraceStep { stage: Stage::Follow, rule, by: None, passed, why }], None)
    })
}

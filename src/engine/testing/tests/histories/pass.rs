//! A pass of the hub over a history: its inputs, and the gate's verdict.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use berth_base::model::{ClusterStatus, Decision, Key, Map, Shared};
use berth_base::source::{SourceFile, SourceTree};

use super::fleet::{Fleet, Order};
use super::{History, Past};
use crate::gate::{Held, Lookup, Outlook, PastState, Question, Span, Verdict, Wanted, judge, without_gate};
use crate::hypothetical;
use crate::load::{self, FileCache, Loaded};
use crate::pipeline::{Built, Inputs, PipelineCache};
use crate::state::ledger::Cause;
use crate::state::{Comparison, State, ledger};
use crate::testing::past_state;

/// The caches of a daemon.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) parsed: FileCache,
    pub(super) built: Option<PipelineCache>,
}

/// A pass with its inputs.
pub(super) struct Pass<'h> {
    pub(super) history: &'h History,
    pub(super) loaded: Loaded,
    pub(super) built: Built,
    pub(super) tree: SourceTree,
    pub(super) statuses: &'h Map<String, Shared<ClusterStatus>>,
    pub(super) is_edited: bool,
    /// The same pass over the files without strategies and orders, after an edit.
    pub(super) at_once: Option<Box<Pass<'h>>>,
}

impl Pass<'_> {
    pub(super) fn verdict(&self) -> Verdict {
        let history = self.history;
        if history.processed.is_none() {
            let state = without_gate(&history.state, &self.built.state);
            return Verdict { state, ..Verdict::default() };
        }
        let outlook = match self.is_edited {
            true => self.outlook(),
            false => Outlook::default(),
        };
        let question = Question {
            states: &Comparison::of(&history.state, &self.built.desired),
            step: &self.built.state,
            now: history.moment(),
            before: &history.before.len().to_string(),
            seq: history.before.len() as u64,
            source: &history.edits.to_string(),
            is_edited: self.is_edited,
            limits: &history.limits,
            limits_stay: true,
            failing: &BTreeMap::new(),
            outlook: &outlook,
            in_files: &BTreeSet::new(),
            in_messages: &history.in_messages,
            fleet: &self.built.fleet,
        };
        judge(&question, self).unwrap_or_else(|never| match never {})
    }

    fn with_inputs<T>(&self, run: impl FnOnce(Inputs<'_>) -> T) -> T {
        self.history.with_forms(|forms| run(self.history.inputs(&self.tree, forms, self.statuses)))
    }

    fn outlook(&self) -> Outlook {
        let (facts, until) = (&self.built.desired.facts, Span::hours(30 * 24).after(self.history.moment()));
        let with_change =
            self.with_inputs(|inputs| hypothetical::ahead(&self.loaded, inputs, facts, facts, until));
        // The files of the last pass, with their last good forms.
        let files = self.history.forms.iter();
        let files = files.map(|(path, bytes)| SourceFile::new(path.clone(), bytes.to_vec())).collect();
        let before = SourceTree { files, ..SourceTree::default() };
        let loaded = self.history.with_forms(|forms| load::load(&before, forms));
        let first_seen = &self.history.state.facts;
        let without_change = self.history.with_forms(|forms| {
            let inputs = self.history.inputs(&before, forms, self.statuses);
            hypothetical::ahead(&loaded, inputs, facts, first_seen, until)
        });
        Outlook { with_change, without_change }
    }
}

impl Lookup for &Pass<'_> {
    type Error = Infallible;

    fn edit_alone(&mut self) -> Result<Vec<Map<Key, Decision>>, Infallible> {
        let facts = &self.built.desired.facts;
        Ok(self
            .with_inputs(|inputs| hypothetical::edit_alone(&self.loaded, inputs, facts, self.history.then)))
    }

    fn state_before(&mut self, number: &str, wanted: &Wanted<'_>) -> Result<Option<PastState>, Infallible> {
        let seq: usize = number.parse().expect("a number");
        // The current state follows the earlier ones.
        let state = self.history.before.get(seq).map_or(&self.history.state, |past| &past.state);
        Ok(Some(past_state(state, seq as u64, wanted)))
    }

    fn is_rollback(&mut self) -> Result<bool, Infallible> {
        let desired = published(&self.built.desired);
        let mut earlier = self.history.before.iter().rev().take(self.history.limits.rollback);
        Ok(earlier.any(|Past { state, .. }| {
            state.decisions == desired.decisions && state.folders == desired.folders
        }))
    }
}

/// Returns the same fleet without any waiting for turns.
pub(super) fn at_once(fleet: &Fleet) -> Fleet {
    let mut fleet = fleet.clone();
    fleet.works.values_mut().for_each(|work| work.is_slow = false);
    fleet.orders.retain(|order| matches!(order, Order::Together(..) | Order::Pinned(..)));
    fleet
}

/// Returns a state as the branch has it.
pub(super) fn published(state: &State) -> State {
    let mut state = state.clone();
    state.folders.retain(|_, folder| !folder.is_empty());
    let text = ledger::write_ledger(&state.ledger);
    let read = ledger::read_ledger(text.as_bytes()).unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(read == *state.ledger, "a ledger reads back as another one:\n{text}");
    state
}

/// Returns the parts that differ between two states.
pub(super) fn differences(one: &State, other: &State) -> Vec<String> {
    let files = crate::plan::plan(one, other);
    let mut found = vec![format!("{files:?}")];
    let decisions = one.decisions.changes(&other.decisions);
    found.extend(decisions.map(|change| format!("{:?} {:?}", change.before, change.after)));
    let releases = one.releases.changes(&other.releases);
    found.extend(releases.map(|change| format!("{:?} {:?}", change.before, change.after)));
    let facts = one.facts.changes(&other.facts);
    found.extend(facts.map(|change| format!("{:?} {:?}", change.before, change.after)));
    if one.ledger != other.ledger {
        found.push(format!("{:?} {:?}", one.ledger, other.ledger));
    }
    found
}

impl History {
    /// Runs passes until nothing changes: the next pass finishes a removal on which no member will report.
    /// Held workloads must stay the same.
    pub(super) fn settle(&mut self) -> Verdict {
        let first = self.pass();
        // After the approved removals, losses by statuses or time may be within the limits.
        let may_go = |key: &Key| {
            let held = first.held.iter().find(|held| held.key == *key);
            let is_of_edit = |held: &Held| held.causes.iter().any(Cause::is_edit);
            !first.approved.is_empty() && held.is_some_and(|held| !is_of_edit(held))
        };
        let names = |verdict: &Verdict| {
            let keys = verdict.held.iter().map(|held| held.key.clone());
            keys.filter(|key| !may_go(key)).collect::<Vec<_>>()
        };
        for _ in 0..40 {
            let before = self.state.clone();
            let again = self.pass();
            self.is_true(names(&first) == names(&again), || {
                format!("a second pass holds {:?} in place of {:?}", names(&again), names(&first))
            });
            if before == self.state {
                return again;
            }
        }
        let before = self.state.clone();
        self.pass();
        let plan = crate::plan::plan(&before, &self.state);
        let facts: Vec<_> =
            before.facts.changes(&self.state.facts).map(|one| (one.before, one.after)).collect();
        self.is_true(false, || {
            format!("passes over the same inputs never come to rest: {plan:?} {facts:#?}")
        });
        first
    }
}

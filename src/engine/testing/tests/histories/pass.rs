//! A pass of the hub over a history: what it looks at, and what the gate makes of it.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;
use std::sync::Arc;

use berth_base::model::{ClusterStatus, Decision, Key, Map, Shared, Timestamp, path};
use berth_base::source::{SourceFile, SourceTree};

use super::{History, published};
use crate::gate::window::{Taken, WorkloadPlaces};
use crate::gate::{Lookup, Outlook, PastPublication, Question, Span, Verdict, judge, without_gate};
use crate::hypothetical;
use crate::load::{self, Loaded};
use crate::pipeline::{Built, Inputs};
use crate::release::policy::Orders;
use crate::state::Comparison;
use crate::state::ledger::Stage;

/// A pass, with all that it looked at.
pub(super) struct Pass<'h> {
    pub(super) history: &'h History,
    pub(super) loaded: Loaded,
    pub(super) built: Built,
    pub(super) tree: SourceTree,
    pub(super) statuses: &'h Map<String, Shared<ClusterStatus>>,
    pub(super) is_edited: bool,
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
        let together = |key: &Key| {
            let together = Orders::of(&self.built.fleet, key).together();
            together.into_iter().flatten().cloned().collect()
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
            together: &together,
            is_followed: &|_| true,
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
        // The files that the last pass read, with their last good forms.
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

impl Lookup for Pass<'_> {
    type Error = Infallible;

    fn edit_alone(&self) -> Result<Vec<Map<Key, Decision>>, Infallible> {
        let facts = &self.built.desired.facts;
        Ok(self
            .with_inputs(|inputs| hypothetical::edit_alone(&self.loaded, inputs, facts, self.history.then)))
    }

    fn pasts(&self, since: Timestamp, _: &BTreeSet<&str>) -> Result<Vec<PastPublication>, Infallible> {
        let mut pasts: BTreeMap<usize, PastPublication> = BTreeMap::new();
        for (place, loss) in &self.history.state.ledger.losses {
            let Stage::Gone { before } = &loss.stage else { continue };
            if loss.since <= since {
                continue;
            }
            let number: usize = before.parse().expect("a number");
            // The current state is the one after the last of those before it.
            let state = self.history.before.get(number).unwrap_or(&self.history.state);
            let past = pasts.entry(number).or_default();
            if let Some(decision) = state.decisions.get(&loss.owner) {
                let serving = decision.picks.iter().filter(|pick| !pick.pending && !pick.held);
                let clusters = serving.map(|pick| pick.cluster.to_string()).collect();
                let paths = decision.objects.iter().map(|object| path::of_object(object).into()).collect();
                past.had.insert(loss.owner.clone(), WorkloadPlaces { clusters, paths });
            }
            past.took.push(Taken { place: place.clone(), cause: loss.cause.clone(), exempt: loss.exempt });
            let folders = state.folders.iter().map(|(cluster, folder)| {
                (cluster.clone(), Arc::new(folder.keys().cloned().collect::<BTreeSet<_>>()))
            });
            past.folders = folders.collect();
        }
        Ok(pasts.into_values().rev().collect())
    }

    fn is_rollback(&self) -> Result<bool, Infallible> {
        let desired = published(&self.built.desired);
        let mut earlier = self.history.before.iter().rev().take(self.history.limits.rollback);
        Ok(earlier.any(|state| state.decisions == desired.decisions && state.folders == desired.folders))
    }
}

//! The whole pure pipeline: a source tree, the current state, and the moment → the next state. It loads,
//! decides, renders the desired state, and releases the part that clusters get now.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::decide::{self, Decided};
use crate::load::{self, History, Loaded};
use crate::policy_tests::Side;
use crate::release::stages::ClusterLabels;
use crate::state::State;
use crate::{release, render};
use berth_base::diag::Diagnostics;
use berth_base::model::map::Change;
use berth_base::model::{
    ClusterStatus, ContentError, Contents, Decision, Fleet, Folders, Key, Map, Shared, Timestamp,
};
use berth_base::source::SourceTree;

/// The inputs that determine the next state.
#[derive(Clone, Copy)]
pub struct Inputs<'a> {
    pub tree: &'a SourceTree,
    /// The last good form of files that are broken in the tree.
    pub history: History<'a>,
    pub current: &'a State,
    pub statuses: &'a Map<String, Shared<ClusterStatus>>,
    pub now: Timestamp,
}

impl std::fmt::Debug for Inputs<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inputs").field("files", &self.tree.files.len()).field("now", &self.now).finish()
    }
}

/// The next state with its diagnostics and reasons.
#[derive(Debug)]
pub struct Built {
    pub fleet: Shared<Fleet>,
    /// The desired state in the end: all waves done, nothing pinned.
    pub desired: State,
    /// The first step towards it.
    pub state: State,
    pub diagnostics: Diagnostics,
    /// The next moment at which the state changes by itself and must be built again.
    pub next_change: Option<Timestamp>,
    /// Another moment could give another state, because of a freeze, a wait, a deadline, or a dated record.
    pub reads_moment: bool,
    /// The reasons behind rollouts, by workload.
    pub rollouts: BTreeMap<Key, release::Trace>,
}

impl Built {
    /// Returns the state that this build leads to: the desired one, except in pinned clusters.
    pub fn end(&self) -> State {
        let mut end = self.desired.clone();
        self.keep_pins(&mut end);
        end
    }

    /// Puts the copies of pinned clusters after the first step into a state.
    pub fn keep_pins(&self, end: &mut State) {
        let labels = ClusterLabels::of(&self.fleet, &self.state.facts);
        release::copies::keep_pinned(&self.fleet, &labels, &self.state, end);
    }
}

/// Loads the tree and decides, without rendering.
pub fn decide(inputs: Inputs<'_>) -> (Loaded, Decided, Diagnostics) {
    decide_loaded(load::load(inputs.tree, inputs.history), inputs)
}

/// Decides like [`decide`], over a tree that was already loaded.
pub fn decide_loaded(loaded: Loaded, inputs: Inputs<'_>) -> (Loaded, Decided, Diagnostics) {
    let (loaded, decided, diagnostics, _) = decide_after(loaded, inputs, None);
    (loaded, decided, diagnostics)
}

fn decide_after(
    mut loaded: Loaded,
    inputs: Inputs<'_>,
    cache: Option<&decide::DecisionCache>,
) -> (Loaded, Decided, Diagnostics, Option<decide::DecisionCache>) {
    let current = &inputs.current.decisions;
    let statuses = with_first_seen(inputs.current, inputs.statuses);
    let Inputs { now, .. } = inputs;
    let (mut decided, cache) = decide::decide_after(cache, &loaded.fleet, current, &statuses, now);
    let mut diagnostics = Diagnostics::new();
    diagnostics.extend(std::mem::take(&mut loaded.diagnostics));
    diagnostics.extend(std::mem::take(&mut decided.diagnostics));
    diagnostics.sort();
    (loaded, decided, diagnostics, cache)
}

/// Decides without rendering. Returns the decisions with their objects, and the next moment at which they
/// change by themselves.
pub fn place(loaded: Loaded, inputs: Inputs<'_>) -> (Map<Key, Decision>, Option<Timestamp>) {
    let (loaded, mut decided, _, _) = decide_after(loaded, inputs, None);
    render::objects(&loaded.fleet, &mut decided.decisions, previous(inputs.current));
    (decided.decisions, decided.next_change)
}

/// Returns a fleet with the decisions and facts of a state, as policy tests see it.
pub fn side<'a>(fleet: &'a Fleet, state: &'a State) -> Side<'a> {
    Side::new(decide::overlay(fleet, &state.facts), fleet, &state.decisions)
}

/// The cache that one build leaves for the next. It is valid only together with the state of this build.
#[derive(Clone, Debug)]
pub struct PipelineCache {
    decided: Option<decide::DecisionCache>,
    rendered: render::ProcessCache,
    effort: Effort,
}

/// The parts of a fleet that a build computed. It reused everything else from the build before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effort {
    pub placements: usize,
    /// The paths in clusters' folders whose copies were computed.
    pub paths: usize,
}

impl PipelineCache {
    /// Returns the fleet that was built.
    pub fn fleet(&self) -> &Shared<Fleet> {
        self.rendered.fleet()
    }

    /// Returns the parts that the build computed.
    pub fn effort(&self) -> Effort {
        self.effort
    }

    /// Drops rendered contents that were not published: they may be missing from the store.
    pub fn keep_published(&mut self, published: &Folders) {
        self.rendered.keep_published(published);
    }
}

fn previous(state: &State) -> render::Previous<'_> {
    render::Previous { decisions: &state.decisions, folders: &state.folders }
}

/// Returns the statuses with the first-seen moments of taints that the current state records.
pub fn with_first_seen<'s>(
    current: &State,
    statuses: &'s Map<String, Shared<ClusterStatus>>,
) -> Cow<'s, Map<String, Shared<ClusterStatus>>> {
    let remembers = |status: &ClusterStatus| !status.taints.is_empty();
    let mut seen = Cow::Borrowed(statuses);
    for (cluster, fact) in current.facts.iter().filter(|(_, fact)| remembers(fact)) {
        let status = seen.to_mut().or_default(cluster);
        status.cluster.clone_from(cluster);
        status.taints.clone_from(&fact.taints);
    }
    seen
}

/// Reads the tree, decides, and renders every cluster's folder into `contents`.
pub fn build(inputs: Inputs<'_>, contents: &mut dyn Contents) -> Result<Built, ContentError> {
    let loaded = load::load(inputs.tree, inputs.history);
    Ok(build_loaded(loaded, inputs, None, contents)?.0)
}

/// Builds like [`build`], over a tree that was already loaded, reusing cached decisions and copies.
pub fn build_loaded(
    loaded: Loaded,
    inputs: Inputs<'_>,
    last: Option<&PipelineCache>,
    contents: &mut dyn Contents,
) -> Result<(Built, PipelineCache), ContentError> {
    let (loaded, decided, mut diagnostics, decision_cache) =
        decide_after(loaded, inputs, last.and_then(|last| last.decided.as_ref()));
    let mut decisions = decided.decisions;
    let last = last.map(|last| &last.rendered);
    let (rendered, render_cache) =
        render::render_after(last, &loaded.fleet, &mut decisions, previous(inputs.current), contents)?;
    diagnostics.extend(rendered.diagnostics);
    let mut kept = BTreeMap::new();
    // The objects of a source must stay when it cannot be rendered, so the state has the rendered files.
    for path in &inputs.tree.rendered.files {
        if let Some(file) = inputs.tree.files.get(path) {
            kept.insert(path.to_string(), contents.put(&file.bytes)?);
        }
    }
    for (path, bytes) in loaded.kept {
        kept.insert(path, contents.put(&bytes)?);
    }
    let Inputs { current, statuses, now, .. } = inputs;
    let (folders, facts) = (rendered.folders, decided.facts);
    let desired = State { decisions, folders, facts, kept, ..State::default() };
    let mut state = desired.clone();
    let labels = &ClusterLabels::of(&loaded.fleet, &state.facts);
    let given = release::ReleaseInputs { fleet: &loaded.fleet, labels, current, statuses, now };
    let released = release::release(given, &mut state, contents)?;
    diagnostics.extend(released.diagnostics);
    diagnostics.sort();
    let next_change = decided.next_change.into_iter().chain(released.next_change).min();
    let reads_moment = next_change.is_some() || has_freezes(&loaded.fleet) || keeps_moments(current, &state);
    let effort = Effort { placements: decided.looked_at, paths: render_cache.made };
    let cache = PipelineCache { decided: decision_cache, rendered: render_cache, effort };
    let rollouts = released.traces;
    let fleet = loaded.fleet;
    Ok((Built { fleet, desired, state, diagnostics, next_change, reads_moment, rollouts }, cache))
}

fn has_freezes(fleet: &Fleet) -> bool {
    fleet.rollout_policies.values().any(|policy| !policy.freezes.is_empty())
}

/// Reports whether a step to the state `next` records the beginning of something.
fn keeps_moments(current: &State, next: &State) -> bool {
    let dates_taint = |change: Change<'_, String, Shared<ClusterStatus>>| {
        let before = change.before.map(|fact| &fact.taints);
        change.after.is_some_and(|fact| !fact.taints.is_empty() && before != Some(&fact.taints))
    };
    current.releases != next.releases || current.facts.changes(&next.facts).any(dates_taint)
}

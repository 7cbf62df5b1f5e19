//! Asks the gate about a source commit: gathers the approvals, looks up what it asks for, and returns the
//! verdict with the trailers from which anybody can repeat it.
//!
//! The verdict's inputs are the step that it is about, and besides commits its [`Basis`]. A daemon has the
//! basis from the last pass, and a proof of a rendered commit has it from that commit's trailers. The gate
//! also asks for the states of earlier rendered commits.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::PassInputs;
use super::approvals::{Approvals, concerns};
use super::error::InputError;
use crate::publish::prune_permits::{self, own_at};
use crate::publish::{CurrentState, Processed, Trailers, rollback};
use berth_base::diag::Diagnostics;
use berth_base::model::{Approval, ContentId, Decision, Digest, Fleet, Key, LabelKeys, Map, Timestamp, path};
use berth_engine::gate::window::Paths;
use berth_engine::gate::{self, HeldRecord, Limits, Outlook, PastState, Question, Span, Verdict, Wanted};
use berth_engine::policy_tests::Failed;
use berth_engine::state::{Comparison, State, decision, layout};
use berth_git::shared_refs::trailers::{ALLOW_PRUNE, GATE, HELD, PROCESSED, ROLLBACK, RULES, USED_APPROVAL};
use berth_git::{CommitId, EntryKind, Repo, TreeId};

/// The span ahead in which deadlines count as part of a change.
const AHEAD: Span = Span::hours(30 * 24);

/// A verdict, with what to write down and to say.
#[derive(Clone, Debug, Default)]
pub struct Gated {
    pub verdict: Verdict,
    /// The rendered commit that this goes back to.
    pub rollback: Option<CommitId>,
    pub trailers: Vec<(String, String)>,
    pub diagnostics: Diagnostics,
    /// Some new approval in a message matches no removal.
    pub has_idle_approval: bool,
}

impl Gated {
    /// Reports whether another moment might have given another verdict: losses and approvals count for a time.
    pub fn reads_moment(&self, inputs: &PassInputs) -> bool {
        !self.verdict.held.is_empty() || self.verdict.state.ledger != inputs.current.ledger
    }
}

/// Asks the gate.
pub fn ask(repo: &Repo, step: &Step<'_>, basis: &Basis) -> Result<Gated, InputError> {
    let approvals = Approvals::gather(repo, step, basis)?;
    let rendered = step.rendered;
    let is_edited = basis.since != Some(step.source);
    let outlook = match step.outlook.filter(|_| is_edited) {
        Some(outlook) => outlook(AHEAD.after(step.now))?,
        None => Outlook::default(),
    };
    let past_states = PastStates::of(repo);
    let mut lookup = Lookups { repo, step, basis, past_states, rollback: None };
    let before = Basis::of_trailers(&rendered.trailers);
    let mut verdict = gate::judge(
        &Question {
            states: step.states,
            step: step.first,
            now: step.now,
            before: &rendered.commit.to_string(),
            seq: rendered.trailers.seq.saturating_add(1),
            source: &step.source.to_string(),
            is_edited,
            limits: &basis.limits,
            limits_stay: before.is_some_and(|before| before.limits == basis.limits),
            failing: step.failing,
            outlook: &outlook,
            in_files: &approvals.in_files(),
            in_messages: &approvals.in_messages,
            fleet: step.fleet,
        },
        &mut lookup,
    )?;
    let rollback = lookup.rollback.filter(|_| verdict.is_rollback);
    for held in &mut verdict.held {
        let expired = approvals.expired.get(&held.digest).or_else(|| approvals.expired.get(&held.all));
        held.expired = expired.copied();
    }
    let trailers = trailers_of(step.source, basis, &verdict, rollback);
    let mut diagnostics = approvals.diagnostics.clone();
    let used = &step.states.current.ledger.used;
    approvals.explain(&verdict, used, rollback, &mut diagnostics);
    let has_idle_approval = approvals.in_messages.keys().any(|digest| !concerns(&verdict, digest));
    Ok(Gated { verdict, rollback, trailers, diagnostics, has_idle_approval })
}

/// Looks up what the gate asks for.
struct Lookups<'a> {
    repo: &'a Repo,
    step: &'a Step<'a>,
    basis: &'a Basis,
    past_states: PastStates<'a>,
    /// The earlier publication of the desired state, once it was found.
    rollback: Option<CommitId>,
}

impl gate::Lookup for &mut Lookups<'_> {
    type Error = InputError;

    fn edit_alone(&mut self) -> Result<Vec<Map<Key, Decision>>, InputError> {
        Ok((self.step.edit_alone)())
    }

    fn state_before(&mut self, commit: &str, wanted: &Wanted<'_>) -> Result<Option<PastState>, InputError> {
        self.past_states.read(commit, wanted)
    }

    fn is_rollback(&mut self) -> Result<bool, InputError> {
        let (step, limits) = (self.step, &self.basis.limits);
        let since = limits.rollback_window.before(step.now);
        let found = rollback::in_force_before(
            self.repo,
            step.rendered,
            step.states.next,
            limits.rollback,
            Some(since),
        )?;
        self.rollback = found;
        Ok(found.is_some())
    }
}

fn trailers_of(
    source: CommitId,
    basis: &Basis,
    verdict: &Verdict,
    rollback: Option<CommitId>,
) -> Vec<(String, String)> {
    let mut lines = vec![(GATE, basis.limits.to_string())];
    lines.extend(basis.since.map(|since| (PROCESSED, since.to_string())));
    let same_source = basis.rules.filter(|_| basis.since == Some(source));
    lines.extend(same_source.map(|commit| (RULES, commit.to_string())));
    let used: BTreeSet<Digest> = verdict.approved.iter().flat_map(|one| one.digests.clone()).collect();
    lines.extend(used.into_iter().map(|digest| (USED_APPROVAL, digest.to_string())));
    let prunable = verdict.prunable();
    let prunable = prunable.iter().map(|(path, clusters)| prune_permits::line(path, clusters));
    lines.extend(prunable.map(|line| (ALLOW_PRUNE, line)));
    lines.extend(verdict.held.iter().map(|held| (HELD, HeldRecord::of(held).to_string())));
    lines.extend(rollback.map(|commit| (ROLLBACK, commit.to_string())));
    lines.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// The inputs of a verdict besides the source and the rendered branch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Basis {
    pub limits: Limits,
    /// The source commit that was processed last.
    pub since: Option<CommitId>,
    /// The commit whose access rules held then.
    pub rules: Option<CommitId>,
}

/// The step that a verdict is about.
#[derive(Clone, Copy)]
pub struct Step<'a> {
    pub source: CommitId,
    /// The current state, and the desired one.
    pub states: &'a Comparison<'a>,
    /// The first step towards the desired state.
    pub first: &'a State,
    /// The workloads whose new placement makes policy tests fail.
    pub failing: &'a BTreeMap<Key, Failed>,
    /// The approvals among the source's files.
    pub files: &'a [Approval],
    pub now: Timestamp,
    /// The rendered branch, where earlier states are looked up.
    pub rendered: &'a CurrentState,
    /// Decides with the edit alone, to tell causes apart. Asked only where something is removed.
    pub edit_alone: &'a dyn Fn() -> Vec<Map<Key, Decision>>,
    /// Looks ahead to a moment for the deadlines of the source, and of the one before it.
    /// Asked only where there may be any.
    pub outlook: Option<&'a dyn Fn(Timestamp) -> Result<Outlook, InputError>>,
    pub fleet: &'a Fleet,
}

impl std::fmt::Debug for Step<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Step").field("source", &self.source).field("now", &self.now).finish()
    }
}

impl Basis {
    /// Returns the basis of the daemon's next verdict. Where the last pass was cut short, the rendered branch is
    /// newer than the processed ref, so the branch decides.
    pub fn in_force(
        limits: &Limits,
        rendered: Option<&CurrentState>,
        processed: Option<&Processed>,
    ) -> Basis {
        let commit = rendered.map(|rendered| rendered.commit);
        let (since, rules) = match (processed.filter(|processed| processed.rendered == commit), rendered) {
            (Some(processed), _) => (Some(processed.source), processed.rules),
            (None, Some(rendered)) => {
                let (source, trailers) = (rendered.trailers.source, &rendered.trailers);
                (source, source.and_then(|source| rules_of(trailers, source)))
            }
            (None, None) => (None, None),
        };
        Basis { limits: limits.clone(), since, rules }
    }

    /// The commit whose access rules hold for a source: the one before it, and as long as it is the newest,
    /// the same. `None` where nothing came before.
    pub fn rules_for(&self, source: CommitId) -> Option<CommitId> {
        if self.since == Some(source) { self.rules } else { self.since }
    }

    /// Reads the basis from a rendered commit's trailers. `None` where the gate was not asked.
    pub fn of_trailers(trailers: &Trailers) -> Option<Basis> {
        let one = |name| all(trailers, name).into_iter().next();
        Some(Basis {
            limits: one(GATE)?.parse().ok()?,
            since: one(PROCESSED).and_then(|id| id.parse().ok()),
            rules: one(RULES).and_then(|id| id.parse().ok()),
        })
    }
}

/// The labels that members may report, by what a rendered commit says.
pub fn labels_of(trailers: &Trailers) -> LabelKeys {
    Basis::of_trailers(trailers).map(|basis| basis.limits.labels).unwrap_or_default()
}

/// The commit whose access rules a rendered commit was made under.
pub fn rules_of(trailers: &Trailers, source: CommitId) -> Option<CommitId> {
    Basis::of_trailers(trailers)?.rules_for(source)
}

fn all(trailers: &Trailers, name: &str) -> Vec<String> {
    trailers.others.iter().filter(|(found, _)| found == name).map(|(_, value)| value.clone()).collect()
}

/// Reads parts of rendered trees. Clusters share most of their folders.
pub(super) struct PastStates<'r> {
    repo: &'r Repo,
    /// The paths below a cluster's folder.
    paths: BTreeMap<TreeId, Paths>,
}

impl<'r> PastStates<'r> {
    pub(super) fn of(repo: &'r Repo) -> PastStates<'r> {
        PastStates { repo, paths: BTreeMap::new() }
    }

    /// Reads the state of a rendered commit. `None` where the repository lacks it.
    pub(super) fn read(
        &mut self,
        commit: &str,
        wanted: &Wanted<'_>,
    ) -> Result<Option<PastState>, InputError> {
        let Some(commit) = commit.parse().ok().filter(|commit: &CommitId| self.repo.has_commit(*commit))
        else {
            return Ok(None);
        };
        let Some((_, own)) = own_at(self.repo, commit)? else { return Ok(None) };
        let mut decisions = Vec::new();
        for workload in &wanted.workloads {
            decisions.extend(decision_at(self.repo, own.root, workload)?);
        }
        let folders = self.folders(own.root, wanted.clusters)?;
        Ok(Some(PastState { seq: own.trailers.seq, decisions, folders }))
    }

    fn folders(
        &mut self,
        root: TreeId,
        clusters: &BTreeSet<&str>,
    ) -> Result<BTreeMap<String, Paths>, InputError> {
        let top = self.repo.tree(root)?.into_iter().find(|entry| entry.name == layout::CLUSTERS.as_bytes());
        let Some(EntryKind::Folder(top)) = top.map(|entry| entry.kind) else { return Ok(BTreeMap::new()) };
        let parts: BTreeMap<String, &str> =
            clusters.iter().map(|cluster| (path::encode(cluster), *cluster)).collect();
        let mut folders = BTreeMap::new();
        for entry in self.repo.tree(top)? {
            let cluster = parts.get(&*String::from_utf8_lossy(&entry.name));
            if let (EntryKind::Folder(id), Some(cluster)) = (entry.kind, cluster) {
                folders.insert((*cluster).to_owned(), self.below(id)?);
            }
        }
        Ok(folders)
    }

    fn below(&mut self, cluster: TreeId) -> Result<Paths, InputError> {
        if let Some(known) = self.paths.get(&cluster) {
            return Ok(known.clone());
        }
        let mut paths = BTreeSet::new();
        for namespace in self.repo.tree(cluster)? {
            let EntryKind::Folder(id) = namespace.kind else { continue };
            let name = String::from_utf8_lossy(&namespace.name);
            for file in self.repo.tree(id)? {
                paths.insert(format!("{name}/{}", String::from_utf8_lossy(&file.name)).into());
            }
        }
        let paths = Arc::new(paths);
        self.paths.insert(cluster, paths.clone());
        Ok(paths)
    }
}

/// Reads one decision of a state.
fn decision_at(repo: &Repo, root: TreeId, key: &Key) -> Result<Option<Decision>, InputError> {
    let id = decision_id(repo, root, key)?;
    Ok(id.map(|id| repo.blob(id)).transpose()?.and_then(|bytes| decision::read_decision(&bytes).ok()))
}

/// Returns the path of a decision in a state.
pub fn decision_place(key: &Key) -> String {
    format!("{}/{}", layout::DECISIONS, path::of_key(key))
}

/// Returns the id of one decision of a state.
pub fn decision_id(repo: &Repo, root: TreeId, key: &Key) -> Result<Option<ContentId>, InputError> {
    match repo.entry_at(root, &decision_place(key))? {
        Some(EntryKind::File(id)) => Ok(Some(id)),
        _ => Ok(None),
    }
}

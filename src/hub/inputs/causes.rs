//! The causes of a step: the step is computed again with edits, reports or time taken back.

use std::collections::{BTreeMap, BTreeSet};
use std::mem;
use std::sync::Arc;

use super::error::InputError;
use super::form_search::GoodForms;
use super::read_source::ReadSource;
use super::{PassInputs, form_search};
use berth_base::diag::{Pos, harmless_line};
use berth_base::model::{ClusterStatus, Key, Map, Pick, Shared, Timestamp};
use berth_base::source::{SourceFile, SourceTree};
use berth_engine::causes::{
    Blame, Causes, Edits, Effects, How, InputChange, InputKind, Seen, Trials, trace, words,
};
use berth_engine::dialects::describes_cluster;
use berth_engine::load::packages::is_marker;
use berth_engine::load::{FileCache, History};
use berth_engine::pipeline::{Built, Inputs, PipelineCache};
use berth_engine::plan::ClusterChange;
use berth_engine::state::State;
use berth_engine::state::ledger::Cause;
use berth_engine::{load, pipeline};
use berth_git as git;
use berth_git::{BlobIds, CommitId, GitError, Repo, read_file_at};

impl PassInputs {
    /// Finds the edits, reports or time behind each difference between the current state and the `next` one, which
    /// these inputs gave. None are known where the source of the current state is gone.
    pub fn causes(
        &mut self,
        repo: &Repo,
        next: &State,
        shown: fn(&Built) -> State,
    ) -> Result<Causes, InputError> {
        if self.publication.source.is_none() && !self.current.decisions.is_empty() {
            let effects = Effects::between(&self.current, next);
            let blames = vec![Blame { changes: Vec::new(), how: How::Imported }; effects.len()];
            return Ok(Causes { by_effect: effects.each_with(blames), ..Causes::default() });
        }
        if self.publication.source.is_none() {
            return Ok(Causes { is_first: true, ..Causes::default() });
        }
        let Some(source) = self.publication.source.filter(|source| repo.has_commit(*source)) else {
            return Ok(Causes::default());
        };
        let then = self.publication.moment.unwrap_or(self.now);
        let before = self.published_tree(repo, source)?;
        let ReadSource { tree, loaded, .. } = &self.source;
        let edits = Edits::between(&before, tree, |path| loaded.config.excludes(path) && !is_marker(path));
        let effects = Effects::between(&self.current, next);
        let (parsed, built) = (mem::take(&mut self.cache.parsed), self.cache.built.clone());
        let mut step = RepeatableStep {
            inputs: self,
            before,
            edits,
            effects,
            parsed,
            built,
            reports: BTreeMap::new(),
            time: None,
            last: None,
            shown,
        };
        let causes = step.causes(then, &next.facts);
        let parsed = mem::take(&mut step.parsed);
        self.cache.parsed = parsed;
        let mut causes = causes?;
        add(repo, &self.current, &mut causes)?;
        Ok(causes)
    }

    /// The source of the current state, with the last good forms that it used.
    fn published_tree(&mut self, repo: &Repo, source: CommitId) -> Result<SourceTree, InputError> {
        let mut tree = git::read_source_with_cache(repo, source, &mut self.cache.source)?;
        let kept = form_search::kept_of(repo, &self.current)?;
        tree.found.retain(|one| one.at.as_ref().is_none_or(|at| !kept.contains_key(&*at.file)));
        tree.files.extend(kept.into_iter().map(|(path, bytes)| SourceFile::new(path, bytes)));
        Ok(tree)
    }
}

/// A step that can be computed again with some of its inputs taken back.
struct RepeatableStep<'i> {
    inputs: &'i PassInputs,
    /// The source of the current state.
    before: SourceTree,
    edits: Edits,
    effects: Effects,
    parsed: FileCache,
    built: Option<PipelineCache>,
    /// The reports that differ, by their number: the cluster, what the current state read of it, and what its source
    /// would read now.
    reports: BTreeMap<usize, (String, [ClusterStatus; 2])>,
    time: Option<(usize, Timestamp)>,
    /// The state of a trial that is compared.
    shown: fn(&Built) -> State,
    /// The last trial.
    last: Option<(BTreeSet<usize>, Vec<Seen>)>,
}

/// Returns the clusters whose documents come and go.
fn clusters(edits: &Edits) -> ClusterChange {
    let names = |keys: &[Key]| {
        let clusters = keys.iter().filter(|key| describes_cluster(key));
        clusters.map(|key| key.name.as_ref().into()).collect()
    };
    ClusterChange { lost: names(&edits.gone), gained: names(&edits.came) }
}

impl RepeatableStep<'_> {
    fn causes(
        &mut self,
        then: Timestamp,
        facts: &Map<String, Shared<ClusterStatus>>,
    ) -> Result<Causes, InputError> {
        let mut inputs = mem::take(&mut self.edits.inputs);
        let mut documents = mem::take(&mut self.edits.documents);
        let clusters = clusters(&self.edits);
        if self.effects.is_empty() {
            return Ok(Causes { inputs, clusters, ..Causes::default() });
        }
        if *facts != self.inputs.current.facts {
            self.find_reports(&mut inputs)?;
        }
        if then != self.inputs.now {
            self.time = Some((inputs.len(), then));
            let words = format!("time: {then} → {}", self.inputs.now);
            inputs.push(InputChange { at: None, alike: words.clone(), words, kind: InputKind::Time });
        }
        let n_edits = documents.iter().map(Vec::len).sum();
        documents.extend((n_edits..inputs.len()).map(|number| vec![number]));
        let n_effects = self.effects.len();
        let mut traced = trace(self, &documents, n_effects)?;
        if is_under_way(&self.inputs.current) {
            // An effect that happens without all of these inputs comes from earlier ones, even if one of these alone
            // causes it too.
            let seen = self.without(&(0..inputs.len()).collect())?;
            let earlier = traced.blames.iter_mut().zip(seen).filter(|(_, seen)| *seen == Seen::After);
            earlier.for_each(|(blame, _)| *blame = Blame { changes: Vec::new(), how: How::Earlier });
        }
        let effects = mem::take(&mut self.effects);
        let by_effect = effects.each_with(traced.blames);
        Ok(Causes { inputs, by_effect, clusters, is_first: false, asked: traced.asked })
    }

    /// Finds the reports of which the source of the current state would read something else now.
    fn find_reports(&mut self, inputs: &mut Vec<InputChange>) -> Result<(), InputError> {
        let all: BTreeSet<usize> = (0..inputs.len()).collect();
        let built = self.build_without(&all)?;
        self.last = Some((all, self.effects.seen_in(&(self.shown)(&built))));
        let (was, is) = (&self.inputs.current.facts, built.state.facts);
        let clusters: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
        for cluster in clusters {
            let sides = [was, &is].map(|facts| {
                let fact = facts.get(cluster).cloned().unwrap_or_default();
                // The hub's own record, and no part of a report.
                ClusterStatus { cluster: cluster.clone(), taints: BTreeMap::new(), ..(*fact).clone() }
            });
            if sides[0] != sides[1] {
                let words = words::of_reports(cluster, &sides[0], &sides[1]);
                let kind = InputKind::Report { cluster: cluster.clone() };
                self.reports.insert(inputs.len(), (cluster.clone(), sides));
                inputs.push(InputChange { at: None, alike: words.clone(), words, kind });
            }
        }
        Ok(())
    }

    fn build_without(&mut self, taken_back: &BTreeSet<usize>) -> Result<Built, InputError> {
        let PassInputs { source: ReadSource { tree, forms, loaded, .. }, current, now, .. } = self.inputs;
        let statuses = self.statuses_without(taken_back);
        let now = match self.time {
            Some((number, then)) if taken_back.contains(&number) => then.min(*now),
            _ => *now,
        };
        let (edited, before) = (self.edits.without(tree, taken_back), &self.before);
        let parsed = &mut self.parsed;
        let (built, _) = with_before(forms, before, |history| {
            let again = load::load_with_cache(&edited, history, parsed);
            parsed.forget_unused();
            // Decisions under other doubts are other ones.
            let cache = self.built.as_ref().filter(|_| again.fleet.doubt == loaded.fleet.doubt);
            let (tree, statuses) = (&edited, &statuses);
            let inputs = Inputs { tree, history, current, statuses, now };
            pipeline::build_loaded(again, inputs, cache, &mut BlobIds)
        })?;
        Ok(built)
    }

    fn statuses_without(&self, taken_back: &BTreeSet<usize>) -> Map<String, Shared<ClusterStatus>> {
        let mut statuses = self.inputs.reports.statuses.clone();
        for (_, (cluster, [was, is])) in self.reports.iter().filter(|(number, _)| taken_back.contains(number))
        {
            let status = statuses.or_default(cluster);
            forget(status, is);
            status.replace_by(was);
        }
        statuses
    }
}

impl Trials for RepeatableStep<'_> {
    type Error = InputError;

    fn without(&mut self, taken_back: &BTreeSet<usize>) -> Result<Vec<Seen>, InputError> {
        if let Some((_, seen)) = self.last.take_if(|(last, _)| last == taken_back) {
            return Ok(seen);
        }
        let built = self.build_without(taken_back)?;
        Ok(self.effects.seen_in(&(self.shown)(&built)))
    }
}

/// Reports whether earlier inputs lead to more than the state has.
fn is_under_way(current: &State) -> bool {
    let waits = |pick: &Pick| pick.pending || pick.leaving || pick.held;
    current.ledger.pending().next().is_some()
        || current.releases.values().any(|releases| !releases.is_proven())
        || current.decisions.values().any(|decision| decision.picks.iter().any(waits))
}

/// Hands the last good forms to loading. A document that a trial breaks has its earlier form.
fn with_before<T>(forms: &GoodForms, before: &SourceTree, run: impl FnOnce(History<'_>) -> T) -> T {
    let GoodForms::Found(forms) = forms else { return forms.with(run) };
    let earlier = |path: &str| -> Option<Arc<[u8]>> { Some(before.files.get(path)?.bytes.clone()) };
    run(History::Known(&|path| forms.get(path).cloned().or_else(|| earlier(path))))
}

/// Forgets the parts of a report that another one has.
fn forget(status: &mut ClusterStatus, parts: &ClusterStatus) {
    status.labels.retain(|name, _| !parts.labels.contains_key(name));
    status.claims.retain(|name, _| !parts.claims.contains_key(name));
    status.properties.retain(|name, _| !parts.properties.contains_key(name));
    status.scores.retain(|name, _| !parts.scores.contains_key(name));
    status.workloads.retain(|name, _| !parts.workloads.contains_key(name));
    if parts.heard {
        (status.reported, status.heard) = (None, false);
    }
    if parts.silent.is_some() {
        (status.silent, status.frozen) = (None, None);
    }
}

/// The most commits that are searched for the removal of a file.
const MOST_COMMITS: usize = 200;

/// Adds the edits to the causes of changes that were held, or are still on their way.
pub(super) fn add(repo: &Repo, current: &State, causes: &mut Causes) -> Result<(), GitError> {
    if !causes.by_effect.values().any(|blame| blame.how == How::Earlier) {
        return Ok(());
    }
    let mut commits: BTreeMap<(&Key, &str), BTreeSet<&str>> = BTreeMap::new();
    for ((cluster, _), loss) in &current.ledger.losses {
        if let Cause::Edit { commit } = &loss.cause {
            commits.entry((&loss.owner, cluster)).or_default().insert(commit);
        }
    }
    let mut numbers: BTreeMap<(String, &str), Option<usize>> = BTreeMap::new();
    let Causes { inputs, by_effect, .. } = causes;
    for (effect, blame) in by_effect.iter_mut().filter(|(_, blame)| blame.how == How::Earlier) {
        let file =
            current.decisions.get(&effect.key).map(|decision| decision.source.clone()).unwrap_or_default();
        for commit in commits.get(&(&effect.key, &*effect.cluster)).into_iter().flatten() {
            let number = match numbers.get(&(file.clone(), *commit)) {
                Some(known) => *known,
                None => {
                    let edit = edit(repo, &file, commit)?;
                    let number = edit.is_some().then_some(inputs.len());
                    inputs.extend(edit);
                    numbers.insert((file.clone(), *commit), number);
                    number
                }
            };
            blame.changes.extend(number);
        }
    }
    Ok(())
}

/// Returns the edit of a file that was published with a commit: the removal of the file, where it is gone.
fn edit(repo: &Repo, file: &str, published: &str) -> Result<Option<InputChange>, GitError> {
    let published: Option<CommitId> = published.parse().ok();
    let Some(published) = published.filter(|commit| repo.has_commit(*commit)) else { return Ok(None) };
    let commit = removal(repo, file, published)?.unwrap_or(published);
    let words = format!("{}: {}", commit.short(), harmless_line(repo.commit(commit)?.subject()));
    let at = Some(Pos::file(file)).filter(|_| !file.is_empty());
    Ok(Some(InputChange { at, alike: words.clone(), words, kind: InputKind::Edit }))
}

/// Returns the commit that removed a file which a later one lacks.
fn removal(repo: &Repo, file: &str, from: CommitId) -> Result<Option<CommitId>, GitError> {
    let mut last = None;
    for commit in repo.first_parents(from).take(MOST_COMMITS) {
        if read_file_at(repo, commit.id, file)?.is_some() {
            return Ok(last);
        }
        last = Some(commit.id);
    }
    Ok(None)
}

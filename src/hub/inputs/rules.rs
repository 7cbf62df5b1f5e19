//! The access rules and policy tests for a commit. They come from an earlier commit, so that no change gives
//! itself a right or decides what it is judged by.
//!
//! Policy tests run over a change: the fleet before it, and as it will be in the end.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::sync::Arc;

use super::PassInputs;
use super::current_state::{self, LocatedState};
use super::error::InputError;
use super::gate::Basis;
use crate::publish::{self, CurrentState};
use berth_base::diag::{Diagnostic, Diagnostics, Severity};
use berth_base::model::Fleet;
use berth_base::source::{RulesFrom, SourceFile, SourceTree};
use berth_base::text::{counted, some_quoted};
use berth_engine::gate::Limits;
use berth_engine::load::{self, History};
use berth_engine::pipeline::{self, Built};
use berth_engine::policy_tests::{self, PolicyFinding, PolicyTest, judge};
use berth_git as git;
use berth_git::{CommitId, Repo, SourceCache};

/// The folders of access rules and policy tests, as their parent names them.
const FOLDERS: [&str; 2] = ["access", "policy-tests"];

/// Returns the rules of a commit as published: `kept` are the last good forms of files that were broken or
/// refused then. The rules are to judge `tree`.
pub(super) fn of(
    repo: &Repo,
    commit: Option<CommitId>,
    kept: impl FnOnce(CommitId) -> Result<BTreeMap<String, Vec<u8>>, InputError>,
    tree: &SourceTree,
    cache: &mut SourceCache,
) -> Result<RulesFrom, InputError> {
    let Some(commit) = commit else {
        return Ok(if has_rules(tree) { RulesFrom::Own } else { RulesFrom::Nowhere });
    };
    if !repo.has_commit(commit) {
        // The rules are unknown. Without any rules in the tree there were probably none.
        return if has_rules(tree) { Err(InputError::NoRules { commit }) } else { Ok(RulesFrom::Nowhere) };
    }
    let root = repo.tree(repo.commit(commit)?.tree)?;
    // Last good forms have their files' paths, so the folder shows either.
    if !root.iter().any(|entry| FOLDERS.iter().any(|folder| entry.name == folder.as_bytes())) {
        return Ok(RulesFrom::Nowhere);
    }
    let kept = kept(commit)?;
    let mut tree = git::read_source_with_cache(repo, commit, cache)?;
    if kept.is_empty() {
        return Ok(RulesFrom::Earlier(tree.into()));
    }
    tree.found.retain(|one| one.at.as_ref().is_none_or(|at| !kept.contains_key(&*at.file)));
    let form = |(path, bytes): (String, Vec<u8>)| SourceFile::new(path, bytes);
    tree.files.extend(kept.into_iter().map(form));
    Ok(RulesFrom::Earlier(tree.into()))
}

/// Reports whether the folders of a tree hold anything, even what cannot be read.
fn has_rules(tree: &SourceTree) -> bool {
    let met = tree.found.iter().filter_map(|found| Some(&*found.at.as_ref()?.file));
    tree.files.keys().map(|path| &**path).chain(met).any(is_in_folder)
}

fn is_in_folder(path: &str) -> bool {
    let is_in =
        |folder| path.strip_prefix(folder).is_some_and(|rest: &str| rest.is_empty() || rest.starts_with('/'));
    FOLDERS.into_iter().any(is_in)
}

/// The forms kept of a commit: those of the newest rendered state that was made from it, or from one before
/// it. A state made later may have kept what that later commit wrote itself.
pub(super) fn kept_of(
    repo: &Repo,
    current: Option<&CurrentState>,
    ruling: CommitId,
) -> Result<BTreeMap<String, Vec<u8>>, InputError> {
    let mut next = current.map(|current| current.commit);
    let mut later = None;
    while let Some(id) = next {
        if !repo.has_commit(id) {
            // A shallow clone ends here.
            return Err(InputError::NoRules { commit: id });
        }
        let commit = repo.commit(id)?;
        next = commit.parents.first().copied();
        let Some(source) = publish::own_source(repo, &commit)?.filter(|source| later != Some(*source)) else {
            continue;
        };
        if repo.has_commit(source) && repo.is_same_or_after(ruling, source)? {
            let kept = publish::read_state(repo, id)?.state.kept;
            let form = |(path, id)| Ok((path, repo.blob(id)?));
            return kept.into_iter().map(form).collect();
        }
        later = Some(source);
    }
    Ok(BTreeMap::new())
}

/// The commit whose rules hold for a source commit, as a daemon would have it.
pub(super) fn for_commit(
    repo: &Repo,
    located: &LocatedState,
    source: CommitId,
) -> Result<Option<CommitId>, InputError> {
    let basis = Basis::in_force(&Limits::default(), located.current.as_ref(), located.processed.as_ref());
    if basis.since.is_some() {
        let rules = basis.rules_for(source);
        refuse_cut(repo, located, rules)?;
        return Ok(rules);
    }
    // Nothing was published yet: the commit's parent decides.
    Ok(repo.commit(source)?.parents.first().copied())
}

/// The commit whose rules hold for a working tree: the one processed last, where it is a part of it.
pub(super) fn for_folder(
    repo: &Repo,
    located: &LocatedState,
    head: Option<CommitId>,
) -> Result<Option<CommitId>, InputError> {
    let (current, processed) = (located.current.as_ref(), located.processed.as_ref());
    let since = Basis::in_force(&Limits::default(), current, processed).since;
    refuse_cut(repo, located, since)?;
    match (since, head) {
        (Some(since), _) if !repo.has_commit(since) => Ok(head),
        (Some(since), Some(head)) if repo.is_same_or_after(head, since)? => Ok(Some(since)),
        _ => Ok(head),
    }
}

/// A commit that a shallow clone lacks may have had rules that are nowhere in sight.
fn refuse_cut(repo: &Repo, located: &LocatedState, rules: Option<CommitId>) -> Result<(), InputError> {
    match rules.filter(|rules| repo.is_shallow() && !repo.has_commit(*rules)) {
        Some(_) => Err(current_state::cut_off(repo, located.remote.as_deref(), "the source")?),
        None => Ok(()),
    }
}

/// Returns the commit where a change began: the common ancestor of the change and another revision.
pub(super) fn against(repo: &Repo, revision: &str, head: Option<CommitId>) -> Result<CommitId, InputError> {
    let other = repo.require(revision)?;
    let common = head.map(|head| repo.common_ancestor(head, other)).transpose()?.flatten();
    if let (None, Some(head), true) = (common, head, repo.is_shallow()) {
        return Err(current_state::cut_off(repo, None, &format!("{revision}..{}", head.short()))?);
    }
    Ok(common.unwrap_or(other))
}

/// The findings of all policy tests that have to do with a change.
#[derive(Clone, Debug, Default)]
pub struct PolicyReport {
    /// The number of tests that count for the change.
    pub counting: usize,
    /// The tests in force that the change breaks.
    pub findings: Vec<PolicyFinding>,
    /// The tests that it brings or changes itself, and breaks. They count once it is merged.
    pub foreseen: Vec<PolicyFinding>,
    /// The tests that the change brings, changes or removes.
    pub note: Option<Diagnostic>,
}

/// The longest list of tests in a note.
const LONGEST_LIST: usize = 5;

impl PassInputs {
    /// Runs the tests that hold what makes them fail. `edited` says that the source is not the one processed last.
    pub(crate) fn holding_findings(&self, built: &Built, edited: bool) -> Vec<PolicyFinding> {
        let tests = self.source.loaded.tests.counting.iter().filter(|test| test.holds);
        self.findings_of(&tests.collect::<Vec<_>>(), built, edited)
    }

    /// Runs all tests, and those that the change brings itself.
    pub fn policy_report(&self, built: &Built, edited: bool) -> PolicyReport {
        let tests = &self.source.loaded.tests;
        let (new, removed) = policy_tests::changes(&tests.counting, &tests.own);
        let findings = self.findings_of(&tests.counting.iter().collect::<Vec<_>>(), built, edited);
        let mut foreseen = self.findings_of(&new, built, edited);
        for finding in &mut foreseen {
            finding.severity = Severity::Warning;
            finding.holds = false;
        }
        let names: Vec<&str> =
            new.iter().map(|test| &*test.name).chain(removed.iter().map(String::as_str)).collect();
        let note = (!names.is_empty()).then(|| {
            let tests = counted(names.len(), "policy test");
            let message = format!(
                "this adds, changes or removes {tests} ({}), with effect after the merge: the tests before it \
                 judge this change",
                some_quoted(&names, LONGEST_LIST)
            );
            Diagnostic::note(message)
        });
        PolicyReport { counting: tests.counting.len(), findings, foreseen, note }
    }

    fn findings_of(&self, tests: &[&Arc<PolicyTest>], built: &Built, edited: bool) -> Vec<PolicyFinding> {
        if tests.is_empty() {
            return Vec::new();
        }
        let before = match &self.source.tree.rules_from {
            RulesFrom::Earlier(base) if edited && self.needs_earlier(tests, built) => {
                Cow::Owned(fleet_of(base))
            }
            _ => Cow::Borrowed(&*built.fleet),
        };
        let before = pipeline::side(&before, &self.current);
        judge(tests.iter().copied(), &before, &pipeline::side(&built.fleet, &built.desired))
    }

    /// Reports whether tests look at the fleet before the change, which is to be read: for its clusters and labels,
    /// and for workloads that the change removes.
    fn needs_earlier(&self, tests: &[&Arc<PolicyTest>], built: &Built) -> bool {
        let published = self.current.decisions.values().filter(|decision| !decision.objects.is_empty());
        tests.iter().any(|test| test.reads_earlier())
            || published.into_iter().any(|decision| !built.fleet.workloads.contains_key(&decision.key))
    }
}

/// The fleet of an earlier tree, in which last good forms stand in place of broken files.
fn fleet_of(base: &SourceTree) -> Fleet {
    let tree = SourceTree { rules_from: RulesFrom::Nowhere, ..base.clone() };
    (*load::load(&tree, History::None).fleet).clone()
}

impl PolicyReport {
    /// All findings, and the note, as diagnostics.
    pub fn diagnostics(&self) -> Diagnostics {
        let mut diagnostics = Diagnostics::new();
        diagnostics.extend(self.findings.iter().map(PolicyFinding::diagnostic));
        diagnostics.extend(self.foreseen.iter().map(|finding| {
            let after = "the test counts once this is merged";
            finding.diagnostic().hint(after)
        }));
        diagnostics.extend(self.note.clone());
        diagnostics
    }
}

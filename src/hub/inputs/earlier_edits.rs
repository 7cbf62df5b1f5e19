//! Changes that earlier edits lead to → the commits with these edits, as the ledger remembers them.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::diag::{Pos, harmless_line};
use berth_base::model::Key;
use berth_engine::causes::{Causes, How, InputChange, InputKind};
use berth_engine::state::State;
use berth_engine::state::ledger::Cause;
use berth_git::{CommitId, GitError, Repo, read_file_at};

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

//! Selects the commits to prove from a commit, branch or range: oldest first, along first parents.

use super::error::VerifyError;
use berth_git::{CommitId, Repo};

/// Selects all commits of a branch or of `A..B`, and a single one for any other revision. Either end of a range may
/// be omitted: it begins with the branch, and ends with `rendered`.
pub fn select(repo: &Repo, wanted: &str, rendered: &str) -> Result<Vec<CommitId>, VerifyError> {
    let Some((base, tip)) = wanted.split_once("..") else {
        let tip = repo.require(wanted)?;
        return if is_branch(repo, wanted) { line(repo, None, tip) } else { Ok(vec![tip]) };
    };
    let tip = if tip.is_empty() { rendered } else { tip };
    let end = repo.require(tip)?;
    if base.is_empty() {
        return line(repo, None, end);
    }
    let start = repo.require(base)?;
    let commits = line(repo, Some(start), end)?;
    let joins = match commits.first() {
        Some(first) => repo.commit(*first)?.parents.first() == Some(&start),
        None => true,
    };
    if joins { Ok(commits) } else { Err(VerifyError::NotBefore { base: base.into(), tip: tip.into() }) }
}

fn is_branch(repo: &Repo, name: &str) -> bool {
    let full = ["", "refs/", "refs/heads/", "refs/remotes/"].map(|folder| format!("{folder}{name}"));
    full.iter().any(|full| full.starts_with("refs/") && repo.read_ref(full).is_ok_and(|id| id.is_some()))
}

/// Returns the first parents from `tip` back to `after`, without `after`.
fn line(repo: &Repo, after: Option<CommitId>, tip: CommitId) -> Result<Vec<CommitId>, VerifyError> {
    let mut commits = Vec::new();
    let mut next = Some(tip);
    while let Some(commit) = next.filter(|commit| Some(*commit) != after) {
        // The boundary of a shallow clone.
        if commit != tip && !repo.has_commit(commit) {
            break;
        }
        commits.push(commit);
        next = repo.commit(commit)?.parents.first().copied();
    }
    commits.reverse();
    Ok(commits)
}

//! The members' last reports, from their status refs. A status counts only for its own name.

use berth_base::model::{Map, Shared};
use std::collections::BTreeMap;

use super::file_ref;
use super::refs::Refs;
use crate::{CommitId, GitError, Repo};
use berth_base::cache::Cache;
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::model::ClusterStatus;

/// The one file of a status commit.
pub const STATUS_FILE: &str = "status.yaml";

/// The statuses or faults of commits. A commit never changes, so each is read once.
pub type StatusCache = Cache<CommitId, Result<Shared<ClusterStatus>, String>>;

/// All statuses that were read.
#[derive(Clone, Debug, Default)]
pub struct Statuses {
    pub by_cluster: Map<String, Shared<ClusterStatus>>,
    /// The statuses that cannot be used.
    pub diagnostics: Diagnostics,
}

/// Reads all statuses.
pub fn read_statuses(repo: &Repo, refs: &Refs) -> Result<Statuses, GitError> {
    Ok(read_listed(repo, refs, &repo.list_refs(&refs.status)?, &mut StatusCache::default()))
}

/// Reads the statuses that these refs point to. The cache forgets all others.
pub fn read_listed(
    repo: &Repo,
    refs: &Refs,
    listed: &BTreeMap<String, CommitId>,
    cache: &mut StatusCache,
) -> Statuses {
    let mut statuses = Statuses::default();
    for (name, commit) in listed {
        let read = cache.get(commit).unwrap_or_else(|| match read_commit(repo, *commit) {
            Ok(read) => {
                let read = read.map(Shared::from);
                cache.insert(*commit, read.clone());
                read
            }
            // Reading may go well another time, when the commit has arrived.
            Err(error) => Err(error.to_string()),
        });
        match read.and_then(|status| checked(refs, name, status)) {
            Ok(status) => drop(statuses.by_cluster.insert(status.cluster.clone(), status)),
            Err(fault) => {
                let message = format!("this status is ignored: {fault}");
                statuses.diagnostics.push(Diagnostic::warning(Pos::file(name.clone()), message));
            }
        }
    }
    cache.forget_unused();
    statuses
}

/// Reads a member's last report, if it is readable.
pub fn read_status(repo: &Repo, refs: &Refs, cluster: &str) -> Result<Option<ClusterStatus>, GitError> {
    let Some(commit) = repo.read_ref(&refs.status_of(cluster))? else { return Ok(None) };
    Ok(read_commit(repo, commit)?.ok().filter(|status| status.cluster == cluster))
}

fn checked(refs: &Refs, name: &str, status: Shared<ClusterStatus>) -> Result<Shared<ClusterStatus>, String> {
    if refs.status_of(&status.cluster) != name {
        return Err(format!("it is a status of `{}`", status.cluster));
    }
    Ok(status)
}

/// Reads the status, or returns the reason why the commit has none.
fn read_commit(repo: &Repo, commit: CommitId) -> Result<Result<ClusterStatus, String>, GitError> {
    Ok(match file_ref::file(repo, commit, STATUS_FILE)? {
        Some(bytes) => berth_base::status::read_status(&bytes),
        None => Err(format!("it has no `{STATUS_FILE}`")),
    })
}

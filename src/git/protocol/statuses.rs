//! The members' last reports, from their status refs. A status counts only for its own name.

use std::collections::BTreeMap;

use super::file_ref;
use super::refs::Refs;
use crate::{CommitId, GitError, Repo};
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::model::ClusterStatus;

/// The one file of a status commit.
pub const STATUS_FILE: &str = "status.yaml";

/// Reads all statuses by cluster. Statuses that cannot be used are reported.
pub fn read_statuses(
    repo: &Repo,
    refs: &Refs,
) -> Result<(BTreeMap<String, ClusterStatus>, Diagnostics), GitError> {
    let mut statuses = BTreeMap::new();
    let mut found = Diagnostics::new();
    for (name, commit) in repo.list_refs(&refs.status)? {
        match checked(repo, refs, &name, commit) {
            Ok(status) => {
                statuses.insert(status.cluster.clone(), status);
            }
            Err(fault) => {
                let message = format!("this status is ignored: {fault}");
                found.push(Diagnostic::warning(Pos::file(name), message));
            }
        }
    }
    Ok((statuses, found))
}

/// Reads a member's last report, if it is readable.
pub fn read_status(repo: &Repo, refs: &Refs, cluster: &str) -> Result<Option<ClusterStatus>, GitError> {
    let Some(commit) = repo.read_ref(&refs.status_of(cluster))? else { return Ok(None) };
    Ok(read_commit(repo, commit)?.ok().filter(|status| status.cluster == cluster))
}

fn checked(repo: &Repo, refs: &Refs, name: &str, commit: CommitId) -> Result<ClusterStatus, String> {
    let status = read_commit(repo, commit).map_err(|error| error.to_string())??;
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

//! The members' last reports, from their status refs. A status counts only for its own name.

use berth_base::model::{Map, Shared};
use std::collections::BTreeSet;

use super::file_ref;
use super::refs::Refs;
use crate::{CommitId, GitError, Repo};
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::model::ClusterStatus;

/// The one file of a status commit.
pub const STATUS_FILE: &str = "status.yaml";

/// The statuses that were read last, and the refs that they come from.
#[derive(Clone, Debug, Default)]
pub struct StatusCache {
    listed: Map<String, CommitId>,
    /// By the name of the ref.
    read: Map<String, Result<Shared<ClusterStatus>, Fault>>,
    by_cluster: Map<String, Shared<ClusterStatus>>,
}

#[derive(Clone, Debug)]
enum Fault {
    /// It stays for as long as the commit does.
    Lasting(String),
    /// Reading may go well another time, when the commit has arrived.
    Passing(String),
}

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

/// Reads the statuses that these refs point to: those of refs that moved since the last call.
pub fn read_listed(
    repo: &Repo,
    refs: &Refs,
    listed: &Map<String, CommitId>,
    cache: &mut StatusCache,
) -> Statuses {
    let StatusCache { listed: before, read, by_cluster } = cache;
    let moved = before.changes(listed).map(|one| one.key.clone());
    let passing = read.iter().filter(|(_, read)| matches!(read, Err(Fault::Passing(_))));
    let names: BTreeSet<String> = moved.chain(passing.map(|(name, _)| name.clone())).collect();
    for name in names {
        if let Some(Ok(before)) = read.remove(&name) {
            by_cluster.remove(&before.cluster);
        }
        let Some(commit) = listed.get(&name) else { continue };
        let status = match read_commit(repo, *commit) {
            Ok(read) => read.and_then(|status| checked(refs, &name, status)).map_err(Fault::Lasting),
            Err(error) => Err(Fault::Passing(error.to_string())),
        };
        let status = status.map(Shared::from);
        if let Ok(status) = &status {
            by_cluster.insert(status.cluster.clone(), status.clone());
        }
        read.insert(name, status);
    }
    *before = listed.clone();
    let warning = |(name, read): (&String, &Result<Shared<ClusterStatus>, Fault>)| {
        let (Fault::Lasting(fault) | Fault::Passing(fault)) = read.as_ref().err()?;
        Some(Diagnostic::warning(Pos::file(name.clone()), format!("this status is ignored: {fault}")))
    };
    let mut diagnostics = Diagnostics::new();
    diagnostics.extend(read.iter().filter_map(warning));
    Statuses { by_cluster: by_cluster.clone(), diagnostics }
}

/// Reads a member's last report, if it is readable.
pub fn read_status(repo: &Repo, refs: &Refs, cluster: &str) -> Result<Option<ClusterStatus>, GitError> {
    let Some(commit) = repo.read_ref(&refs.status_of(cluster))? else { return Ok(None) };
    Ok(read_commit(repo, commit)?.ok().filter(|status| status.cluster == cluster))
}

fn checked(refs: &Refs, name: &str, status: ClusterStatus) -> Result<ClusterStatus, String> {
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

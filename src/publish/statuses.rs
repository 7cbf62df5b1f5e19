//! What members last reported, from their status refs. A status counts only for its own name.

use std::collections::BTreeMap;

use super::error::PublishError;
use super::refs::Refs;
use super::single;
use crate::diag::{Diagnostic, Diagnostics, Pos};
use crate::git::{CommitId, Repo};
use crate::model::ClusterStatus;
use crate::state::record;

const FILE: &str = "status.yaml";

/// All statuses by cluster; those that can not be used are reported.
pub fn read_statuses(
    repo: &Repo,
    refs: &Refs,
) -> Result<(BTreeMap<String, ClusterStatus>, Diagnostics), PublishError> {
    let mut statuses = BTreeMap::new();
    let mut found = Diagnostics::new();
    for (name, commit) in repo.list_refs(&refs.status)? {
        match read_status(repo, refs, &name, commit) {
            Ok(status) => {
                statuses.insert(status.cluster.clone(), status);
            }
            Err(fault) => {
                let message = format!("this status does not count: {fault}");
                found.push(Diagnostic::warning(Pos::file(name), message));
            }
        }
    }
    Ok((statuses, found))
}

fn read_status(repo: &Repo, refs: &Refs, name: &str, commit: CommitId) -> Result<ClusterStatus, String> {
    let bytes = single::file(repo, commit, FILE).map_err(|error| error.to_string())?;
    let bytes = bytes.ok_or_else(|| format!("it has no `{FILE}`"))?;
    let status = record::read_status(&bytes)?;
    if refs.status_of(&status.cluster) != name {
        return Err(format!("it speaks for `{}`", status.cluster));
    }
    Ok(status)
}

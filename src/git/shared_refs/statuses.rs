//! The members' last statuses, from their refs and from the commit that gathers those sent by POST. A status
//! counts only for the cluster that it names; if a cluster has two, the newer counts.
//!
//! The commit that gathers has a file per cluster, and its history is never read. Files are spread over
//! folders by a digest of their names, so that a few new statuses change a few small trees.

use std::collections::BTreeSet;

use sha2::{Digest as _, Sha256};

use super::file_ref;
use super::refs::Refs;
use crate::{CommitId, EntryKind, GitError, Repo};
use berth_base::diag::{Diagnostic, Diagnostics, Pos};
use berth_base::model::{ClusterStatus, ContentId, Map, Shared, path};
use berth_base::text::hex;

/// The one file of a status commit.
pub const STATUS_FILE: &str = "status.yaml";

/// The statuses read last, and the places they came from.
#[derive(Clone, Debug, Default)]
pub struct StatusCache {
    places: Map<String, Content>,
    /// By place.
    read: Map<String, Result<Shared<ClusterStatus>, Fault>>,
    by_cluster: Map<String, Shared<ClusterStatus>>,
    /// The commit of gathered statuses, and its files.
    gathered: Option<(CommitId, Map<String, ContentId>)>,
}

/// The content of a place: a status ref, or a file of the gathered statuses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Commit(CommitId),
    File(ContentId),
    /// The commit of gathered statuses cannot be listed.
    Unlisted,
}

#[derive(Clone, Debug)]
enum Fault {
    /// A fault of the content: reading it again gives the same.
    Lasting(String),
    /// A missing object, which may arrive later.
    Passing(String),
}

/// All statuses read.
#[derive(Clone, Debug, Default)]
pub struct Statuses {
    pub by_cluster: Map<String, Shared<ClusterStatus>>,
    /// The reasons why statuses are unusable.
    pub diagnostics: Diagnostics,
    /// The places with unusable statuses.
    faulty: BTreeSet<String>,
}

impl Statuses {
    /// Reports whether the cluster may have a status that is unusable.
    pub fn may_hide(&self, repo: &Repo, refs: &Refs, cluster: &str) -> Result<bool, GitError> {
        let is_faulty = self.faulty.contains(&refs.statuses)
            || !self.faulty.is_empty() && self.faulty.contains(&refs.gathered_status_of(cluster));
        // A dangling ref is in no list.
        Ok(is_faulty || repo.has_ref(&refs.status_of(cluster))?)
    }
}

/// Lists the refs with statuses.
pub fn list_statuses(repo: &Repo, refs: &Refs) -> Result<Map<String, CommitId>, GitError> {
    let mut listed = repo.list_refs(&refs.status)?;
    if let Some(commit) = repo.list_refs(&refs.statuses)?.get(&refs.statuses) {
        listed.insert(refs.statuses.clone(), *commit);
    }
    Ok(listed)
}

/// Reads all statuses.
pub fn read_statuses(repo: &Repo, refs: &Refs) -> Result<Statuses, GitError> {
    Ok(read_listed(repo, refs, &list_statuses(repo, refs)?, &mut StatusCache::default()))
}

/// Reads the statuses of these refs. Only changed ones are read again.
pub fn read_listed(
    repo: &Repo,
    refs: &Refs,
    listed: &Map<String, CommitId>,
    cache: &mut StatusCache,
) -> Statuses {
    let places = cache.places_of(repo, refs, listed);
    let StatusCache { places: before, read, by_cluster, .. } = cache;
    let moved = before.changes(&places).map(|one| one.key.clone());
    let passing = read.iter().filter(|(_, read)| matches!(read, Err(Fault::Passing(_))));
    let names: BTreeSet<String> = moved.chain(passing.map(|(name, _)| name.clone())).collect();
    let mut clusters: BTreeSet<String> = BTreeSet::new();
    for name in names {
        if let Some(Ok(before)) = read.remove(&name) {
            clusters.insert(before.cluster.clone());
        }
        let Some(content) = places.get(&name) else { continue };
        let status = match read_content(repo, *content) {
            Ok(read) => read.and_then(|status| checked(refs, &name, status)).map_err(Fault::Lasting),
            Err(error) => Err(Fault::Passing(error.to_string())),
        };
        let status = status.map(Shared::from);
        clusters.extend(status.as_ref().ok().map(|status| status.cluster.clone()));
        read.insert(name, status);
    }
    for cluster in clusters {
        let places = [refs.status_of(&cluster), refs.gathered_status_of(&cluster)];
        let found = places.iter().filter_map(|place| read.get(place)?.as_ref().ok());
        match found.max_by_key(|status| status.reported).cloned() {
            Some(newest) => drop(by_cluster.insert(cluster, newest)),
            None => drop(by_cluster.remove(&cluster)),
        }
    }
    *before = places;
    let warning = |(name, read): (&String, &Result<Shared<ClusterStatus>, Fault>)| {
        let (Fault::Lasting(fault) | Fault::Passing(fault)) = read.as_ref().err()?;
        Some(Diagnostic::warning(Pos::file(name.clone()), format!("this status is ignored: {fault}")))
    };
    let mut diagnostics = Diagnostics::new();
    diagnostics.extend(read.iter().filter_map(warning));
    let faulty = read.iter().filter(|(_, read)| read.is_err()).map(|(name, _)| name.clone()).collect();
    Statuses { by_cluster: by_cluster.clone(), diagnostics, faulty }
}

impl StatusCache {
    /// Reports whether a status is unreadable because objects are missing.
    pub fn lacks_objects(&self) -> bool {
        self.read.values().any(|read| matches!(read, Err(Fault::Passing(_))))
    }

    /// Returns the places of statuses that these refs lead to.
    fn places_of(
        &mut self,
        repo: &Repo,
        refs: &Refs,
        listed: &Map<String, CommitId>,
    ) -> Map<String, Content> {
        let mut places: Map<String, Content> = Map::new();
        for (name, commit) in listed.iter().filter(|(name, _)| **name != refs.statuses) {
            places.insert(name.clone(), Content::Commit(*commit));
        }
        let Some(commit) = listed.get(&refs.statuses).copied() else { return places };
        if self.gathered.as_ref().is_none_or(|(of, _)| *of != commit) {
            self.gathered = list(repo, commit).ok().map(|files| (commit, files));
        }
        match &self.gathered {
            None => drop(places.insert(refs.statuses.clone(), Content::Unlisted)),
            Some((_, files)) => {
                for (path, id) in files {
                    places.insert(format!("{}:{path}", refs.statuses), Content::File(*id));
                }
            }
        }
        places
    }
}

/// Reads a member's last status from its ref, if it is readable.
pub fn read_status(repo: &Repo, refs: &Refs, cluster: &str) -> Result<Option<ClusterStatus>, GitError> {
    let Some(commit) = repo.read_ref(&refs.status_of(cluster))? else { return Ok(None) };
    Ok(read_content(repo, Content::Commit(commit))?.ok().filter(|status| status.cluster == cluster))
}

fn checked(refs: &Refs, name: &str, status: ClusterStatus) -> Result<ClusterStatus, String> {
    let own = [refs.status_of(&status.cluster), refs.gathered_status_of(&status.cluster)];
    if own.iter().any(|own| own == name) {
        return Ok(status);
    }
    Err(format!("it is a status of `{}`", status.cluster))
}

/// Reads a status, or returns the reason why the content is not one.
fn read_content(repo: &Repo, content: Content) -> Result<Result<ClusterStatus, String>, GitError> {
    let bytes = match content {
        Content::Commit(commit) => file_ref::file(repo, commit, STATUS_FILE)?,
        Content::File(id) => Some(repo.blob(id)?),
        Content::Unlisted => return Ok(Err("its commit cannot be read".to_owned())),
    };
    Ok(match bytes {
        Some(bytes) => berth_base::status::read_status(&bytes),
        None => Err(format!("it has no `{STATUS_FILE}`")),
    })
}

/// Returns the path of a cluster's status.
pub fn path_of(cluster: &str) -> String {
    let digest = Sha256::digest(cluster.as_bytes());
    format!("{}/{}.yaml", hex(&digest[..1]), path::encode(cluster))
}

/// Lists the status files of the commit by path. Skips other files.
pub fn list(repo: &Repo, commit: CommitId) -> Result<Map<String, ContentId>, GitError> {
    let mut files = Map::new();
    for folder in repo.tree(repo.commit(commit)?.tree)? {
        let (EntryKind::Folder(tree), Ok(folder)) = (folder.kind, String::from_utf8(folder.name)) else {
            continue;
        };
        for file in repo.tree(tree)? {
            if let (EntryKind::File(id), Ok(name)) = (file.kind, String::from_utf8(file.name)) {
                files.insert(format!("{folder}/{name}"), id);
            }
        }
    }
    Ok(files)
}

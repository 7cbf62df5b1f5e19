//! A snapshot of the refs that a pass depends on, to decide whether another pass has anything to do.

use sha2::{Digest as _, Sha256};

use super::error::PassError;
use super::settings::Settings;
use super::source_branch::find_source;
use berth_base::model::Map;
use berth_git::protocol::list_statuses;
use berth_git::{CommitId, Recent, Repo};

/// The refs that a pass depends on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefSnapshot {
    /// The source and the statuses, as they were before the pass read them: later ones are for the next pass.
    pub(super) source: (String, CommitId),
    pub(super) statuses: Map<String, CommitId>,
    pub(super) own: OwnRefs,
}

/// The refs that berth writes, as they were after the pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct OwnRefs {
    pub(super) rendered: Option<CommitId>,
    pub(super) clusters: Map<String, CommitId>,
    /// The branches of clusters whose folder another program applies.
    pub(super) branches: Map<String, CommitId>,
}

/// Reads the refs as they are now.
pub(crate) fn snapshot_refs(settings: &Settings) -> Result<RefSnapshot, PassError> {
    let repo = Repo::open(&settings.repo)?;
    let source = find_source(&repo, settings)?;
    RefSnapshot::upon(source, &repo, settings)
}

/// Reports whether no ref has moved. Checks the source first, because it moves most often, and the other refs are
/// many.
pub(super) fn is_as_seen(
    settings: &Settings,
    seen: &RefSnapshot,
    recent: &Recent,
) -> Result<bool, PassError> {
    let repo = Repo::open(&settings.repo)?.recalling(recent);
    let source = find_source(&repo, settings)?;
    Ok(source == seen.source && RefSnapshot::upon(source, &repo, settings)? == *seen)
}

impl RefSnapshot {
    /// Reads all refs except the source.
    fn upon(source: (String, CommitId), repo: &Repo, settings: &Settings) -> Result<RefSnapshot, PassError> {
        let statuses = list_statuses(repo, &settings.refs)?;
        Ok(RefSnapshot { source, statuses, own: OwnRefs::read(repo, settings)? })
    }

    pub(super) fn source(&self) -> CommitId {
        self.source.1
    }

    /// Adds the refs with their commits to a digest.
    pub(super) fn add_to(&self, digest: &mut Sha256) {
        let RefSnapshot { source, statuses, own: OwnRefs { rendered, clusters, branches } } = self;
        // A ref's name contains no line break.
        let mut add = |name: &str, CommitId(id): &CommitId| {
            digest.update(name);
            digest.update("\n");
            digest.update(id);
        };
        add(&source.0, &source.1);
        rendered.iter().for_each(|id| add("rendered", id));
        for (list, refs) in [("statuses", statuses), ("clusters", clusters), ("branches", branches)] {
            add(list, &source.1);
            refs.iter().for_each(|(name, id)| add(name, id));
        }
    }
}

impl OwnRefs {
    fn read(repo: &Repo, settings: &Settings) -> Result<OwnRefs, PassError> {
        let refs = &settings.refs;
        Ok(OwnRefs {
            rendered: repo.read_ref(&refs.rendered)?,
            clusters: repo.list_refs(&refs.clusters)?,
            branches: repo.list_refs(&refs.cluster_branches)?,
        })
    }
}

//! Stores the diagnostics of a pass that had nothing to do, with a digest of everything that it depended on. While
//! that is unchanged, the next process also has nothing to do and ends at once.
//!
//! A snapshot of the refs that a pass depends on decides whether another pass has anything to do.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::branches::find_source;
use super::error::PassError;
use super::pass::PassResult;
use super::settings::Settings;
use crate::publish::own_files;
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::{Map, Timestamp};
use berth_base::text::hex;
use berth_git::shared_refs::list_statuses;
use berth_git::{CommitId, GitError, Recent, Repo};

const FILE: &str = "cache/idle.json";

/// The version of this build, and a digest of its sources.
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("BERTH_SOURCES"));

/// The stored note about such a pass.
#[derive(Debug, Serialize, Deserialize)]
struct IdlePass {
    /// The digest of everything that the pass depended on, and of the fields below.
    digest: String,
    made: Timestamp,
    next_change: Option<Timestamp>,
    diagnostics: Vec<Diagnostic>,
}

/// Returns the source and diagnostics of a pass that would have nothing to do, if one is noted.
pub(super) fn known(settings: &Settings, clock: Timestamp) -> Option<(CommitId, Diagnostics)> {
    let repo = Repo::open(&settings.repo).ok()?;
    let note: IdlePass = serde_json::from_str(&own_files::read(&own_files::path(&repo, FILE))?).ok()?;
    if clock < note.made || note.next_change.is_some_and(|at| at <= clock) {
        return None;
    }
    let seen = snapshot_refs(settings).ok()?;
    if note.digest != digest(&repo, settings, &seen, &note).ok()? {
        return None;
    }
    let mut diagnostics = Diagnostics::new();
    diagnostics.extend(note.diagnostics);
    Some((seen.source(), diagnostics))
}

/// Stores a note about a pass that left nothing to do.
pub(super) fn note(settings: &Settings, clock: Timestamp, passed: &PassResult) -> Option<()> {
    if !passed.is_steady {
        return None;
    }
    let repo = Repo::open(&settings.repo).ok()?;
    let mut note = IdlePass {
        digest: String::new(),
        made: clock,
        next_change: passed.next_change,
        diagnostics: passed.diagnostics.iter().cloned().collect(),
    };
    note.digest = digest(&repo, settings, &passed.seen, &note).ok()?;
    own_files::replace(&own_files::path(&repo, FILE), &serde_json::to_string(&note).ok()?).ok()
}

/// Returns the digest of a note and of everything that its pass depended on, except the clock.
fn digest(repo: &Repo, settings: &Settings, seen: &RefSnapshot, note: &IdlePass) -> Result<String, GitError> {
    // Refs that a pass writes. Others may have removed them since.
    let [processed, report] =
        [&settings.refs.processed, &settings.refs.report].map(|name| repo.read_ref(name));
    let written = [processed?, report?].map(|id| id.map(|id| id.to_string()));
    let IdlePass { digest: _, made, next_change, diagnostics } = note;
    let all = json!([BUILD, settings.inputs(), written, made, next_change, diagnostics]);
    let mut digest = Sha256::new_with_prefix(all.to_string());
    seen.add_to(&mut digest);
    Ok(hex(&digest.finalize()))
}

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
fn snapshot_refs(settings: &Settings) -> Result<RefSnapshot, PassError> {
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

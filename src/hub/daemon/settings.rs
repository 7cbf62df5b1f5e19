//! The settings of a daemon.

use std::path::PathBuf;

use serde_json::{Value as Json, json};

use super::previews::PreviewRule;
use crate::next_commit::Exemptions;
use crate::verify::trust::Anchors;
use berth_base::model::Timestamp;
use berth_base::progress::Progress;
use berth_engine::gate::Limits;
use berth_engine::gate::limits::Limit;
use berth_git::Identity;
use berth_git::shared_refs::Refs;
use berth_git::transport::Limits as GitLimits;

/// The settings of a daemon. Set by flags and environment only, never by the fleet repository.
#[derive(Clone, Debug)]
pub struct Settings {
    pub repo: PathBuf,
    /// The source branch. `None`: the branch that HEAD names.
    pub source: Option<String>,
    pub refs: Refs,
    pub identity: Identity,
    /// The removals that need no approval.
    pub limits: Limits,
    /// The share of late members beyond which no workload moves away from silent clusters.
    pub max_silent: Limit,
    /// Allows the source to go back, or to be another branch.
    pub allow_rewind: bool,
    /// Allows a rendered branch other than the one processed last.
    pub allow_rewritten: bool,
    /// Allows a state without objects after one that had some.
    pub allow_empty: bool,
    /// The keys and commits to trust on the rendered branch.
    pub anchors: Anchors,
    /// The repository is a copy of a remote; a failed push resets it.
    pub is_copy: bool,
    /// The interval in seconds at which cluster refs confirm that they are the newest. `None`: never.
    pub heartbeat: Option<i64>,
    /// Allows a first state where the remote's state was not fetched.
    pub first: bool,
    /// The branches that get a preview.
    pub previews: PreviewRule,
    /// The branch with the page, by its full name. It gets no preview.
    pub page: Option<String>,
    /// The limits of the `git` that repacks the repository.
    pub git: GitLimits,
    /// Another output shows the state, so a process makes its first pass even if nothing moved.
    pub is_shown: bool,
    /// Receives the progress of passes.
    pub progress: Progress,
}

impl Settings {
    /// Returns the default settings, for the branch that HEAD names.
    pub fn of(repo: impl Into<PathBuf>) -> Settings {
        Settings {
            repo: repo.into(),
            source: None,
            refs: Refs::default(),
            identity: Identity::default(),
            limits: Limits::default(),
            max_silent: Limits::SILENT,
            allow_rewind: false,
            allow_rewritten: false,
            allow_empty: false,
            anchors: Anchors::default(),
            is_copy: false,
            heartbeat: None,
            first: false,
            previews: PreviewRule::default(),
            page: None,
            git: GitLimits::default(),
            is_shown: false,
            progress: Progress::default(),
        }
    }

    /// Returns the last heartbeat of cluster refs and the next one. Round numbers, so that two daemons write the same
    /// commits.
    pub(super) fn beat(&self, clock: Timestamp) -> Option<(Timestamp, Timestamp)> {
        let length = self.heartbeat.filter(|length| *length > 0)?;
        let last = clock.as_second().div_euclid(length).checked_mul(length)?;
        let at = |second| Timestamp::from_second(second).ok();
        Some((at(last)?, at(last.checked_add(length)?)?))
    }

    /// Returns all settings that affect the result of a pass. Previews do not.
    pub(super) fn inputs(&self) -> Json {
        let Settings {
            repo: _,
            source,
            refs:
                Refs {
                    rendered,
                    clusters,
                    cluster_branches,
                    status,
                    statuses,
                    processed,
                    report,
                    leader: _,
                    preview: _,
                    root,
                },
            identity: Identity { name, email, signer, fleet },
            limits,
            max_silent,
            allow_rewind,
            allow_rewritten,
            allow_empty,
            anchors: Anchors { keys, fleet: trusted, root: trusted_root, depth },
            is_copy,
            heartbeat,
            first,
            previews: _,
            page: _,
            git: _,
            is_shown: _,
            progress: _,
        } = self;
        json!({
            "refs": [rendered, clusters, cluster_branches, status, statuses, processed, report, root],
            "source": [source, fleet],
            "author": [name, email],
            "signer": signer.as_ref().map(|signer| signer.public().to_string()),
            "limits": [limits.to_string(), max_silent.to_string()],
            "flags": [allow_rewind, allow_rewritten, allow_empty, is_copy, first],
            "anchors": {
                "keys": keys.as_ref().map(ToString::to_string),
                "fleet": trusted,
                "root": trusted_root.map(|id| id.to_string()),
                "depth": depth,
            },
            "heartbeat": heartbeat,
        })
    }

    pub(super) fn exemptions(&self) -> Exemptions {
        Exemptions {
            rewind: self.allow_rewind,
            rewritten: self.allow_rewritten,
            empty: self.allow_empty,
            first: self.first,
            removals: false,
        }
    }
}

//! The files of a source alone, for callers that do without a current state.

use std::path::Path;

use super::last_good::GoodForms;
use super::silence::Silences;
use super::{BuildCache, InputError, PassInputs};
use berth_base::diag::Diagnostics;
use berth_base::model::{Map, Timestamp};
use berth_base::source::{self, RulesFrom, SourceTree};
use berth_base::yaml::Limits;
use berth_engine::load::{self, History};
use berth_engine::state::State;
use berth_git::{Repo, read_source};

impl PassInputs {
    /// Reads a folder, or a revision of the repository there, without its current state. Nothing is compared with the
    /// access rules and policy tests in force, and broken files have no last good form.
    pub fn files_alone(
        path: &Path,
        revision: Option<&str>,
        now: Timestamp,
    ) -> Result<PassInputs, InputError> {
        let (tree, label) = match revision {
            Some(revision) => {
                let repo = Repo::open(path)?;
                let commit = repo.require(revision)?;
                (read_source(&repo, commit)?, format!("commit {commit}"))
            }
            None => (source::read_dir(path, &Limits::default())?, label_of(path)),
        };
        Ok(PassInputs::without_state(SourceTree { rules_from: RulesFrom::Nowhere, ..tree }, label, now))
    }

    /// The inputs that a tree gives by itself.
    pub(super) fn without_state(tree: SourceTree, label: String, now: Timestamp) -> PassInputs {
        let mut cache = BuildCache::default();
        let loaded = load::load_with_cache(&tree, History::None, &mut cache.parsed);
        PassInputs {
            label,
            upon: None,
            tree,
            current: State::default(),
            statuses: Map::new(),
            now,
            diagnostics: Diagnostics::new(),
            odd_reports: Diagnostics::new(),
            silences: Silences::default(),
            history: GoodForms::None,
            published: None,
            then: None,
            repo: None,
            cache,
            loaded,
        }
    }
}

/// The name of a working tree for people.
pub(super) fn label_of(path: &Path) -> String {
    format!("the working tree at {}", path.display())
}

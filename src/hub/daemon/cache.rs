//! The cache that a pass leaves for the next one: parsed files, rendered objects and the current state. Losing it
//! costs time only.

use super::cache_file;
use super::error::PassError;
use super::settings::Settings;
use crate::inputs::BuildCache;
use crate::publish::{self, CurrentState, cluster_refs};
use crate::verify::trust::Untrusted;
use berth_engine::pipeline;
use berth_git::{CommitId, Repo};

/// Carried from pass to pass.
#[derive(Debug, Default)]
pub struct Cache {
    pub(super) build: BuildCache,
    /// The current state when the last pass ended.
    current: Option<CurrentState>,
    pub(super) cluster_refs: cluster_refs::ClusterRefCache,
    /// A tip of the rendered branch that is not trusted, with the source that it was compared with.
    pub(super) refused: Option<((CommitId, CommitId), Untrusted)>,
    /// Set once the cache of an earlier process was looked for.
    begun: bool,
    /// The commit whose state the cache file holds.
    stored: Option<CommitId>,
}

impl Cache {
    /// Returns an empty cache that ignores the cache file.
    pub(crate) fn forgetful() -> Cache {
        Cache { begun: true, ..Cache::default() }
    }

    /// Returns the number of files parsed since this cache began.
    pub fn parsed(&self) -> usize {
        self.build.parsed()
    }

    /// Writes the cache file for the next process.
    pub fn store(&mut self, settings: &Settings) {
        let Some(current) = &self.current else { return };
        if self.stored == Some(current.commit) {
            return;
        }
        let Ok(repo) = Repo::open(&settings.repo) else { return };
        let rendered = self.build.built.as_ref().and_then(|cache| cache.to_stored(&current.state.folders));
        if cache_file::save(&repo, self.build.files(), current, rendered.as_ref()).is_some() {
            self.stored = Some(current.commit);
        }
    }

    /// Returns the current state. The branch is read again only where it moved.
    pub(super) fn take_current(
        &mut self,
        repo: &Repo,
        rendered: &str,
    ) -> Result<Option<CurrentState>, PassError> {
        let now = repo.read_ref(rendered)?;
        if !std::mem::replace(&mut self.begun, true)
            && let Some(left) = cache_file::load(repo, now)
        {
            self.build = BuildCache::of_files(left.parsed);
            if let Some((current, rendered)) = left.rendered {
                self.stored = Some(current.commit);
                self.current = Some(current);
                self.build.built = rendered.map(pipeline::PipelineCache::stored);
            }
        }
        match self.current.take().filter(|current| Some(current.commit) == now) {
            Some(current) => Ok(Some(current)),
            None => {
                self.build.built = None;
                Ok(publish::read_current(repo, rendered)?)
            }
        }
    }

    /// Stores the cache of a pass that ended with the state `rendered`.
    pub(super) fn keep(&mut self, mut build: BuildCache, rendered: Option<CurrentState>) {
        if let (Some(cache), Some(rendered)) = (&mut build.built, &rendered) {
            cache.keep_published(&rendered.state.folders);
        }
        self.build = build;
        self.current = rendered;
    }
}

//! The cache that a pass leaves for the next one: parsed files, rendered objects and the current state. Losing it
//! only costs time.

use std::sync::Arc;
use std::time::Duration;

use super::branches::Refusal;
use super::error::PassError;
use super::previews::Previews;
use crate::inputs::silence::Hearing;
use crate::inputs::{BuildCache, Reports};
use crate::publish::{self, ClusterRefCache, CurrentState, DifferingCache, WrittenReport};
use berth_base::model::Timestamp;
use berth_engine::gate::limits::Limit;
use berth_engine::pipeline;
use berth_engine::report::FleetSummary;
use berth_git::shared_refs::StatusCache;
use berth_git::{Recent, Repo};

/// The cache carried from pass to pass.
#[derive(Debug, Default)]
pub struct Cache {
    pub(super) build: BuildCache,
    /// The current state at the end of the last pass.
    current: Option<CurrentState>,
    pub(super) cluster_refs: ClusterRefCache,
    pub(super) statuses: StatusCache,
    pub(super) differing: DifferingCache,
    pub(super) summary: FleetSummary,
    pub(super) report: Option<WrittenReport>,
    pub(super) previews: Previews,
    pub(super) recent: Recent,
    /// A tip of the rendered branch that was not trusted.
    pub(super) refused: Option<Refusal>,
    /// The record of when reports arrived. Losing it restarts every member's grace period.
    hearing: Arc<Hearing>,
}

impl Cache {
    /// Returns an empty cache for a daemon that fetches at this interval.
    pub(super) fn polled(self, poll: Duration) -> Cache {
        let mut hearing = Hearing::default();
        hearing.every(poll);
        Cache { hearing: hearing.into(), ..self }
    }

    /// Records that the members' refs were readable at this moment.
    pub fn fetched(&mut self, clock: Timestamp) {
        Arc::make_mut(&mut self.hearing).fetched(clock);
    }

    /// Records the reports that arrived by this moment, and returns them with the record. No member counts as silent
    /// without a record that refs were readable.
    pub(super) fn hear(&mut self, mut reports: Reports, clock: Timestamp, limit: Limit) -> Reports {
        let judges = Arc::make_mut(&mut self.hearing).note(&reports.statuses, clock, limit);
        reports.hearing = judges.then(|| self.hearing.clone());
        reports
    }

    /// Returns the moment from which a member is late, if it promised another report.
    pub(super) fn late_from(&self, cluster: &str) -> Option<Timestamp> {
        self.hearing.late_from(cluster)
    }

    /// Restarts every member's grace period, since a member may not have been the cause of its silence.
    pub(super) fn forgive(&mut self, clock: Timestamp) {
        Arc::make_mut(&mut self.hearing).begin(clock);
    }

    /// Forgets everything about objects. Keeps the record of reports.
    pub(super) fn forget_objects(&mut self) {
        let hearing = std::mem::take(&mut self.hearing);
        *self = Cache { hearing, ..Cache::default() };
    }

    /// Forgets results that depend on keys, because the keys changed.
    pub(super) fn doubt_trust(&mut self) {
        self.cluster_refs = ClusterRefCache::default();
        self.report = None;
        self.refused = None;
    }

    /// Returns the number of files parsed through this cache.
    pub fn parsed(&self) -> usize {
        self.build.parsed()
    }

    /// Returns the state at the end of the last pass.
    pub fn current(&self) -> Option<&CurrentState> {
        self.current.as_ref()
    }

    /// Returns the number of items that the last build examined; zeros if it left no cache.
    pub fn effort(&self) -> pipeline::Effort {
        self.build.built.as_ref().map(pipeline::PipelineCache::effort).unwrap_or_default()
    }

    /// Returns the current state. Reads the branch again only if it moved.
    pub(super) fn take_current(
        &mut self,
        repo: &Repo,
        rendered: &str,
    ) -> Result<Option<CurrentState>, PassError> {
        let now = repo.read_ref(rendered)?;
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

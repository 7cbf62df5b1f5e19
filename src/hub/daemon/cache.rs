//! The cache that a pass leaves for the next one: parsed files, rendered objects and the current state. Losing it
//! costs time only.

use std::sync::Arc;
use std::time::Duration;

use super::error::PassError;
use super::previews::Previews;
use super::tip_check::Refusal;
use crate::inputs::hearing::Hearing;
use crate::inputs::{BuildCache, Reports};
use crate::publish::{self, ClusterRefCache, CurrentState, DifferingCache, WrittenReport};
use berth_base::model::Timestamp;
use berth_engine::gate::limits::Limit;
use berth_engine::pipeline;
use berth_engine::report::FleetSummary;
use berth_git::protocol::StatusCache;
use berth_git::{Recent, Repo};

/// Carried from pass to pass.
#[derive(Debug, Default)]
pub struct Cache {
    pub(super) build: BuildCache,
    /// The current state when the last pass ended.
    current: Option<CurrentState>,
    pub(super) cluster_refs: ClusterRefCache,
    pub(super) statuses: StatusCache,
    pub(super) differing: DifferingCache,
    pub(super) summary: FleetSummary,
    pub(super) report: Option<WrittenReport>,
    pub(super) previews: Previews,
    pub(super) recent: Recent,
    /// A tip of the rendered branch that is not trusted.
    pub(super) refused: Option<Refusal>,
    /// The memory of reports. Losing it gives every member a full grace again.
    hearing: Arc<Hearing>,
}

impl Cache {
    /// Returns an empty cache of a daemon that fetches at this interval.
    pub(super) fn polled(self, poll: Duration) -> Cache {
        let mut hearing = Hearing::default();
        hearing.every(poll);
        Cache { hearing: hearing.into(), ..self }
    }

    /// Notes that the refs of members could be read at this moment.
    pub fn fetched(&mut self, clock: Timestamp) {
        Arc::make_mut(&mut self.hearing).fetched(clock);
    }

    /// Notes the reports that arrived by this moment, and hands the memory on with them. Without a note that refs
    /// could be read, nobody is judged.
    pub(super) fn hear(&mut self, mut reports: Reports, clock: Timestamp, limit: Limit) -> Reports {
        let judges = Arc::make_mut(&mut self.hearing).note(&reports.statuses, clock, limit);
        reports.hearing = judges.then(|| self.hearing.clone());
        reports
    }

    /// Returns the moment from which a member is late, if it promised another report.
    pub(super) fn late_from(&self, cluster: &str) -> Option<Timestamp> {
        self.hearing.late_from(cluster)
    }

    /// Gives every member a full grace: it may not have been at fault.
    pub(super) fn forgive(&mut self, clock: Timestamp) {
        Arc::make_mut(&mut self.hearing).begin(clock);
    }

    /// Forgets all that it knows of objects. The memory of reports stays.
    pub(super) fn forget_objects(&mut self) {
        let hearing = std::mem::take(&mut self.hearing);
        *self = Cache { hearing, ..Cache::default() };
    }

    /// Forgets what keys were for and against: others count now.
    pub(super) fn doubt_trust(&mut self) {
        self.cluster_refs = ClusterRefCache::default();
        self.report = None;
        self.refused = None;
    }

    /// Returns the number of files parsed since this cache began.
    pub fn parsed(&self) -> usize {
        self.build.parsed()
    }

    /// Returns the state that the last pass ended with.
    pub fn current(&self) -> Option<&CurrentState> {
        self.current.as_ref()
    }

    /// Returns what the build of the last pass looked at; nothing where it left no cache.
    pub fn effort(&self) -> pipeline::Effort {
        self.build.built.as_ref().map(pipeline::PipelineCache::effort).unwrap_or_default()
    }

    /// Returns the current state. The branch is read again only where it moved.
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

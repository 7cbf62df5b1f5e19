//! The cache that a pass leaves for the next one: parsed files, rendered objects and the current state. Losing it
//! costs time only.

use std::sync::Arc;
use std::time::Duration;

use super::cache_file::{self, Last, Left};
use super::error::PassError;
use super::previews::Previews;
use super::settings::Settings;
use super::tip_check::Refusal;
use crate::inputs::hearing::Hearing;
use crate::inputs::{BuildCache, Reports};
use crate::publish::{self, ClusterRefCache, CurrentState, DifferingCache, WrittenReport};
use berth_base::codec::file::File;
use berth_base::model::Timestamp;
use berth_engine::gate::limits::Limit;
use berth_engine::pipeline;
use berth_engine::report::FleetSummary;
use berth_git::protocol::StatusCache;
use berth_git::{CommitId, Recent, Repo};

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
    /// Set once the cache of an earlier process was looked for.
    begun: bool,
    /// The commit whose state the cache file holds.
    stored: Option<CommitId>,
    /// The cache file that an earlier process left for the current state.
    file: Option<Arc<File>>,
}

impl Cache {
    /// Returns an empty cache that ignores the cache file.
    pub(crate) fn forgetful() -> Cache {
        Cache { begun: true, ..Cache::default() }
    }

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
        *self = Cache { hearing, ..Cache::forgetful() };
    }

    /// Reports whether a part of the cache file turned out to make no sense, whatever its checksum says.
    pub(super) fn is_damaged(&self) -> bool {
        self.file.as_ref().is_some_and(|file| file.is_damaged())
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

    /// Writes the cache file for the next process.
    pub fn store(&mut self, settings: &Settings) {
        let Some(current) = &self.current else { return };
        if self.stored == Some(current.commit) {
            return;
        }
        let Ok(repo) = Repo::open(&settings.repo) else { return };
        let left = Left {
            parsed: self.build.files(),
            source: self.build.source(),
            current,
            pass: self.build.built.as_ref(),
            cluster_refs: &self.cluster_refs,
            report: self.report.as_ref().map(|report| (&self.summary, report)),
        };
        if cache_file::save(&repo, self.file.as_ref(), &left).is_some() {
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
            self.build = BuildCache::of_files(left.parsed, left.source);
            if let Some(Last { file, current, pass, cluster_refs, report }) = left.last {
                self.file = Some(file);
                self.stored = Some(current.commit);
                self.current = Some(current);
                self.build.built = pass;
                self.cluster_refs = cluster_refs.unwrap_or_default();
                if let Some((summary, written)) = report {
                    (self.summary, self.report) = (summary, Some(written));
                }
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

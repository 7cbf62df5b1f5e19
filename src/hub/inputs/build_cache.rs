//! The cache that one reading of the fleet leaves for the next.

use super::copy_reports::CopyReportCache;
use berth_engine::load::FileCache;
use berth_engine::pipeline;
use berth_engine::state::ObjectIndex;
use berth_git as git;

/// Results of earlier readings. Losing them costs time only.
#[derive(Debug, Default)]
pub struct BuildCache {
    pub(super) source: git::SourceCache,
    pub(super) parsed: FileCache,
    pub(super) copies: CopyReportCache,
    /// The rendered objects of the current state, and no other.
    pub built: Option<pipeline::PipelineCache>,
    /// Of the decisions of the last plan.
    pub(super) objects: ObjectIndex,
}

impl BuildCache {
    /// Forgets what the last reading did not use.
    pub(super) fn forget_unused(&mut self) {
        self.source.forget_unused();
        self.parsed.forget_unused();
    }

    /// Returns the number of files parsed since this cache began.
    pub fn parsed(&self) -> usize {
        self.parsed.count()
    }
}

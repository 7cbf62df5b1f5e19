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
    /// Begins with files that another process has read, all those of a tree where that is known.
    pub(crate) fn of_files(parsed: FileCache, source: Option<git::KnownSource>) -> BuildCache {
        let source = parsed.last_tree().map(|tree| git::SourceCache::of(&tree.files, source));
        BuildCache { source: source.unwrap_or_default(), parsed, ..BuildCache::default() }
    }

    /// Returns the tree of the source that was loaded last, where its files tell all of it.
    pub(crate) fn source(&self) -> Option<git::KnownSource> {
        self.source.known(&self.parsed.last_tree()?.files)
    }

    /// Forgets what the last reading did not use.
    pub(super) fn forget_unused(&mut self) {
        self.source.forget_unused();
        self.parsed.forget_unused();
    }

    /// Files as they were read.
    pub fn files(&self) -> &FileCache {
        &self.parsed
    }

    /// Returns the number of files parsed since this cache began.
    pub fn parsed(&self) -> usize {
        self.parsed.count()
    }
}

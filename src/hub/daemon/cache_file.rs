//! The cache that a process leaves for the next one.
//!
//! Parsed files are valid for any state. All else is valid for one commit of the rendered branch.

use std::sync::Arc;

use super::earlier_files::EarlierFiles;
use super::kept_file;
use crate::publish::{self, ClusterRefCache, CurrentState, WrittenReport};
use berth_base::codec::coded::Coded;
use berth_base::codec::file::File;
use berth_base::source::TreeSize;
use berth_engine::load::FileCache;
use berth_engine::pipeline::PipelineCache;
use berth_engine::report::FleetSummary;
use berth_git::{CommitId, KnownSource, Repo, TreeId};

const FILE: &str = "last";

/// The contents of the cache file that are valid now.
#[derive(Debug)]
pub(super) struct Found {
    pub parsed: FileCache,
    /// See [`BuildCache::source`](crate::inputs::BuildCache::source).
    pub source: Option<KnownSource>,
    pub last: Option<Last>,
}

/// The current state, and what the passes that made it left.
#[derive(Debug)]
pub(super) struct Last {
    /// The file, from which parts are decoded when they are looked at first.
    pub file: Arc<File>,
    pub current: CurrentState,
    pub pass: Option<PipelineCache>,
    pub cluster_refs: Option<ClusterRefCache>,
    /// Is there only beside the refs.
    pub report: Option<(FleetSummary, WrittenReport)>,
}

/// All that is left for the next process.
#[derive(Debug)]
pub(super) struct Left<'a> {
    pub parsed: &'a FileCache,
    pub source: Option<KnownSource>,
    pub current: &'a CurrentState,
    pub pass: Option<&'a PipelineCache>,
    pub cluster_refs: &'a ClusterRefCache,
    pub report: Option<(&'a FleetSummary, &'a WrittenReport)>,
}

/// Reads the cache file; `now` is the tip of the rendered branch.
pub(super) fn load(repo: &Repo, now: Option<CommitId>) -> Option<Found> {
    kept_file::read(repo, FILE, |decoder| {
        let mut parsed = FileCache::decode(decoder)?;
        let commit = CommitId(decoder.raw()?);
        if Some(commit) != now {
            parsed.decode_all();
            return Some(Found { parsed, source: None, last: None });
        }
        let current = publish::decode_current(decoder, repo, commit).ok()??;
        let files = EarlierFiles::new(repo, decoder.file());
        let source = decoder.maybe(|decoder| {
            let (tree, (entries, bytes)) = (TreeId(decoder.raw()?), Coded::get(decoder)?);
            Some(KnownSource { tree, size: TreeSize { entries, bytes } })
        })?;
        let pass = decoder.maybe(|decoder| {
            let pass = PipelineCache::decode(decoder, &current.state)?;
            let fleet = pass.fleet().clone();
            decoder.maybe(|decoder| parsed.decode_last(decoder, fleet, |id| files.bytes(id)))?;
            Some(pass)
        })?;
        let clusters = pass.as_ref().map(|pass| pass.fleet().clusters.clone());
        let refs = decoder.maybe(|decoder| {
            let refs = ClusterRefCache::decode(decoder, &current, clusters)?;
            let report = decoder.maybe(|decoder| {
                let summary = FleetSummary::decode(decoder, &current.state, refs.published())?;
                let written = WrittenReport::decode(decoder, &summary)?;
                Some((summary, written))
            })?;
            Some((refs, report))
        })?;
        let (cluster_refs, report) = refs.map_or((None, None), |(refs, report)| (Some(refs), report));
        let last = Last { file: decoder.file().clone(), current, pass, cluster_refs, report };
        decoder.is_done().then_some(Found { parsed, source, last: Some(last) })
    })
}

/// Replaces the cache file. Nothing depends on its success.
pub(super) fn save(repo: &Repo, earlier: Option<&Arc<File>>, left: &Left<'_>) -> Option<()> {
    let Left { parsed, source, current, pass, cluster_refs, report } = left;
    kept_file::replace(repo, FILE, earlier, |encoder| {
        parsed.encode(encoder);
        encoder.raw(&current.commit.0);
        publish::encode_current(encoder, current)?;
        encoder.maybe(*source, |encoder, KnownSource { tree, size }| {
            encoder.raw(&tree.0);
            (size.entries, size.bytes).put(encoder);
        });
        encoder.optional(|encoder| {
            let pass = (*pass)?;
            pass.encode(encoder, &current.state)?;
            encoder.optional(|encoder| parsed.encode_last(encoder, pass.fleet()));
            Some(())
        });
        encoder.optional(|encoder| {
            if pass.is_some_and(|pass| !cluster_refs.is_of(&pass.fleet().clusters)) {
                return None;
            }
            cluster_refs.encode(encoder, current)?;
            encoder.optional(|encoder| {
                let (summary, written) = (*report)?;
                summary.encode(encoder, &current.state, cluster_refs.published())?;
                written.encode(encoder);
                Some(())
            });
            Some(())
        });
        Some(())
    })
}

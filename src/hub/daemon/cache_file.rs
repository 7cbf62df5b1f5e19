//! The cache that a process leaves for the next one.
//!
//! Parsed files are valid for any state. The current state and its rendered objects are valid for one commit of the
//! rendered branch.

use super::kept_file;
use crate::publish::{self, CurrentState};
use berth_engine::load::FileCache;
use berth_engine::render::StoredCache;
use berth_git::{CommitId, Repo};

const FILE: &str = "last";

/// The contents of the cache file that are valid for the current state.
#[derive(Debug, Default)]
pub(super) struct CachedState {
    pub parsed: FileCache,
    /// The current state and the objects rendered for it.
    pub rendered: Option<(CurrentState, Option<StoredCache>)>,
}

/// Reads the cache file; `now` is the tip of the rendered branch.
pub(super) fn load(repo: &Repo, now: Option<CommitId>) -> Option<CachedState> {
    kept_file::read(repo, FILE, |decoder| {
        let parsed = FileCache::decode(decoder)?;
        let commit = CommitId(decoder.raw()?);
        if Some(commit) != now {
            return Some(CachedState { parsed, rendered: None });
        }
        let current = publish::decode_current(decoder, repo, commit).ok()??;
        let stored = decoder.maybe(StoredCache::decode)?;
        decoder.is_done().then_some(CachedState { parsed, rendered: Some((current, stored)) })
    })
}

/// Replaces the cache file. Nothing depends on its success.
pub(super) fn save(
    repo: &Repo,
    parsed: &FileCache,
    current: &CurrentState,
    rendered: Option<&StoredCache>,
) -> Option<()> {
    kept_file::replace(repo, FILE, |encoder| {
        parsed.encode(encoder);
        encoder.raw(&current.commit.0);
        publish::encode_current(encoder, current)?;
        encoder.maybe(rendered, |encoder, rendered| rendered.encode(encoder));
        Some(())
    })
}

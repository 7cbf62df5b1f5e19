//! The cache that a process leaves for the next one, in the repository's own folder: `berth/cache`.
//!
//! Parsed files are valid for any state. The current state and its rendered objects are valid for one commit of the
//! rendered branch, and everything for one build of berth. The file may be deleted at any time; a damaged file counts
//! as missing.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

use sha2::{Digest as _, Sha256};

use crate::publish::{self, CurrentState};
use berth_base::codec::{Decoder, Encoder};
use berth_base::text::hex;
use berth_engine::load::FileCache;
use berth_engine::render::StoredCache;
use berth_git::{CommitId, Repo};

const FILE: &str = "berth/cache/last";

/// The age at which nobody still writes to an unfinished file.
const UNFINISHED: Duration = Duration::from_secs(3_600);

/// The contents of the cache file that are valid for the current state.
#[derive(Debug, Default)]
pub(super) struct CachedState {
    pub parsed: FileCache,
    /// The current state and the objects rendered for it.
    pub rendered: Option<(CurrentState, Option<StoredCache>)>,
}

/// Reads the cache file; `now` is the tip of the rendered branch.
pub(super) fn load(repo: &Repo, now: Option<CommitId>) -> Option<CachedState> {
    let bytes = fs::read(file(repo)).ok()?;
    let (checksum, body) = bytes.split_first_chunk::<32>()?;
    if *checksum != <[u8; 32]>::from(Sha256::digest(body)) {
        return None;
    }
    let mut decoder = Decoder::new(body);
    if *decoder.text()? != *engine()? {
        return None;
    }
    let parsed = FileCache::decode(&mut decoder)?;
    let commit = CommitId(decoder.raw()?);
    if Some(commit) != now {
        return Some(CachedState { parsed, rendered: None });
    }
    let current = publish::decode_current(&mut decoder, repo, commit).ok()??;
    let stored = decoder.maybe(StoredCache::decode)?;
    decoder.is_done().then_some(CachedState { parsed, rendered: Some((current, stored)) })
}

/// Replaces the cache file. Nothing depends on its success.
pub(super) fn save(
    repo: &Repo,
    parsed: &FileCache,
    current: &CurrentState,
    rendered: Option<&StoredCache>,
) -> Option<()> {
    let mut encoder = Encoder::default();
    encoder.text(engine()?);
    parsed.encode(&mut encoder);
    encoder.raw(&current.commit.0);
    publish::encode_current(&mut encoder, current)?;
    encoder.maybe(rendered, |encoder, rendered| rendered.encode(encoder));
    let body = encoder.into_bytes();
    let target = file(repo);
    fs::create_dir_all(target.parent()?).ok()?;
    sweep(target.parent()?);
    let fresh = target.with_extension(std::process::id().to_string());
    let _ = fs::remove_file(&fresh);
    let write = || {
        let mut file = fs::OpenOptions::new().write(true).create_new(true).open(&fresh)?;
        file.write_all(&Sha256::digest(&body))?;
        file.write_all(&body)?;
        fs::rename(&fresh, &target)
    };
    let done = write();
    if done.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    done.ok()
}

/// Removes unfinished files of processes that were killed.
fn sweep(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let is_unfinished = Path::new(&entry.file_name()).extension().is_some();
        let age = entry.metadata().and_then(|about| about.modified()).ok().and_then(|at| at.elapsed().ok());
        if is_unfinished && age.is_some_and(|age| age > UNFINISHED) {
            let _ = fs::remove_file(entry.path());
        }
    }
}

fn file(repo: &Repo) -> PathBuf {
    repo.shared_path().join(FILE)
}

/// Returns the version of this build and a digest of its executable. The digest is computed once, since a new build
/// may take the file's place while this one runs.
fn engine() -> Option<&'static str> {
    static ENGINE: OnceLock<Option<String>> = OnceLock::new();
    let look = || {
        let digest = Sha256::digest(fs::read(std::env::current_exe().ok()?).ok()?);
        Some(format!("{} {}", env!("CARGO_PKG_VERSION"), hex(&digest)))
    };
    ENGINE.get_or_init(look).as_deref()
}

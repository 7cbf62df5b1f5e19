//! What a process leaves for the next one, in the repository's own folder: `berth/cache`.
//!
//! Files as parsed count for any state; the state in force and what was rendered count for one commit of
//! the rendered branch. All of it counts for one build of berth. It may be deleted at any time, and
//! whatever is wrong with it, it is as if it were not there.

use std::fs;
use std::path::PathBuf;
use std::time::UNIX_EPOCH;

use sha2::{Digest as _, Sha256};

use crate::codec::{Decoder, Encoder};
use crate::git::{CommitId, Repo};
use crate::load::Parsed;
use crate::publish::{self, Previous};
use crate::render::Stored;

const FILE: &str = "berth/cache/last";

/// What was left, for the state in force now.
#[derive(Debug, Default)]
pub(super) struct Left {
    pub parsed: Parsed,
    /// The state in force and what was rendered for it.
    pub rendered: Option<(Previous, Option<Stored>)>,
}

/// Reads what was left; `now` is what the rendered branch points to.
pub(super) fn load(repo: &Repo, now: Option<CommitId>) -> Option<Left> {
    let bytes = fs::read(file(repo)).ok()?;
    let (checksum, body) = bytes.split_first_chunk::<32>()?;
    if *checksum != <[u8; 32]>::from(Sha256::digest(body)) {
        return None;
    }
    let mut decoder = Decoder::new(body);
    if *decoder.text()? != *engine()? {
        return None;
    }
    let parsed = Parsed::decode(&mut decoder)?;
    let commit = CommitId(decoder.raw()?);
    if Some(commit) != now {
        return Some(Left { parsed, rendered: None });
    }
    let previous = publish::decode_previous(&mut decoder, repo, commit).ok()??;
    let stored = decoder.maybe(Stored::decode)?;
    decoder.is_done().then_some(Left { parsed, rendered: Some((previous, stored)) })
}

/// Replaces what is there. Nothing depends on whether that works.
pub(super) fn save(
    repo: &Repo,
    parsed: &Parsed,
    previous: &Previous,
    rendered: Option<&Stored>,
) -> Option<()> {
    let mut encoder = Encoder::default();
    encoder.text(&engine()?);
    parsed.encode(&mut encoder);
    encoder.raw(&previous.commit.0);
    publish::encode_previous(&mut encoder, previous)?;
    encoder.maybe(rendered, |encoder, rendered| rendered.encode(encoder));
    let body = encoder.into_bytes();
    let mut bytes = Sha256::digest(&body).to_vec();
    bytes.extend(body);
    let target = file(repo);
    fs::create_dir_all(target.parent()?).ok()?;
    let fresh = target.with_extension(std::process::id().to_string());
    let done = fs::write(&fresh, bytes).and_then(|()| fs::rename(&fresh, &target));
    if done.is_err() {
        let _ = fs::remove_file(&fresh);
    }
    done.ok()
}

fn file(repo: &Repo) -> PathBuf {
    repo.shared_path().join(FILE)
}

/// Which build of berth this is: its version, and its executable's size and date.
fn engine() -> Option<String> {
    let about = fs::metadata(std::env::current_exe().ok()?).ok()?;
    let built = about.modified().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(format!("{} {} {}", env!("CARGO_PKG_VERSION"), about.len(), built.as_nanos()))
}

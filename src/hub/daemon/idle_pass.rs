//! Stores the diagnostics of a pass that had nothing to do, with a digest of everything that it depended on. While
//! that is unchanged, the next process also has nothing to do and ends at once.

use serde::{Deserialize, Serialize};
use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::pass::PassResult;
use super::ref_snapshot::{RefSnapshot, snapshot_refs};
use super::settings::Settings;
use crate::publish::own_files;
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::Timestamp;
use berth_base::text::hex;
use berth_git::{CommitId, GitError, Repo};

const FILE: &str = "cache/idle.json";

/// The version of this build, and a digest of its sources.
const BUILD: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("BERTH_SOURCES"));

/// The stored note about such a pass.
#[derive(Debug, Serialize, Deserialize)]
struct IdlePass {
    /// The digest of everything that the pass depended on, and of the fields below.
    digest: String,
    made: Timestamp,
    next_change: Option<Timestamp>,
    diagnostics: Vec<Diagnostic>,
}

/// Returns the source and diagnostics of a pass that would have nothing to do, if one is noted.
pub(super) fn known(settings: &Settings, clock: Timestamp) -> Option<(CommitId, Diagnostics)> {
    let repo = Repo::open(&settings.repo).ok()?;
    let note: IdlePass = serde_json::from_str(&own_files::read(&own_files::path(&repo, FILE))?).ok()?;
    if clock < note.made || note.next_change.is_some_and(|at| at <= clock) {
        return None;
    }
    let seen = snapshot_refs(settings).ok()?;
    if note.digest != digest(&repo, settings, &seen, &note).ok()? {
        return None;
    }
    let mut diagnostics = Diagnostics::new();
    diagnostics.extend(note.diagnostics);
    Some((seen.source(), diagnostics))
}

/// Stores a note about a pass that left nothing to do.
pub(super) fn note(settings: &Settings, clock: Timestamp, passed: &PassResult) -> Option<()> {
    if !passed.is_steady {
        return None;
    }
    let repo = Repo::open(&settings.repo).ok()?;
    let mut note = IdlePass {
        digest: String::new(),
        made: clock,
        next_change: passed.next_change,
        diagnostics: passed.diagnostics.iter().cloned().collect(),
    };
    note.digest = digest(&repo, settings, &passed.seen, &note).ok()?;
    own_files::replace(&own_files::path(&repo, FILE), &serde_json::to_string(&note).ok()?).ok()
}

/// Returns the digest of a note and of everything that its pass depended on, except the clock.
fn digest(repo: &Repo, settings: &Settings, seen: &RefSnapshot, note: &IdlePass) -> Result<String, GitError> {
    // Refs that a pass writes. Others may have removed them since.
    let [processed, report] =
        [&settings.refs.processed, &settings.refs.report].map(|name| repo.read_ref(name));
    let written = [processed?, report?].map(|id| id.map(|id| id.to_string()));
    let IdlePass { digest: _, made, next_change, diagnostics } = note;
    let all = json!([BUILD, settings.inputs(), written, made, next_change, diagnostics]);
    let mut digest = Sha256::new_with_prefix(all.to_string());
    seen.add_to(&mut digest);
    Ok(hex(&digest.finalize()))
}

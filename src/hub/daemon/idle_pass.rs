//! The last pass that had nothing to do: all that it depended on, and what it said. While all of that is the same,
//! the next process has nothing to do either, and ends at once.

use sha2::{Digest as _, Sha256};

use super::kept_file;
use super::pass::{PassResult, RefSnapshot, snapshot_refs};
use super::settings::Settings;
use berth_base::codec::{Decoder, Encoder};
use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::Timestamp;
use berth_base::model::encoding::{diagnostic, put_diagnostic};
use berth_git::{CommitId, GitError, Repo};

const FILE: &str = "idle";

/// Returns the source that a pass would read and all that it would say, where it is known to have nothing to do.
pub(super) fn known(settings: &Settings, clock: Timestamp) -> Option<(CommitId, Diagnostics)> {
    let repo = Repo::open(&settings.repo).ok()?;
    let seen = snapshot_refs(settings).ok()?;
    let inputs = inputs(&repo, settings, &seen).ok()?;
    kept_file::read(&repo, FILE, |decoder| {
        if decoder.raw::<32>()? != inputs {
            return None;
        }
        let (made, next_change) = (moment(decoder)?, decoder.maybe(moment)?);
        if clock < made || next_change.is_some_and(|at| at <= clock) {
            return None;
        }
        let mut diagnostics = Diagnostics::new();
        diagnostics.extend(decoder.list::<_, Vec<Diagnostic>>(diagnostic)?);
        Some((seen.source(), diagnostics))
    })
}

/// Notes a pass at whose end nothing was left to do.
pub(super) fn note(settings: &Settings, clock: Timestamp, passed: &PassResult) -> Option<()> {
    if !passed.is_steady {
        return None;
    }
    let repo = Repo::open(&settings.repo).ok()?;
    let inputs = inputs(&repo, settings, &passed.seen).ok()?;
    kept_file::replace(&repo, FILE, None, |encoder| {
        encoder.raw(&inputs);
        encoder.signed(clock.as_second());
        encoder.maybe(passed.next_change, |encoder, at| encoder.signed(at.as_second()));
        let diagnostics: Vec<&Diagnostic> = passed.diagnostics.iter().collect();
        encoder.list(diagnostics.into_iter(), put_diagnostic);
        Some(())
    })
}

/// The digest of all that a pass depends on beside the build of berth and the clock.
fn inputs(repo: &Repo, settings: &Settings, seen: &RefSnapshot) -> Result<[u8; 32], GitError> {
    let mut encoder = Encoder::default();
    settings.encode(&mut encoder);
    seen.encode(&mut encoder);
    // Refs that a pass writes, and that others may have removed.
    for name in [&settings.refs.processed, &settings.refs.report] {
        encoder.maybe(repo.read_ref(name)?, |encoder, CommitId(id)| encoder.raw(&id));
    }
    Ok(Sha256::digest(encoder.into_bytes()).into())
}

fn moment(decoder: &mut Decoder<'_>) -> Option<Timestamp> {
    Timestamp::from_second(decoder.signed()?).ok()
}

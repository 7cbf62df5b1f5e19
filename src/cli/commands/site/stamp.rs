//! The stamp of a page: a digest of everything that it was made from, and the moment until which it stays true.
//!
//! Everything that a page shows comes from refs. So a page whose refs have not moved is made again only when time may
//! change it.

use sha2::{Digest as _, Sha256};

use super::SiteArgs;
use crate::flags::state::{SOURCE_OF_ADDRESS, StateRepo};
use crate::process::exit::CommandError;
use berth_base::model::member::silent_after;
use berth_base::model::{ClusterStatus, Map, MemberState, Shared, Timestamp};
use berth_base::text::hex;
use berth_engine::pipeline::Built;
use berth_engine::report::ClusterLine;
use berth_engine::rollouts::RolloutProgress;

/// Returns the digest of the inputs: this berth, the flags, and all refs.
pub(super) fn digest(args: &SiteArgs, opened: &StateRepo) -> Result<String, CommandError> {
    let repo = &opened.repo;
    let flags =
        (args.history, args.causes, &args.at, &args.file_link, &args.commit_link, &args.state.rendered);
    let mut hash = Sha256::new();
    hash.update(format!("{} {flags:?} {:?}\n", env!("CARGO_PKG_VERSION"), repo.path()));
    hash.update(format!("{:?}\n", repo.head_branch()?));
    // The branch that is fetched only for a page does not move by itself.
    for (name, commit) in repo.list_refs("refs/")?.iter().filter(|(name, _)| *name != SOURCE_OF_ADDRESS) {
        hash.update(format!("{name} {commit}\n"));
    }
    Ok(hex(&hash.finalize()[..16]))
}

/// Returns the moment from which the same refs may give another page.
pub(super) fn until(
    lines: &[ClusterLine],
    statuses: &Map<String, Shared<ClusterStatus>>,
    built: Option<&Built>,
    rollouts: &[RolloutProgress],
    now: Timestamp,
) -> Option<Timestamp> {
    // A member that is behind counts as silent soon.
    if lines.iter().any(|line| line.state == MemberState::Behind.word()) {
        return Some(Timestamp::UNIX_EPOCH);
    }
    let silent_from = |last: i64| Timestamp::from_second(last.saturating_add(1)).ok();
    let silences = statuses.values().filter_map(|status| silent_from(silent_after(status)?));
    let steps = rollouts.iter().filter_map(|rollout| rollout.next);
    silences
        .chain(steps)
        .chain(built.and_then(|built| built.next_change))
        .filter(|moment| *moment > now)
        .min()
}

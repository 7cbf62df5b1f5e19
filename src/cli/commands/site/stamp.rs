//! The stamp of a page: a digest of everything that it was made from, and the moment until which it stays true.
//!
//! Everything that a page shows comes from refs. So a page whose refs have not moved is made again only when time may
//! change it.

use sha2::{Digest as _, Sha256};

use super::PageArgs;
use crate::flags::state::{SOURCE_OF_ADDRESS, StateRepo};
use crate::process::exit::CommandError;
use berth_base::model::member::silent_after;
use berth_base::model::{ClusterStatus, Map, Shared, Timestamp};
use berth_base::text::hex;
use berth_engine::pipeline::Built;
use berth_engine::rollouts::RolloutProgress;
use berth_site::inputs::Links;

/// Returns the digest of the inputs: this berth, the flags, all refs, and the names of the repository.
pub(crate) fn digest(args: &PageArgs, opened: &StateRepo) -> Result<String, CommandError> {
    let repo = &opened.repo;
    let branch = repo.head_branch()?;
    let detached = if branch.is_none() { repo.resolve("HEAD")? } else { None };
    // A temporary repository has another path each time, and the page shows nothing of it.
    let path = (!opened.is_temporary()).then(|| repo.shared_path());
    let remote = repo.remote_for(branch.as_deref())?;
    let address = remote.map(|remote| repo.remote_url(&remote)).transpose()?.flatten();
    let links = address.and_then(|address| Links::guess(&address));
    // The stamp is public: whoever reads it must not be able to try credentials on it.
    let rendered = args.state.rendered.as_deref().map(without_credentials);
    let flags = (args.history, args.causes, &args.at, &args.file_link, &args.commit_link, rendered);
    let mut hash = Sha256::new();
    hash.update(format!("{} {flags:?} {path:?}\n", env!("CARGO_PKG_VERSION")));
    hash.update(format!("{branch:?} {detached:?} {links:?}\n"));
    // The branch that is fetched only for a page does not move by itself.
    for (name, commit) in repo.list_refs("refs/")?.iter().filter(|(name, _)| *name != SOURCE_OF_ADDRESS) {
        hash.update(format!("{name} {commit}\n"));
    }
    Ok(hex(&hash.finalize()[..16]))
}

/// Returns a ref, or an address without its user, query and fragment.
fn without_credentials(place: &str) -> String {
    let place = place.split(['?', '#']).next().unwrap_or_default();
    let Some((scheme, rest)) = place.split_once("://") else { return place.to_owned() };
    let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
    format!("{scheme}://{}/{path}", host.rsplit('@').next().unwrap_or_default())
}

/// Returns the moment from which the same refs may give another page. `next_silence` is the second at which a member that
/// is behind counts as silent.
pub(super) fn until(
    next_silence: Option<i64>,
    statuses: &Map<String, Shared<ClusterStatus>>,
    built: Option<&Built>,
    rollouts: &[RolloutProgress],
    now: Timestamp,
) -> Option<Timestamp> {
    let silent_from = |last: i64| Timestamp::from_second(last.saturating_add(1)).ok();
    let silences = statuses.values().filter_map(|status| silent_from(silent_after(status)?));
    let silences = silences.chain(next_silence.and_then(|second| Timestamp::from_second(second).ok()));
    let steps = rollouts.iter().filter_map(|rollout| rollout.next);
    silences
        .chain(steps)
        .chain(built.and_then(|built| built.next_change))
        .filter(|moment| *moment > now)
        .min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_depends_on_no_credentials() {
        for (place, public) in [
            ("https://user:token@example.com/fleet.git?key=1#x", "https://example.com/fleet.git"),
            ("https://example.com/a@b", "https://example.com/a@b"),
            ("https://token@example.com", "https://example.com/"),
            ("git@example.com:fleet.git", "git@example.com:fleet.git"),
            ("refs/heads/berth/rendered", "refs/heads/berth/rendered"),
        ] {
            assert_eq!(without_credentials(place), public);
        }
    }
}

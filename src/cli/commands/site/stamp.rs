//! The stamp of a page: a digest of everything that it was made from, and the moment until which it stays true.
//!
//! Everything that a page shows comes from refs. So a page whose refs have not moved is made again only when time may
//! change it.

use sha2::{Digest as _, Sha256};

use super::PageOptions;
use crate::flags::state::{SOURCE_OF_ADDRESS, StateRepo};
use crate::process::exit::CommandError;
use berth_base::model::member::silent_after;
use berth_base::model::{ClusterStatus, Map, Shared, Timestamp};
use berth_base::text::hex;
use berth_engine::pipeline::Built;
use berth_engine::rollouts::RolloutProgress;
use berth_git::shared_refs::Refs;
use berth_hub::inputs::current_state::GIVEN;
use berth_hub::publish::{self, Processed};
use berth_site::inputs::Links;

/// The refs that a daemon keeps for itself, such as copies of the branches under review.
const LOCAL: &str = "refs/berth-local/";

/// Returns the digest of the inputs: this berth, the flags, all refs, and the names of the repository.
pub(crate) fn digest(options: &PageOptions, opened: &StateRepo) -> Result<String, CommandError> {
    let repo = &opened.repo;
    let branch = repo.head_branch()?;
    let detached = if branch.is_none() { repo.resolve("HEAD")? } else { None };
    // The page is named after the address, and a temporary repository has another path each time.
    let path = (!opened.is_temporary() && options.address.is_none()).then(|| repo.shared_path());
    let remote = repo.remote_for(branch.as_deref())?;
    let address = remote.map(|remote| repo.remote_url(&remote)).transpose()?.flatten();
    let links = address.and_then(|address| Links::guess(&address));
    // The stamp is public: whoever reads it must not be able to try credentials on it.
    let [rendered, place] =
        [&options.rendered, &options.address].map(|place| place.as_deref().map(without_credentials));
    let flags = (options.history, options.causes, &options.at, &options.links, rendered, place);
    let mut hash = Sha256::new();
    hash.update(format!("{} {flags:?} {path:?}\n", env!("CARGO_PKG_VERSION")));
    hash.update(format!("{branch:?} {detached:?} {links:?}\n"));
    let refs = Refs::default();
    // On a branch, a page also survives a pass that published nothing: the ref of the source processed last then has
    // another commit, but nothing new for a page.
    let processed =
        options.branch.is_some().then(|| publish::read_processed(repo, &refs)).transpose()?.flatten();
    if let Some(Processed { source, branch, rendered, errors, held, rules, .. }) = &processed {
        hash.update(format!("{source:?} {branch:?} {rendered:?} {errors} {held:?} {rules:?}\n"));
    }
    let is_known = |name: &str| processed.is_some() && name == refs.processed;
    let is_local = |name: &str| name.starts_with(LOCAL) && !name.starts_with(GIVEN);
    let is_other = |name: &str| {
        // The branch that is fetched only for a page does not move by itself.
        [SOURCE_OF_ADDRESS, &refs.leader].contains(&name)
            || options.branch.as_deref() == Some(name)
            || name.starts_with(&refs.preview)
            || is_local(name)
            || is_known(name)
    };
    for (name, commit) in repo.list_refs("refs/")?.iter().filter(|(name, _)| !is_other(name)) {
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
    // A report from a clock that is ahead counts as one of now.
    let ahead = statuses.values().filter_map(|status| status.reported);
    let steps = rollouts.iter().filter_map(|rollout| rollout.next);
    silences
        .chain(ahead)
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

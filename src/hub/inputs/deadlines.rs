//! Deadlines that changes brought and the gate let pass, as the rendered branch remembers them.
//!
//! The commit of the change names them in its trailers. Later commits point to it until the last one has
//! passed, so that nobody has to walk through weeks of history when a deadline comes.

use super::error::InputError;
use crate::publish::{CurrentState, Trailers};
use berth_base::model::Timestamp;
use berth_engine::gate::Deadline;
use berth_git::Repo;
use berth_git::protocol::trailers::{AWAITS, DEADLINE};

/// The pointers that the next commit, of the moment `now`, carries on: those of its parent, and the parent
/// itself. What has passed by then is forgotten.
pub(super) fn carried(parent: &CurrentState, now: Timestamp) -> Vec<(&'static str, String)> {
    let last = own(&parent.trailers).map(|deadline| deadline.at).max();
    let own = last.map(|last| (parent.commit.to_string(), last));
    let earlier = awaited(&parent.trailers).map(|(commit, last)| (commit.to_owned(), last));
    let waiting = earlier.chain(own).filter(|(_, last)| *last > now);
    waiting.map(|(commit, last)| (AWAITS, format!("{commit} {last}"))).collect()
}

/// Returns the deadlines that have passed since the current state. Each counts once: a workload that comes
/// back after it and goes again is another removal.
pub(super) fn passed(
    repo: &Repo,
    rendered: &CurrentState,
    now: Timestamp,
) -> Result<Vec<Deadline>, InputError> {
    let mut found: Vec<Deadline> = own(&rendered.trailers).collect();
    for (commit, _) in awaited(&rendered.trailers) {
        // A shallow clone may lack it: then the removal is judged once more.
        let Some(commit) = commit.parse().ok().filter(|commit| repo.has_commit(*commit)) else { continue };
        if let Some(trailers) = Trailers::read(&repo.commit(commit)?.message) {
            found.extend(own(&trailers));
        }
    }
    let before = rendered.trailers.now.unwrap_or(Timestamp::UNIX_EPOCH);
    found.retain(|deadline| deadline.at <= now && before < deadline.at);
    Ok(found)
}

fn own(trailers: &Trailers) -> impl Iterator<Item = Deadline> {
    let lines = trailers.others.iter().filter(|(name, _)| name == DEADLINE);
    lines.filter_map(|(_, value)| value.parse().ok())
}

fn awaited(trailers: &Trailers) -> impl Iterator<Item = (&str, Timestamp)> {
    let lines = trailers.others.iter().filter(|(name, _)| name == AWAITS);
    lines.filter_map(|(_, value)| {
        let (commit, last) = value.split_once(' ')?;
        Some((commit, last.parse().ok()?))
    })
}

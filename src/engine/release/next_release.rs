//! A workload's inputs → its releases: the wanted one, and earlier ones that may be needed again. An
//! earlier one is rendered again from its stored inputs: for clusters that return to it, begin with it, or
//! are pinned to it.

use std::collections::{BTreeMap, BTreeSet};

use super::cluster_rollout::ClusterRollout;
use super::workload_rollout::WorkloadRollout;
use super::{ReleaseInputs, inputs};
use crate::render;
use berth_base::diag::Diagnostic;
use berth_base::model::release::{Release, Releases};
use berth_base::model::{
    ContentId, Contents, Decision, Folders, Key, Map, Pick, Shared, Timestamp, Workload,
};

/// The number of earlier releases to keep beside the good one, for pins and for comparison.
const KEPT: usize = 3;

/// Returns the releases with these inputs as the current one. Inputs equal to those of the last good release
/// are that release again, so a revert is no new release. Without a record `before`, the numbers continue
/// from `last`, the highest number that the workload ever had.
pub(super) fn with_inputs(
    key: &Key,
    before: Option<&Releases>,
    last: u64,
    inputs: ContentId,
    now: Timestamp,
) -> Releases {
    let Some(before) = before else {
        return Releases::of(key.clone(), Release { number: last + 1, begun: now, inputs });
    };
    if before.current.inputs == inputs {
        return before.clone();
    }
    let again = before.good().filter(|good| good.inputs == inputs);
    let current = match again {
        Some(good) => Release { begun: now, ..good.clone() },
        None => Release { number: newest(before) + 1, begun: now, inputs },
    };
    let mut earlier: Vec<Release> =
        before.all().filter(|release| release.number != current.number).cloned().collect();
    earlier.sort_by_key(|release| release.number);
    Releases { current, earlier, taken_back: false, restarts: 0, halted: None, ..before.clone() }
}

/// Returns the highest number among a workload's releases; the newest ones are always kept.
fn newest(releases: &Releases) -> u64 {
    releases.all().map(|release| release.number).max().unwrap_or_default()
}

/// Returns the highest number that a workload without a record ever had; 0 for a workload that had none.
pub(super) fn last_number(key: &Key, given: ReleaseInputs<'_>) -> u64 {
    given.current.ledger.last_releases.get(key).copied().unwrap_or_default()
}

/// Returns the highest number of each workload without a record in the next state.
pub(super) fn last_numbers(
    given: ReleaseInputs<'_>,
    next: &Map<Key, Shared<Releases>>,
) -> BTreeMap<Key, u64> {
    let mut last = given.current.ledger.last_releases.clone();
    last.retain(|key, _| !next.contains_key(key));
    let gone = given.current.releases.iter().filter(|(key, _)| !next.contains_key(*key));
    last.extend(gone.map(|(key, releases)| (key.clone(), newest(releases))));
    last
}

/// Drops the earlier releases that nothing needs: those that are neither the good one, nor pinned, nor
/// assigned to a cluster, nor among the newest few.
pub(super) fn forget_old(releases: &mut Releases, is_needed: impl Fn(u64) -> bool) {
    let newest: Vec<u64> = releases.earlier.iter().rev().take(KEPT).map(|release| release.number).collect();
    let good = releases.good;
    releases.earlier.retain(|release| {
        let number = release.number;
        Some(number) == good || newest.contains(&number) || is_needed(number)
    });
}

/// Sets the copies that clusters should have.
pub(super) fn want(cluster_rollouts: &mut BTreeMap<String, ClusterRollout<'_>>, folders: &Folders) {
    for (cluster, cluster_rollout) in cluster_rollouts {
        let copies = folders.get(cluster).map(|folder| folder.iter());
        cluster_rollout.want = copies.into_iter().flatten().map(|(path, id)| (path.clone(), *id)).collect();
    }
}

/// Finds the pinned clusters and the copies that they should have.
pub(super) fn pin(
    cluster_rollouts: &mut BTreeMap<String, ClusterRollout<'_>>,
    workload_rollout: &mut WorkloadRollout<'_>,
    workload: &Workload,
    (given, contents): (ReleaseInputs<'_>, &mut dyn Contents),
    desired: &Map<Key, Decision>,
) {
    if workload_rollout.orders.policies().iter().all(|policy| policy.pins.is_empty()) {
        return;
    }
    let mut by_release: BTreeMap<u64, BTreeSet<String>> = BTreeMap::new();
    for (cluster, cluster_rollout) in
        cluster_rollouts.iter_mut().filter(|(_, cluster_rollout)| cluster_rollout.picked)
    {
        let Some(labels) = given.labels.get(cluster) else { continue };
        let Some(pin) = workload_rollout.orders.pin(cluster, labels) else { continue };
        match pin.release {
            Some(number) if Some(number) == workload_rollout.target => continue,
            Some(number) => drop(by_release.entry(number).or_default().insert(cluster.clone())),
            None if !cluster_rollout.serves => {
                cluster_rollout.keeps = true;
                continue;
            }
            None => cluster_rollout.want = cluster_rollout.have.clone(),
        }
        cluster_rollout.is_pinned = true;
    }
    for (number, clusters) in by_release {
        let picks = picks_of(desired, &workload.key, |cluster| clusters.contains(cluster));
        let found = again(workload_rollout, number, given, &picks, contents);
        if let Err(fault) = &found {
            workload_rollout.diagnostics.push(lost(workload, number, fault));
        }
        for cluster in clusters {
            let Some(cluster_rollout) = cluster_rollouts.get_mut(&cluster) else { continue };
            cluster_rollout.want = match &found {
                Ok(folders) => {
                    cluster_rollout.pinned_to = Some(number);
                    let copies = folders.get(&cluster).map(|folder| folder.iter());
                    copies.into_iter().flatten().map(|(path, id)| (path.clone(), *id)).collect()
                }
                Err(_) => cluster_rollout.have.clone(),
            };
        }
    }
}

/// Renders a stored release for these picks; the error is one line. The rollout collects the release's
/// objects.
pub(super) fn again(
    workload_rollout: &mut WorkloadRollout<'_>,
    number: u64,
    given: ReleaseInputs<'_>,
    picks: &Shared<Vec<Pick>>,
    contents: &mut dyn Contents,
) -> Result<Folders, String> {
    let releases = &workload_rollout.releases;
    let release = releases.get(number).ok_or_else(|| "its inputs are no longer kept".to_owned())?;
    let bytes = contents.get(release.inputs).map_err(|error| error.to_string())?;
    let workload = inputs::read(&bytes, &releases.key)?;
    let (folders, objects) =
        render::copies_of(given.fleet, &workload, picks, contents).map_err(|error| error.to_string())?;
    workload_rollout.earlier_objects.extend(objects);
    Ok(folders)
}

pub(super) fn lost(workload: &Workload, number: u64, fault: &str) -> Diagnostic {
    let message = format!("{}: release {number} cannot be rendered again: {fault}", workload.key);
    Diagnostic::warning(workload.origin.clone(), message)
}

pub(super) fn picks_of(
    decisions: &Map<Key, Decision>,
    key: &Key,
    wanted: impl Fn(&str) -> bool,
) -> Shared<Vec<Pick>> {
    let picked = decisions.get(key).into_iter().flat_map(Decision::picked);
    picked.filter(|pick| wanted(&pick.cluster)).cloned().collect::<Vec<_>>().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(before: Option<&Releases>, inputs: u8) -> Releases {
        let key = Key::new("", "Workload", "shop", "web");
        with_inputs(&key, before, 0, ContentId([inputs; 20]), Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn new_inputs_are_a_new_release_and_those_of_the_good_one_are_that_release_again() {
        let mut first = step(None, 1);
        assert_eq!((first.current.number, first.good), (1, None));
        first.good = Some(1);
        assert_eq!(step(Some(&first), 1), first);
        let second = step(Some(&first), 2);
        assert_eq!((second.current.number, second.good), (2, Some(1)));
        assert_eq!(second.good().map(|good| good.inputs), Some(ContentId([1; 20])));
        let third = step(Some(&second), 3);
        assert_eq!((third.current.number, third.earlier.len()), (3, 2));
        let reverted = step(Some(&third), 1);
        assert_eq!((reverted.current.number, reverted.is_proven()), (1, true));
        // A number is never used twice for other inputs.
        assert_eq!(step(Some(&reverted), 4).current.number, 4);
    }

    #[test]
    fn few_earlier_releases_are_kept() {
        let mut releases = step(None, 0);
        releases.good = Some(1);
        for inputs in 1..20 {
            releases = step(Some(&releases), inputs);
            forget_old(&mut releases, |number| number == 2);
        }
        let numbers: Vec<u64> = releases.earlier.iter().map(|release| release.number).collect();
        assert_eq!(numbers, [1, 2, 17, 18, 19]);
    }
}

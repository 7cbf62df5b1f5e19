//! An earlier release, rendered again from its stored inputs: for clusters that return to it, begin with it,
//! or are pinned to it.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::diag::Diagnostic;
use berth_base::model::{Contents, Decision, Folders, Key, Map, Pick, Shared, Workload};

use super::cluster_rollout::ClusterRollout;
use super::workload_rollout::WorkloadRollout;
use super::{ReleaseInputs, inputs};
use crate::render;

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

//! Files and reports → the clusters as decisions see them, and the part of the reports that decisions read.
//!
//! For claims and properties, a member's newer report overrides the file. Labels of the file override
//! reported ones, because people edit labels to place workloads. Only clusters with a status are copied.
//!
//! Also the beginning of undated taints: the moment at which berth first saw them.
//!
//! That moment only matters if a toleration expires. The facts keep it while the taint exists, so that later
//! passes and proofs count from the same moment.

use std::borrow::Cow;
use std::collections::BTreeMap;

use super::digest::{Read, Reads};
use super::filter::may_expire;
use berth_base::model::cluster::{Readiness, Silence};
use berth_base::model::selector::{Labels, Measure};
use berth_base::model::status::TaintName;
use berth_base::model::{Cluster, ClusterStatus, Fleet, Map, Shared, Taint, Timestamp};

/// Returns the clusters with the values of their statuses, by name ascending.
pub fn overlay<'a>(fleet: &'a Fleet, statuses: &Map<String, Shared<ClusterStatus>>) -> Vec<Cow<'a, Cluster>> {
    fleet.clusters.values().map(|cluster| overlaid(fleet, statuses, cluster)).collect()
}

/// Returns a cluster of the fleet with the values of its statuses.
pub(super) fn overlaid<'a>(
    fleet: &Fleet,
    statuses: &Map<String, Shared<ClusterStatus>>,
    cluster: &'a Cluster,
) -> Cow<'a, Cluster> {
    let reports = [fleet.statuses.get(&*cluster.name), statuses.get(&*cluster.name)];
    let spoken = reports.into_iter().flatten().filter(|status| !says_nothing(status));
    spoken.fold(Cow::Borrowed(cluster), |mut with, status| {
        add(with.to_mut(), &cluster.labels, status);
        with
    })
}

fn says_nothing(status: &ClusterStatus) -> bool {
    status.labels.is_empty()
        && status.claims.is_empty()
        && status.properties.is_empty()
        && status.scores.is_empty()
        && status.workloads.is_empty()
        && status.silent.is_none()
        && !status.heard
}

/// Records which members have reported since the status in their file was written.
pub(super) fn heard<'s>(
    fleet: &Fleet,
    statuses: &'s Map<String, Shared<ClusterStatus>>,
) -> Cow<'s, Map<String, Shared<ClusterStatus>>> {
    let mut noted = Cow::Borrowed(statuses);
    let mut clusters = fleet.clusters.cursor();
    for (name, status) in statuses.iter().filter(|(_, status)| !status.heard && status.silent.is_none()) {
        let Some(reported) = status.reported else { continue };
        let Some(Readiness::Reported(file)) = clusters.get(name).map(|cluster| &cluster.standing) else {
            continue;
        };
        let dated = file.agent.as_ref().and_then(|agent| agent.heartbeat);
        if dated.is_none_or(|dated| dated < reported)
            && let Some(status) = noted.to_mut().get_mut(name)
        {
            status.heard = true;
        }
    }
    noted
}

/// Reports whether two statuses are equal for decisions.
pub(super) fn speaks_alike(
    before: Option<&Shared<ClusterStatus>>,
    after: Option<&Shared<ClusterStatus>>,
) -> bool {
    let [before, after] = [before, after].map(|one| one.map(|status| spoken(status)).unwrap_or_default());
    before == after
}

/// Returns the part of a status that a decision may read.
fn spoken(status: &ClusterStatus) -> ClusterStatus {
    ClusterStatus {
        labels: status.labels.clone(),
        claims: status.claims.clone(),
        properties: status.properties.clone(),
        scores: status.scores.clone(),
        workloads: status.workloads.clone(),
        taints: status.taints.clone(),
        silent: status.silent,
        frozen: status.frozen,
        heard: status.heard,
        ..ClusterStatus::default()
    }
}

fn add(cluster: &mut Cluster, of_file: &Labels, status: &ClusterStatus) {
    let reported = |key: &String| !of_file.contains_key(key);
    let newer = |from: &BTreeMap<String, String>| from.clone().into_iter();
    cluster.labels.extend(newer(&status.labels).filter(|(key, _)| reported(key)));
    cluster.claims.extend(newer(&status.claims));
    cluster.properties.extend(newer(&status.properties));
    cluster.scores.extend(status.scores.clone());
    cluster.workloads.extend(status.workloads.clone());
    if status.heard
        && let Readiness::Reported(file) = std::mem::replace(&mut cluster.standing, Readiness::Assumed)
    {
        cluster.taints.retain(|taint| !file.taints.contains(taint));
    }
    if let Some(silence) = status.silence() {
        fall_silent(cluster, silence);
    }
}

/// Adds the taints of silence to the cluster of a silent member. A taint that a file already has counts from
/// the moment in the file.
fn fall_silent(cluster: &mut Cluster, silence: Silence) {
    cluster.silence = Some(silence);
    for taint in &cluster.taints_of_silence {
        if !cluster.taints.iter().any(|known| TaintName::of(known) == TaintName::of(taint)) {
            let (since, frozen) = (Some(silence.since), silence.frozen);
            cluster.taints.push(Taint { since, frozen, ..taint.clone() });
        }
    }
}

/// Returns the part of the members' statuses that some policy reads. Clusters without such a part are left
/// out.
pub(super) fn facts(
    fleet: &Fleet,
    statuses: &Map<String, Shared<ClusterStatus>>,
    reads: &Reads<'_>,
) -> Map<String, Shared<ClusterStatus>> {
    let mut facts = Map::new();
    for (name, status) in statuses {
        let Some(cluster) = fleet.clusters.get(name) else { continue };
        let mut fact = ClusterStatus { cluster: name.clone(), ..ClusterStatus::default() };
        for read in reads {
            let (from, to, key) = match read {
                Read::Label(key) if cluster.labels.contains_key(*key) => continue,
                Read::Label(key) => (&status.labels, &mut fact.labels, *key),
                Read::Claim(key) => (&status.claims, &mut fact.claims, *key),
                Read::Measure(Measure::Property(key)) => {
                    (&status.properties, &mut fact.properties, key.as_str())
                }
                Read::Score(resource, name) => {
                    let named = ((*resource).to_owned(), (*name).to_owned());
                    let score = status.scores.get(&named).copied();
                    fact.scores.extend(score.map(|score| (named, score)));
                    continue;
                }
                // An expression may read any reported value.
                Read::Shown(_) => {
                    let of_file = |key: &String| cluster.labels.contains_key(key);
                    let labels = status.labels.iter().filter(|(key, _)| !of_file(key));
                    fact.labels.extend(labels.map(|(key, text)| (key.clone(), text.clone())));
                    fact.claims.extend(status.claims.clone());
                    fact.scores.extend(status.scores.clone());
                    continue;
                }
                Read::Room(workload) => {
                    let report = status.workloads.get(*workload).filter(|report| report.capacity.is_some());
                    fact.workloads.extend(report.map(|report| ((*workload).clone(), *report)));
                    continue;
                }
                Read::Taints if cluster.taints_of_silence.is_empty() => continue,
                Read::Taints | Read::Ready | Read::Eligible(_) | Read::Replaced(_) => {
                    (fact.silent, fact.frozen) = (status.silent, status.frozen);
                    fact.heard |= status.heard && reads_standing(read, &cluster.standing);
                    continue;
                }
                _ => continue,
            };
            if let Some(value) = from.get(key) {
                to.insert(key.to_owned(), value.clone());
            }
        }
        if !says_nothing(&fact) {
            facts.insert(name.clone(), fact.into());
        }
    }
    facts
}

/// Reports whether a read uses the report in a cluster's file.
fn reads_standing(read: &Read<'_>, standing: &Readiness) -> bool {
    match (read, standing) {
        (Read::Ready | Read::Eligible(_), Readiness::Reported(_)) => true,
        (Read::Taints, Readiness::Reported(file)) => !file.taints.is_empty(),
        _ => false,
    }
}

/// Reports whether any taint has no moment.
pub(super) fn any_undated(clusters: &[Cow<'_, Cluster>]) -> bool {
    clusters.iter().flat_map(|cluster| &cluster.taints).any(|taint| taint.since.is_none())
}

/// Gives each undated taint its moment; `statuses` contain the known moments. Reports whether a taint is new.
pub(super) fn date_taints(
    clusters: &mut [Cow<'_, Cluster>],
    statuses: &Map<String, Shared<ClusterStatus>>,
    reads: &Reads<'_>,
    now: Timestamp,
) -> bool {
    let mut any_new = false;
    for cluster in clusters {
        if undated(cluster, reads).is_empty() {
            continue;
        }
        let seen = statuses.get(&*cluster.name);
        let when = |name: &TaintName| seen.and_then(|status| status.taints.get(name)).copied();
        for (index, name) in undated(cluster, reads) {
            let before = when(&name);
            any_new |= before.is_none();
            cluster.to_mut().taints[index].since = Some(before.unwrap_or(now).min(now));
        }
    }
    any_new
}

/// Adds the moments from [`date`] to the facts; `fleet` are the clusters as files describe them.
pub(super) fn note_taints<'c>(
    facts: &mut Map<String, Shared<ClusterStatus>>,
    fleet: impl Iterator<Item = &'c Cluster>,
    dated: &[Cow<'_, Cluster>],
    reads: &Reads<'_>,
) {
    for (cluster, dated) in fleet.zip(dated) {
        for (index, name) in undated(cluster, reads) {
            if let Some(since) = dated.taints[index].since {
                let fact = facts.or_insert_with(&*cluster.name, || {
                    ClusterStatus { cluster: cluster.name.to_string(), ..ClusterStatus::default() }.into()
                });
                fact.taints.insert(name, since);
            }
        }
    }
}

/// Returns the undated taints that some toleration allows for a limited time, with their indexes.
fn undated(cluster: &Cluster, reads: &Reads<'_>) -> Vec<(usize, TaintName)> {
    let matters = |taint: &Taint| {
        taint.since.is_none()
            && reads.iter().any(|read| matches!(read, Read::Tolerated(all) if may_expire(all, taint)))
    };
    let taints = cluster.taints.iter().enumerate().filter(|(_, taint)| matters(taint));
    taints.map(|(index, taint)| (index, TaintName::of(taint))).collect()
}

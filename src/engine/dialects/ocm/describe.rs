//! The status of Open Cluster Management's objects: a Placement's decisions, a ManifestWorkReplicaSet's
//! counts.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::kinds::{CLUSTER, WORK};
use crate::dialects::Described;
use crate::dialects::described::condition_json;
use berth_base::model::{Decision, Member, PlacementRef, Source};

/// Returns the status of a Placement or a ManifestWorkReplicaSet.
pub(super) fn describe(described: &Described<'_>) -> Option<Json> {
    match &*described.decision.key.group {
        CLUSTER => Some(placement(described.decision)),
        WORK => Some(work(described)),
        _ => None,
    }
}

fn placement(decision: &Decision) -> Json {
    let mut groups: BTreeMap<(usize, &str), Vec<&str>> = BTreeMap::new();
    for pick in decision.picks.iter() {
        let group = pick.group.as_ref().map_or((0, ""), |group| (group.index, group.name.as_str()));
        groups.entry(group).or_default().push(&pick.cluster);
    }
    let group = |((index, name), clusters): ((usize, &str), Vec<&str>)| {
        json!({
            "decisionGroupIndex": index, "decisionGroupName": name, "clusterCount": clusters.len(),
            "clusters": clusters,
        })
    };
    json!({
        "numberOfSelectedClusters": decision.picks.len(),
        "conditions": decision.condition.iter().map(|one| condition_json(one, "")).collect::<Vec<_>>(),
        "decisionGroups": groups.into_iter().map(group).collect::<Vec<_>>(),
    })
}

/// The standing of one cluster's work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum WorkState {
    Applied,
    Degraded,
    Progressing,
}

fn work(described: &Described<'_>) -> Json {
    let Described { decision, placed, .. } = described;
    let total = placed.len();
    let waits = described.waits();
    let works: BTreeMap<&str, WorkState> =
        placed.iter().map(|(name, member)| (*name, standing(decision, *member, &waits))).collect();
    let applied = works.values().filter(|work| **work == WorkState::Applied).count();
    let all = if applied == total { ("True", "AsExpected") } else { ("False", "NotAsExpected") };
    let rolled_out = match waits.first_key_value() {
        None if applied == total => ("True", "Complete", "all clusters have the current release".to_owned()),
        None => {
            ("False", "Progressing", "clusters have not reported the current release in order".to_owned())
        }
        Some((cluster, wait)) => {
            let message = format!("{} of {total} clusters wait; {cluster}: {wait}", waits.len());
            ("False", "Progressing", message)
        }
    };
    let verified = if total > 0 { ("True", "AsExpected") } else { ("False", "NotAsExpected") };
    let condition = |kind: &str, (status, reason): (&str, &str), message: String| json!({"type": kind, "status": status, "reason": reason, "message": message});
    json!({
        "summary": summary(works.values()),
        "placementSummary": by_placement(described, &works),
        "conditions": [
            condition("PlacementVerified", verified, format!("its placements pick {total}")),
            condition("PlacementRolledOut", (rolled_out.0, rolled_out.1), rolled_out.2),
            condition("ManifestworkApplied", all, format!("{applied} of {total} clusters have applied it")),
        ],
    })
}

fn standing(decision: &Decision, member: Option<&Member<'_>>, waits: &BTreeMap<&str, String>) -> WorkState {
    let Some(member) = member else { return WorkState::Progressing };
    let view = member.view();
    let has_problem = view.problem_of(&decision.objects).is_some();
    if has_problem || decision.failures.iter().any(|failure| failure.cluster == member.name) {
        return WorkState::Degraded;
    }
    let is_current =
        view.has(&decision.objects) && !view.awaits(&decision.objects) && !waits.contains_key(member.name);
    if is_current { WorkState::Applied } else { WorkState::Progressing }
}

fn summary<'w>(works: impl Iterator<Item = &'w WorkState> + Clone) -> Json {
    let count = |wanted: WorkState| works.clone().filter(|work| **work == wanted).count();
    json!({
        "total": works.clone().count(), "applied": count(WorkState::Applied), "degraded": count(WorkState::Degraded),
        "progressing": count(WorkState::Progressing),
    })
}

/// Returns the summary of each placement that the work follows. A cluster counts for each placement that
/// picks it.
fn by_placement(described: &Described<'_>, works: &BTreeMap<&str, WorkState>) -> Vec<Json> {
    let Described { decision, fleet: Some(fleet), decisions: Some(decisions), .. } = described else {
        return Vec::new();
    };
    let source = fleet.placements.get(&decision.key).map(|placement| &placement.source);
    let Some(Source::Follows(follow)) = source else { return Vec::new() };
    let one = |placement: &PlacementRef| {
        let followed = fleet.find(placement).and_then(|found| decisions.get(&found.key));
        let mut groups: BTreeMap<usize, Vec<&WorkState>> = BTreeMap::new();
        for pick in followed.into_iter().flat_map(Decision::picked) {
            let group = pick.group.as_ref().map_or(0, |group| group.index);
            groups.entry(group).or_default().extend(works.get(&*pick.cluster));
        }
        let is_available = |works: &&Vec<&WorkState>| works.iter().all(|work| **work == WorkState::Applied);
        let available = groups.values().filter(is_available).count();
        json!({
            "name": placement.name,
            "availableDecisionGroups": format!("{available}/{}", groups.len()),
            "summary": summary(groups.values().flatten().copied()),
        })
    };
    follow.placements.iter().map(one).collect()
}

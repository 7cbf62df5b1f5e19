//! The status of Open Cluster Management's objects: a Placement's decisions, a ManifestWorkReplicaSet's
//! counts.

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::groups::{CLUSTER, WORK};
use crate::dialects::Described;
use crate::dialects::described::condition_json;
use berth_base::model::{Decision, Member};

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

fn work(described: &Described<'_>) -> Json {
    let Described { decision, placed, .. } = described;
    let total = placed.len();
    let has_problem = |member: &&Member<'_>| {
        member.problems().iter().any(|problem| decision.objects.contains(&problem.object))
    };
    let known = || placed.iter().filter_map(|(_, member)| *member);
    let failing = |name: &str| decision.failures.iter().any(|failure| failure.cluster == name);
    let waits = described.waits();
    let degraded = known().filter(|member| has_problem(member) || failing(member.name)).count();
    let is_current = |member: &&Member<'_>| {
        member.has_folder() && !member.awaits(&decision.objects) && !waits.contains_key(member.name)
    };
    let in_sync = known().filter(is_current);
    let applied = in_sync.filter(|member| !has_problem(member) && !failing(member.name)).count();
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
        "summary": {"total": total, "applied": applied, "degraded": degraded, "progressing": total - applied - degraded},
        "conditions": [
            condition("PlacementVerified", verified, format!("its placements pick {total}")),
            condition("PlacementRolledOut", (rolled_out.0, rolled_out.1), rolled_out.2),
            condition("ManifestworkApplied", all, format!("{applied} of {total} clusters have applied it")),
        ],
    })
}

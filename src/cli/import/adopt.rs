//! Adopts a hub's current decisions: they get the digests of berth's inputs, so that they stay until the inputs
//! change.
//!
//! A hub may have picked other clusters of equal fitness, for example by their load at the time. That is no reason to
//! move anything. berth decides again only if a cluster is no longer eligible or another number is required.

use berth_base::model::{Decision, Fleet, Key, Map, Source, Timestamp};
use berth_engine::decide;

/// Returns the hub's decisions, with digests for those that can stay. `decided` contains berth's decisions after
/// them.
pub fn adopt(
    fleet: &Fleet,
    decided: &Map<Key, Decision>,
    live: Map<Key, Decision>,
    now: Timestamp,
) -> Map<Key, Decision> {
    let stands = |live: &Decision, wanted: &Decision| {
        live.picks.len() == wanted.picks.len()
            && (live.picks.iter().all(|pick| wanted.has(&pick.cluster))
                || is_only_ranked_otherwise(fleet, &all_of(&live.key, live), wanted, now))
    };
    let one = |(key, live): (Key, Decision)| {
        let decision = match decided.get(&key).filter(|_| ranks(fleet, &key)) {
            Some(wanted) if stands(&live, wanted) => Decision { picks: live.picks, ..wanted.clone() },
            _ => live,
        };
        (key, decision)
    };
    live.into_iter().map(one).collect()
}

/// Reports whether a placement ranks clusters and divides nothing among them.
fn ranks(fleet: &Fleet, key: &Key) -> bool {
    let source = fleet.placements.get(key).map(|placement| &placement.source);
    matches!(source, Some(Source::Own(policy)) if !policy.scorers.is_empty() && policy.division.is_none())
}

fn all_of(key: &Key, live: &Decision) -> Map<Key, Decision> {
    Map::from([(key.clone(), live.clone())])
}

/// Reports whether every cluster of the hub's decision passes berth's filters.
fn is_only_ranked_otherwise(
    fleet: &Fleet,
    hub: &Map<Key, Decision>,
    wanted: &Decision,
    now: Timestamp,
) -> bool {
    let Some(trace) = decide::explain(fleet, hub, &Map::new(), now, &wanted.key) else { return false };
    let is_fit = |name: &str| {
        let cluster = trace.clusters.iter().find(|one| one.cluster == name);
        cluster.is_some_and(|one| one.rank.is_some() && one.steps.iter().all(|step| step.passed))
    };
    hub.values().flat_map(|live| live.picks.iter()).all(|pick| is_fit(&pick.cluster))
}

//! Decisions and rollout strategies → the clusters that may have a workload now; the others are marked as
//! pending.
//!
//! A workload with an external rollout stays unchanged everywhere, removals included.
//!
//! Health is not known at this stage. A released copy counts as in progress until every cluster has its
//! copy: a rollout stops after its first wave. A cluster never loses its copy here.

pub mod copies;
pub mod outlook;
pub mod policy;
pub mod progressive;
pub mod rolling;
pub mod runs;
pub mod staged;
pub mod stages;
pub mod turn;
mod turns;
pub mod verdict;

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use berth_base::diag::{Diagnostic, Diagnostics};
use berth_base::model::rollout::{Pace, Rollout, Strategy};
use berth_base::model::{Decision, Fleet, Key, Pick};
use turns::{Progress, Turn};

/// Marks the clusters of each decision that are not served yet. `previous` are the current decisions.
pub fn release(
    fleet: &Fleet,
    previous: &BTreeMap<Key, Decision>,
    decisions: &mut BTreeMap<Key, Decision>,
) -> Diagnostics {
    let mut found = hold_external(fleet, previous, decisions);
    let mut waiting: Vec<(Key, BTreeSet<String>)> = Vec::new();
    for (key, decision) in decisions.iter().filter(|(key, _)| !is_external(fleet, key)) {
        let rollouts: &[Rollout] = match fleet.workloads.get(key).map(|workload| &workload.strategy) {
            Some(Strategy::Progressive(rollouts)) => rollouts,
            _ => &[],
        };
        let waits = match rollouts {
            [] => BTreeSet::new(),
            rollouts if rollouts.iter().all(|one| one.pace == Pace::Together) => BTreeSet::new(),
            rollouts => waiting_for(rollouts, fleet, decisions, decision, previous.get(key)),
        };
        if decision.picks.iter().any(|pick| pick.pending != waits.contains(&pick.cluster)) {
            waiting.push((key.clone(), waits));
        }
    }
    for (key, waits) in waiting {
        let Some(decision) = decisions.get_mut(&key) else { continue };
        decision.picks.iter_mut().for_each(|pick| pick.pending = waits.contains(&pick.cluster));
    }
    for (key, decision) in decisions.iter() {
        let waits = decision.picks.iter().filter(|pick| pick.pending).count();
        let is_told = waits > 0 && !is_external(fleet, key);
        let Some(placement) = fleet.placements.get(key).filter(|_| is_told) else { continue };
        let message = format!(
            "{key}: {waits} of {} clusters wait for the first wave of the rollout, and berth does not \
             follow its progress yet",
            decision.picks.len()
        );
        let hint = "use the rollout strategy `All` to update all clusters";
        found.push(Diagnostic::warning(placement.origin.clone(), message).hint(hint));
    }
    found
}

fn is_external(fleet: &Fleet, key: &Key) -> bool {
    fleet.workloads.get(key).is_some_and(|workload| workload.strategy == Strategy::Runs)
}

/// Lets every cluster of an external rollout keep what it has: one that is picked now waits for its copy, and
/// one that is not picked any more does not lose it.
fn hold_external(
    fleet: &Fleet,
    previous: &BTreeMap<Key, Decision>,
    decisions: &mut BTreeMap<Key, Decision>,
) -> Diagnostics {
    let mut found = Diagnostics::new();
    for workload in fleet.workloads.values().filter(|workload| workload.strategy == Strategy::Runs) {
        let Some(decision) = decisions.get_mut(&workload.key) else { continue };
        let before = previous.get(&workload.key);
        let had = |cluster: &str| before.is_some_and(|before| before.serves(cluster));
        let mut picks: Vec<Pick> = decision.picked().cloned().collect();
        picks.iter_mut().for_each(|pick| pick.pending = !had(&pick.cluster));
        let waits = picks.iter().filter(|pick| pick.pending).count();
        let stays = before.into_iter().flat_map(|before| before.picks.iter());
        let stays: Vec<Pick> = stays
            .filter(|pick| !pick.pending && fleet.clusters.contains_key(&pick.cluster))
            .filter(|pick| picks.binary_search_by(|one| one.cluster.cmp(&pick.cluster)).is_err())
            .map(|pick| Pick { leaving: true, reason: LEAVING.to_owned(), ..pick.clone() })
            .collect();
        let message = format!(
            "{} rolls out by staged update runs, which berth does not act on yet: every cluster keeps its \
             copy ({waits} of {} picked clusters wait for a new one, {} others would lose theirs)",
            workload.key,
            picks.len(),
            stays.len(),
        );
        let hint = "use `strategy.type: RollingUpdate` to update all picked clusters";
        found.push(Diagnostic::warning(workload.origin.clone(), message).hint(hint));
        picks.extend(stays);
        picks.sort_by(|a, b| a.cluster.cmp(&b.cluster));
        if *decision.picks != picks {
            decision.picks = picks.into();
        }
    }
    found
}

const LEAVING: &str = "not picked any more; the removal waits for a staged update run";

/// The picked clusters that none of the placements lets have it now.
fn waiting_for(
    rollouts: &[Rollout],
    fleet: &Fleet,
    decisions: &BTreeMap<Key, Decision>,
    decision: &Decision,
    previous: Option<&Decision>,
) -> BTreeSet<String> {
    let before = previous.map(|previous| &**previous.picks).unwrap_or_default();
    let was_complete = before.iter().all(|pick| !pick.pending);
    let progress = |cluster: &str| match before.binary_search_by(|pick| pick.cluster.as_str().cmp(cluster)) {
        Ok(index) if before[index].pending => Progress::New,
        Ok(_) if was_complete => Progress::Done,
        Ok(_) => Progress::UnderWay,
        Err(_) => Progress::New,
    };
    let mut waits: BTreeSet<String> = BTreeSet::new();
    let mut served: BTreeSet<String> = BTreeSet::new();
    let mut known: BTreeSet<&str> = BTreeSet::new();
    for rollout in rollouts {
        let followed = rollout
            .placement
            .as_ref()
            .and_then(|one| fleet.find(one))
            .and_then(|placement| decisions.get(&placement.key));
        let picks: &[Pick] = followed.map(|followed| &**followed.picks).unwrap_or_default();
        // A cluster that the workload is not placed in takes no turn.
        let turns = picks.iter().filter(|pick| decision.has(&pick.cluster)).map(|pick| Turn {
            cluster: &pick.cluster,
            group: pick.group.as_ref(),
            progress: progress(&pick.cluster),
        });
        let turns: Vec<Turn<'_>> = turns.collect();
        known.extend(turns.iter().map(|turn| turn.cluster));
        let now = turns::now(rollout, &turns);
        for turn in &turns {
            let list = if now.contains(turn.cluster) { &mut served } else { &mut waits };
            list.insert(turn.cluster.to_owned());
        }
    }
    // A cluster is served if any rollout serves it, or if no rollout names it, as for an uncertain placement.
    waits.retain(|cluster| !served.contains(cluster) && known.contains(cluster.as_str()));
    waits
}

//! The whole answer of a strategy at one moment: it is asked until it has nothing more to give, so that a
//! second step over the same facts gives nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_base::model::release::{Health, Releases};
use berth_base::model::rollout::Strategy;
use berth_base::model::staged::{RunState, Standing};
use berth_base::model::{Pick, Timestamp};

use super::cluster_rollout::ClusterRollout;
use super::strategies::{self, Step, Turn, Version};
use super::workload_rollout::WorkloadRollout;

/// A strategy's whole answer for this moment.
#[derive(Debug, Default)]
pub(super) struct StrategyAnswer {
    pub(super) give: BTreeSet<String>,
    pub(super) remove: BTreeSet<String>,
    pub(super) timed_out: BTreeSet<String>,
    /// The failures that halt the rollout, in plain words.
    pub(super) halted: Option<String>,
    pub(super) waits: BTreeMap<String, Arc<str>>,
    pub(super) notes: BTreeSet<String>,
    pub(super) next: Option<Timestamp>,
    /// The standing of a staged rollout.
    pub(super) standing: Option<Standing>,
}

/// The clusters in which workloads of the unit are unhealthy: with older copies, and by their health. Each
/// workload counts as unhealthy there, so that all strategies choose the same clusters.
#[derive(Debug, Default)]
pub(super) struct Unhealthy {
    health: BTreeMap<String, Health>,
    broken: BTreeSet<String>,
}

impl Unhealthy {
    /// Adds the clusters of one workload.
    pub(super) fn add(
        &mut self,
        workload_rollout: &WorkloadRollout<'_>,
        cluster_rollouts: &BTreeMap<String, ClusterRollout<'_>>,
    ) {
        let behind =
            cluster_rollouts.iter().filter(|(_, cluster_rollout)| cluster_rollout.version() == Version::Old);
        for (cluster, cluster_rollout) in
            behind.filter(|(_, cluster_rollout)| cluster_rollout.health() != Health::Succeeded)
        {
            let worst = self.health.entry(cluster.clone()).or_insert_with(|| cluster_rollout.health());
            *worst = worse(*worst, cluster_rollout.health());
        }
        self.broken.extend(broken(cluster_rollouts, &workload_rollout.releases).map(str::to_owned));
    }
}

fn worse(one: Health, other: Health) -> Health {
    let order = [Health::Failed, Health::Applying, Health::Progressing];
    order.into_iter().find(|health| [one, other].contains(health)).unwrap_or(Health::Succeeded)
}

/// The circumstances of a question to a strategy.
#[derive(Clone, Copy)]
pub(super) struct Circumstances<'q> {
    pub(super) unhealthy: &'q Unhealthy,
    /// The picks of the workloads that this one follows.
    pub(super) followed: &'q [&'q [Pick]],
    /// The reason why no cluster may get the release.
    pub(super) closed: Option<&'q str>,
    pub(super) now: Timestamp,
}

/// Asks which clusters may get the release now. None may while the rollout is `closed` for this reason.
pub(super) fn ask(
    workload_rollout: &mut WorkloadRollout<'_>,
    cluster_rollouts: &BTreeMap<String, ClusterRollout<'_>>,
    circumstances: Circumstances<'_>,
) -> StrategyAnswer {
    let Circumstances { unhealthy, closed, .. } = circumstances;
    let mut answer = StrategyAnswer::default();
    let mut turns = turns(cluster_rollouts, workload_rollout);
    for turn in turns.iter_mut().filter(|turn| turn.has == Version::Old && !turn.removing) {
        turn.health = worse(turn.health, unhealthy.health.get(turn.cluster).copied().unwrap_or(turn.health));
    }
    if workload_rollout.target.is_none() {
        let reason = closed.unwrap_or(match *workload_rollout.strategy {
            Strategy::Stages(_) => "the stages cannot be computed",
            _ => "no staged update run can proceed",
        });
        answer.take(Step::all_wait(&turns, reason));
        return answer;
    }
    if matches!(*workload_rollout.strategy, Strategy::Rolling(_)) && closed.is_none() {
        let is_behind = |one: &ClusterRollout<'_>| one.picked && one.version() == Version::Old;
        let of_others = unhealthy.broken.iter().map(String::as_str);
        let of_others = of_others.filter(|cluster| cluster_rollouts.get(*cluster).is_some_and(is_behind));
        let broken = broken(cluster_rollouts, &workload_rollout.releases).chain(of_others).collect();
        assign(&mut turns, &broken, &mut answer);
    }
    if let (Some(staged), Some(_)) = (&mut workload_rollout.staged, closed) {
        staged.state = RunState::Stop;
    }
    take_steps(workload_rollout, cluster_rollouts, circumstances, turns, &mut answer);
    for (cluster, cluster_rollout) in cluster_rollouts {
        if is_on_its_way(cluster, cluster_rollout, workload_rollout) {
            let reason = || "waiting for its report on the proven release".into();
            answer.waits.entry(cluster.clone()).or_insert_with(reason);
        }
    }
    answer
}

/// Asks the strategy for steps until it has nothing more to give or to remove.
fn take_steps(
    workload_rollout: &mut WorkloadRollout<'_>,
    cluster_rollouts: &BTreeMap<String, ClusterRollout<'_>>,
    Circumstances { followed, closed, now, .. }: Circumstances<'_>,
    mut turns: Vec<Turn<'_>>,
    answer: &mut StrategyAnswer,
) {
    loop {
        let step = match &mut workload_rollout.staged {
            Some(staged) => {
                let (step, standing) = staged.step(&turns, now);
                answer.standing = Some(standing);
                step
            }
            None => strategies::step(&workload_rollout.strategy, &turns, followed, now),
        };
        let (give, remove) = (step.give.clone(), step.remove.clone());
        if let Some(reason) = closed {
            let waits = Step::all_wait(&turns, reason).waits;
            return answer.take(Step { waits, ..step });
        }
        if give.is_empty() && remove.is_empty() {
            return answer.take(step);
        }
        answer.remove.extend(remove.iter().map(|cluster| (*cluster).to_owned()));
        let is_slow = |cluster: &str| {
            workload_rollout.remembers_removals()
                && cluster_rollouts.get(cluster).is_some_and(ClusterRollout::is_removed_slowly)
        };
        turns.retain(|turn| !remove.contains(turn.cluster) || is_slow(turn.cluster));
        for turn in turns.iter_mut().filter(|turn| remove.contains(turn.cluster)) {
            (turn.removing, turn.health, turn.since) = (true, Health::Applying, None);
        }
        assign(&mut turns, &give, answer);
        // The cluster keeps what it got, so it is pinned from now on.
        turns.retain(|turn| !give.contains(turn.cluster) || !cluster_rollouts[turn.cluster].keeps);
    }
}

/// Assigns the release to these clusters.
fn assign(turns: &mut [Turn<'_>], give: &BTreeSet<&str>, answer: &mut StrategyAnswer) {
    for turn in turns.iter_mut().filter(|turn| give.contains(turn.cluster)) {
        (turn.has, turn.health, turn.since) = (Version::New, Health::Applying, None);
    }
    answer.give.extend(give.iter().map(|cluster| (*cluster).to_owned()));
}

impl StrategyAnswer {
    fn take(&mut self, step: Step<'_>) {
        self.timed_out = step.timed_out.into_iter().map(str::to_owned).collect();
        self.halted = step.halted.map(|failures| failures.words());
        self.waits.extend(step.waits.into_iter().map(|(cluster, reason)| (cluster.to_owned(), reason)));
        self.notes = step.notes;
        self.next = step.next;
    }
}

/// Returns the turns. A cluster that begins with the proven release without a report yet is left out; budgets
/// count it as a cluster whose copy is unfinished.
fn turns<'s>(
    cluster_rollouts: &'s BTreeMap<String, ClusterRollout<'_>>,
    workload_rollout: &WorkloadRollout<'_>,
) -> Vec<Turn<'s>> {
    let releases = &workload_rollout.releases;
    let is_rolling = matches!(*workload_rollout.strategy, Strategy::Rolling(_));
    let good = releases.good.filter(|good| Some(*good) != workload_rollout.target);
    let begins = |cluster: &str, cluster_rollout: &ClusterRollout<'_>| match cluster_rollout.version() {
        Version::Nothing => good.is_some() && cluster_rollout.removing.is_none(),
        Version::Old => is_on_its_way(cluster, cluster_rollout, workload_rollout),
        Version::New => false,
    };
    let turn = |(cluster, cluster_rollout): (&'s String, &'s ClusterRollout<'_>)| {
        let turn = Turn {
            cluster,
            group: cluster_rollout.group,
            picked: cluster_rollout.picked,
            has: if cluster_rollout.begins || begins(cluster, cluster_rollout) {
                Version::New
            } else {
                cluster_rollout.version()
            },
            health: cluster_rollout.health(),
            since: cluster_rollout.since(),
            measured: workload_rollout.is_measured,
            removing: false,
        };
        match cluster_rollout.removing {
            Some(_) => {
                Turn { has: Version::Old, health: Health::Applying, since: None, removing: true, ..turn }
            }
            None => turn,
        }
    };
    let free = cluster_rollouts
        .iter()
        .filter(|(_, cluster_rollout)| cluster_rollout.counts() && !cluster_rollout.is_pinned);
    // A newcomer that keeps its first release is pinned from then on.
    let asked = free.filter(|(cluster, cluster_rollout)| match begins(cluster, cluster_rollout) {
        true => is_rolling && !cluster_rollout.keeps,
        false => !(cluster_rollout.begins && cluster_rollout.keeps),
    });
    asked.map(turn).collect()
}

/// Reports whether the cluster was assigned the proven release, has not reported on it yet, and others go to
/// another release.
fn is_on_its_way(
    cluster: &str,
    cluster_rollout: &ClusterRollout<'_>,
    workload_rollout: &WorkloadRollout<'_>,
) -> bool {
    let releases = &workload_rollout.releases;
    let told = releases.assigned.get(cluster).map(|told| told.release);
    let good = releases.good.filter(|good| Some(*good) != workload_rollout.target);
    cluster_rollout.picked
        && !cluster_rollout.is_pinned
        && cluster_rollout.version() == Version::Old
        && good.is_some_and(|good| told == Some(good))
        && cluster_rollout.health() == Health::Applying
}

/// Returns the clusters that an unproven release made unhealthy. The next release cannot make them worse, so
/// they need not wait for each other.
fn broken<'s>(
    cluster_rollouts: &'s BTreeMap<String, ClusterRollout<'_>>,
    releases: &Releases,
) -> impl Iterator<Item = &'s str> {
    let is_unproven = |cluster: &str| {
        let told = releases.assigned.get(cluster).map(|told| told.release);
        told.is_some_and(|told| told != releases.current.number && Some(told) != releases.good)
    };
    let broken = cluster_rollouts.iter().filter(move |(cluster, cluster_rollout)| {
        cluster_rollout.picked
            && cluster_rollout.version() == Version::Old
            && cluster_rollout.health() != Health::Succeeded
            && is_unproven(cluster)
    });
    broken.map(|(cluster, _)| cluster.as_str())
}

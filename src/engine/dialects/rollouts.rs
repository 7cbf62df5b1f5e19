//! A workload's rollout for its system's status: the clusters that wait, and the verdicts on the others.
//!
//! Also the documents by which people steer a system's staged runs (the field of a run's state, and an
//! approval), and a rollout strategy outside of a system's own objects, in the form of any system.

use serde_json::Value as Json;

use super::{kubefleet, ocm};
use berth_base::model::cluster::WorkloadName;
use berth_base::model::release::{CopyReport, Health, Releases};
use berth_base::model::rollout::{Rolling, Strategy};
use berth_base::model::rollout_policy::PolicyStrategy;
use berth_base::model::staged::{RunState, StageGate};
use berth_base::model::{ClusterStatus, Key, Map, Pick, Shared, Timestamp};
use berth_base::yaml::Fields;

pub(crate) use ocm::duration;

/// A workload's releases, with the verdicts that the last step read.
#[derive(Clone, Copy, Debug)]
pub struct RolloutView<'a> {
    pub releases: &'a Releases,
    pub facts: &'a Map<String, Shared<ClusterStatus>>,
}

impl<'a> RolloutView<'a> {
    /// Returns the reason why a picked cluster waits for its turn. `None` if it does not wait.
    pub(crate) fn wait(&self, pick: &Pick) -> Option<String> {
        if !self.releases.is_waiting(pick) {
            return None;
        }
        let target = self.releases.target();
        let has = match self.releases.of_pick(pick) {
            Some(has) => format!("it keeps release {has}"),
            None => "it has no copy yet".to_owned(),
        };
        let why = match &self.releases.halted {
            Some(halt) => format!("is halted: {}", halt.reason),
            None => "has not reached it yet".to_owned(),
        };
        Some(format!("{has}; release {target} {why}"))
    }

    /// Returns the report on the cluster's current copies. An older report is about other copies.
    pub fn report(&self, cluster: &str) -> Option<&'a CopyReport> {
        let name = WorkloadName::of(&self.releases.key);
        let report = self.facts.get(cluster)?.copies.get(&name)?;
        let from = self.releases.reports_from(cluster);
        let is_fresh = from.is_none_or(|from| report.since.is_some_and(|since| since >= from));
        is_fresh.then_some(report)
    }

    /// Returns the verdict on a cluster's copies: `Applying` without a report; copies of the proven release
    /// count as a success.
    pub(crate) fn health(&self, cluster: &str) -> Health {
        match self.report(cluster) {
            Some(report) => report.health,
            None if self.releases.reports_from(cluster).is_none() && self.releases.good.is_some() => {
                Health::Succeeded
            }
            None => Health::Applying,
        }
    }
}

/// A system's staged runs.
#[derive(Debug)]
pub struct StagedRuns {
    pub group: &'static str,
    /// The path to the field of a run's state.
    pub state: [&'static str; 2],
    pub word: fn(RunState) -> &'static str,
    /// Makes the document that approves a gate of a run.
    pub approval: fn(&RunApproval<'_>) -> Json,
}

/// An approval that a person is about to give.
#[derive(Clone, Copy, Debug)]
pub struct RunApproval<'a> {
    pub run: &'a Key,
    pub gate: &'a StageGate,
    /// The person's message.
    pub message: &'a str,
    pub now: Timestamp,
}

const FORMS: [&str; 4] = ["rolloutStrategy", "rollingUpdate", "stages", "stagedStrategy"];

/// Reads a strategy in one of its forms.
pub fn written_strategy(mut fields: Fields<'_>) -> Option<PolicyStrategy> {
    let given: Vec<&str> = FORMS.into_iter().filter(|form| fields.node(form).is_some()).collect();
    let path = fields.path().to_owned();
    match given.as_slice() {
        [_] => {}
        [] => fields.scope().error(fields.at(), format!("{path} needs one of {}", FORMS.join(", "))),
        [_, second, ..] => {
            let message = format!("{path} has {}, but must have one strategy only", given.join(" and "));
            fields.error_at(second, message);
        }
    }
    let waves = fields.fields("rolloutStrategy").map(ocm::rollout_strategy);
    let waves = waves.map(|rollout| PolicyStrategy::Written(Strategy::Progressive(vec![rollout])));
    let rolling = fields.node("rollingUpdate").is_some().then(|| {
        let rolling = kubefleet::rolling_update(&mut fields);
        PolicyStrategy::Written(Strategy::Rolling(Rolling { asked: true, ..rolling }))
    });
    let stages = fields
        .node("stages")
        .is_some()
        .then(|| PolicyStrategy::Written(Strategy::Stages(kubefleet::stages(&mut fields))));
    let at = fields.scope().pos(fields.place_of("stagedStrategy"));
    let staged = fields.str("stagedStrategy");
    let staged = staged.map(|name| PolicyStrategy::Staged { name: name.to_owned(), at });
    fields.finish();
    waves.or(rolling).or(stages).or(staged)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use berth_base::model::release::{Assignment, Halt, Release, Stays};
    use berth_base::model::{ContentId, Digest, Key, Timestamp};

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(seconds).unwrap()
    }

    fn releases() -> Releases {
        let release = |number| Release { number, begun: at(0), inputs: ContentId([0; 20]) };
        Releases {
            good: Some(1),
            earlier: vec![release(1)],
            assigned: BTreeMap::from([("a".to_owned(), Assignment { release: 2, at: at(10) })]),
            ..Releases::of(Key::new("", "Workload", "shop", "web"), release(2))
        }
    }

    fn pick(cluster: &str, pending: bool) -> Pick {
        Pick::of(cluster).with(|details| details.pending = pending)
    }

    #[test]
    fn clusters_wait_until_they_are_told_and_a_halt_is_the_reason() {
        let (mut releases, facts) = (releases(), Map::new());
        let wait = |releases: &Releases, pick: Pick| RolloutView { releases, facts: &facts }.wait(&pick);
        assert_eq!(wait(&releases, pick("a", false)), None);
        let old = wait(&releases, pick("b", false)).unwrap();
        assert_eq!(old, "it keeps release 1; release 2 has not reached it yet");
        releases.halted = Some(Halt { since: at(12), reason: "a failed".to_owned() });
        let new = wait(&releases, pick("c", true)).unwrap();
        assert_eq!(new, "it has no copy yet; release 2 is halted: a failed");
        releases.taken_back = true;
        assert_eq!(wait(&releases, pick("b", false)), None);
    }

    #[test]
    fn a_cluster_that_has_the_release_already_and_a_pinned_one_do_not_wait() {
        let (mut releases, facts) = (releases(), Map::new());
        let stays = |release, pinned| Stays { release, pinned };
        releases.stays = BTreeMap::from([
            ("b".to_owned(), stays(2, false)),
            ("c".to_owned(), stays(1, true)),
            ("d".to_owned(), stays(1, false)),
        ]);
        let view = RolloutView { releases: &releases, facts: &facts };
        let waits = ["b", "c", "d"].map(|cluster| view.wait(&pick(cluster, false)).is_some());
        assert_eq!(waits, [false, false, true]);
    }

    #[test]
    fn a_verdict_from_before_the_cluster_was_told_does_not_count() {
        let releases = releases();
        let health = |since| {
            let report = CopyReport {
                digest: Digest([0; 16]),
                health: Health::Failed,
                since: Some(at(since)),
                message: String::new(),
            };
            let copies = BTreeMap::from([(WorkloadName::of(&releases.key), report)]);
            let facts = ClusterStatus { copies, ..ClusterStatus::default() };
            let facts = Map::from([("a".to_owned(), facts.into())]);
            RolloutView { releases: &releases, facts: &facts }.health("a")
        };
        assert_eq!((health(9), health(10)), (Health::Applying, Health::Failed));
        let nothing = Map::new();
        assert_eq!(RolloutView { releases: &releases, facts: &nothing }.health("b"), Health::Succeeded);
    }
}

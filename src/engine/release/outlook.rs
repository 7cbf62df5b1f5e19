//! A strategy, the clusters and people's orders → the future of a change, in words and with an estimate.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::rollout::{GroupRef, Pace, Rolling, Rollout, Stage, StageTask, Strategy};
use berth_base::model::{Decision, Fleet, Key, Map, Pick, Timestamp};
use berth_base::text::{counted, some_of};

use super::policy::{Closed, Orders};
use super::stages::{ClusterLabels, takes};

/// The future of a change, if all goes well.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Outlook {
    /// The order and the speed, such as `3 clusters at a time`.
    pub pace: String,
    /// The number of steps, each of which waits for the one before.
    pub waves: usize,
    /// The waits that the strategy requires, in total, without the time that members take.
    pub seconds: i64,
    /// The approvals that the change needs.
    pub approvals: usize,
    /// Further effects: pins, order, other workloads.
    pub also: Vec<String>,
    /// The reason why no cluster may get the change now.
    pub held: Option<Closed>,
    /// The stages without any cluster.
    pub empty: Vec<String>,
}

impl Outlook {
    /// Returns the whole outlook in one line.
    pub fn words(&self) -> String {
        let mut text = match &self.held {
            Some(closed) => format!("held: {}; then {}", closed.reason, self.pace),
            None => self.pace.clone(),
        };
        let mut add = |words: String| {
            text.push_str("; ");
            text.push_str(&words);
        };
        match (self.seconds, self.waves) {
            (0, ..=1) => {}
            (0, waves) => add(format!("{waves} steps, each as soon as the one before is healthy")),
            (seconds, _) => add(format!("about {} if all goes well", duration(seconds))),
        }
        if self.approvals > 0 {
            add(format!("waits for {}", counted(self.approvals, "approval")));
        }
        self.also.iter().cloned().for_each(&mut add);
        match self.empty.as_slice() {
            [] => {}
            [one] => add(format!("no cluster is in stage {one}")),
            several => add(format!("no cluster is in the stages {}", several.join(", "))),
        }
        text
    }
}

/// Returns how a change of a workload rolls out from `now` on. `None` for a workload without clusters.
pub fn outlook(
    orders: &Orders<'_>,
    labels: &ClusterLabels<'_>,
    decisions: &Map<Key, Decision>,
    now: Timestamp,
) -> Option<Outlook> {
    let (fleet, key) = (orders.fleet(), orders.workload());
    let decision = decisions.get(key)?;
    let picks: Vec<&Pick> = decision.picked().collect();
    if picks.is_empty() {
        return None;
    }
    let mut outlook = match &*orders.strategy() {
        Strategy::AtOnce => at_once(picks.len()),
        Strategy::Progressive(rollouts) => progressive(fleet, rollouts, decision, decisions),
        Strategy::Rolling(rolling) => by_budget(rolling, picks.len()),
        Strategy::Stages(stages) => by_stage(stages, labels, &picks),
        Strategy::Runs => {
            Outlook { pace: "only by a staged update run".to_owned(), waves: 1, ..Outlook::default() }
        }
    };
    outlook.also.extend(pinned(orders, labels, &picks));
    let names = |keys: BTreeSet<&Key>| some_of(keys.into_iter().filter(|other| *other != key), 3);
    let after = orders.after();
    if !after.is_empty() {
        outlook.also.push(format!("after {} is healthy everywhere", names(after)));
    }
    if let Some(together) = orders.together().filter(|group| group.len() > 1) {
        outlook.also.push(format!("together with {}", names(together)));
    }
    outlook.held = orders.closed(now);
    Some(outlook)
}

fn at_once(clusters: usize) -> Outlook {
    let pace = match clusters {
        1 => "to its one cluster".to_owned(),
        clusters => format!("to all {clusters} clusters at once"),
    };
    Outlook { pace, waves: 1, ..Outlook::default() }
}

/// Describes progressive rollouts. Those of several placements run at the same time, so the longest counts.
fn progressive(
    fleet: &Fleet,
    rollouts: &[Rollout],
    decision: &Decision,
    decisions: &Map<Key, Decision>,
) -> Outlook {
    let one = |rollout: &Rollout| {
        let followed = rollout.placement.as_ref().and_then(|one| fleet.find(one));
        let followed = followed.and_then(|placement| decisions.get(&placement.key)).unwrap_or(decision);
        let picks: Vec<&Pick> = followed.picked().filter(|pick| decision.has(&pick.cluster)).collect();
        let outlook = in_waves(rollout, &picks);
        match &rollout.placement {
            Some(placement) if rollouts.len() > 1 => {
                Outlook { pace: format!("{}: {}", placement.name, outlook.pace), ..outlook }
            }
            _ => outlook,
        }
    };
    let all: Vec<Outlook> = rollouts.iter().map(one).collect();
    Outlook {
        pace: all.iter().map(|one| one.pace.as_str()).collect::<Vec<_>>().join(", "),
        waves: all.iter().map(|one| one.waves).max().unwrap_or(1),
        seconds: all.iter().map(|one| one.seconds).max().unwrap_or(0),
        ..Outlook::default()
    }
}

fn in_waves(rollout: &Rollout, picks: &[&Pick]) -> Outlook {
    if rollout.pace == Pace::Together {
        return Outlook { seconds: rollout.soak_seconds, ..at_once(picks.len()) };
    }
    let groups: BTreeMap<usize, &str> = picks
        .iter()
        .filter_map(|pick| pick.group.as_ref())
        .map(|group| (group.index, &*group.name))
        .collect();
    let is_first = |index: usize, name: &str| {
        rollout.first.iter().any(|wanted| match wanted {
            GroupRef::Name(wanted) => *wanted == name,
            GroupRef::Index(wanted) => *wanted == index,
        })
    };
    let first: Vec<(usize, &str)> = groups
        .iter()
        .map(|(index, name)| (*index, *name))
        .filter(|(index, name)| is_first(*index, name))
        .collect();
    let is_rest = |pick: &&&Pick| {
        pick.group.as_ref().is_none_or(|group| first.iter().all(|(index, _)| *index != group.index))
    };
    let rest = picks.iter().filter(is_rest).count();
    let begins = match first.as_slice() {
        [] => String::new(),
        groups => format!(
            "{} first, then ",
            some_of(groups.iter().map(|(index, name)| group_name(*index, name)), 3)
        ),
    };
    let (pace, waves) = match rollout.pace {
        Pace::ByGroup => {
            let others = groups.len() - first.len();
            (
                format!("group by group ({})", counted(others, "group")),
                others.max(usize::from(rest > 0 && others == 0)),
            )
        }
        _ => {
            // No amount, zero, and more than all of them mean all.
            let most = rollout.at_a_time().map_or(0, |most| most.of(rest));
            let most = if most == 0 || most > rest { rest } else { most };
            (at_a_time(most, rest), rest.div_ceil(most.max(1)))
        }
    };
    let waves = waves + first.len();
    let seconds = i64::try_from(waves).unwrap_or(i64::MAX).saturating_mul(rollout.soak_seconds);
    Outlook { pace: format!("{begins}{pace}"), waves, seconds, ..Outlook::default() }
}

fn group_name(index: usize, name: &str) -> String {
    if name.is_empty() { format!("group {index}") } else { format!("group `{name}`") }
}

fn at_a_time(most: usize, all: usize) -> String {
    if most >= all {
        return if all == 1 { "one cluster".to_owned() } else { format!("{all} clusters at once") };
    }
    format!("{} at a time ({all} in all)", counted(most, "cluster"))
}

fn by_budget(rolling: &Rolling, clusters: usize) -> Outlook {
    let most = rolling.max_unavailable.of(rolling.wanted.unwrap_or(clusters)).clamp(1, clusters.max(1));
    Outlook { pace: at_a_time(most, clusters), waves: clusters.div_ceil(most), ..Outlook::default() }
}

fn by_stage(stages: &[Stage], labels: &ClusterLabels<'_>, picks: &[&Pick]) -> Outlook {
    let mut outlook = Outlook::default();
    let mut words = Vec::new();
    let mut left: BTreeSet<&str> = picks.iter().map(|pick| &*pick.cluster).collect();
    for stage in stages {
        let is_in = |name: &&str| labels.get(name).is_some_and(|labels| takes(stage, labels));
        let clusters: Vec<&str> = left.iter().copied().filter(is_in).collect();
        left.retain(|name| !clusters.contains(name));
        let mut takes = |task: &StageTask| match task {
            StageTask::Approval => outlook.approvals += 1,
            StageTask::Wait(seconds) => outlook.seconds = outlook.seconds.saturating_add(*seconds),
        };
        stage.before.iter().for_each(&mut takes);
        // Nothing follows the last stage, so its tasks delay nothing.
        stage.after.iter().for_each(&mut takes);
        if clusters.is_empty() {
            outlook.empty.push(format!("`{}`", stage.name));
        }
        let at_a_time = stage.at_a_time.at_a_time_of(clusters.len());
        outlook.waves += clusters.len().div_ceil(at_a_time);
        let pace =
            if at_a_time < clusters.len() { format!(", {at_a_time} at a time") } else { String::new() };
        words.push(format!("stage `{}` ({}{pace})", stage.name, counted(clusters.len(), "cluster")));
    }
    outlook.pace = words.join(", then ");
    if !left.is_empty() {
        outlook.also.push(format!("{} in no stage: {}", counted(left.len(), "cluster"), some_of(left, 3)));
    }
    outlook
}

fn pinned(orders: &Orders<'_>, labels: &ClusterLabels<'_>, picks: &[&Pick]) -> Option<String> {
    let is_pinned = |pick: &&&Pick| {
        labels.get(&pick.cluster).is_some_and(|labels| orders.pin(&pick.cluster, labels).is_some())
    };
    let names: Vec<&str> = picks.iter().filter(is_pinned).map(|pick| &*pick.cluster).collect();
    let is = if names.len() == 1 { "is" } else { "are" };
    (!names.is_empty()).then(|| format!("{} {is} pinned", some_of(names, 3)))
}

/// Formats a length of time, rounded: `40 minutes`, `2 hours`.
pub fn duration(seconds: i64) -> String {
    const MINUTE: i64 = 60;
    const HOUR: i64 = 60 * MINUTE;
    const DAY: i64 = 24 * HOUR;
    let (unit, noun) = match seconds {
        ..MINUTE => (1, "second"),
        MINUTE..7_200 => (MINUTE, "minute"),
        7_200..172_800 => (HOUR, "hour"),
        _ => (DAY, "day"),
    };
    let count = usize::try_from((seconds + unit / 2) / unit).unwrap_or(0);
    counted(count, noun)
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_base::model::Group;
    use berth_base::model::rollout::Amount;

    fn picks(groups: &[(&str, Option<(usize, &str)>)]) -> Vec<Pick> {
        let one = |(cluster, group): &(&str, Option<(usize, &str)>)| {
            let group = group.map(|(index, name)| Group { index, name: name.to_owned() });
            Pick::of(*cluster).with(|details| details.group = group)
        };
        groups.iter().map(one).collect()
    }

    fn waves(rollout: &Rollout, picks: &[Pick]) -> String {
        in_waves(rollout, &picks.iter().collect::<Vec<_>>()).words()
    }

    #[test]
    fn waves_have_a_size_and_take_their_time() {
        let eight: Vec<(String, Option<(usize, &str)>)> = (0..8).map(|n| (format!("c{n}"), None)).collect();
        let eight: Vec<(&str, _)> = eight.iter().map(|(name, group)| (&**name, *group)).collect();
        let eight = picks(&eight);
        let pace = |most| Rollout { pace: Pace::ByCluster(most), ..Rollout::TOGETHER };
        let three = pace(Some(Amount::Count(3)));
        assert_eq!(
            waves(&three, &eight),
            "3 clusters at a time (8 in all); 3 steps, each as soon as the one before is healthy"
        );
        let soaking = Rollout { soak_seconds: 800, ..three };
        assert_eq!(
            waves(&soaking, &eight),
            "3 clusters at a time (8 in all); about 40 minutes if all goes well"
        );
        assert_eq!(waves(&pace(Some(Amount::Percent(25))), &eight[..1]), "one cluster");
        assert_eq!(waves(&pace(None), &eight), "8 clusters at once");
        assert_eq!(waves(&Rollout::TOGETHER, &eight), "to all 8 clusters at once");
    }

    #[test]
    fn groups_that_go_first_are_named() {
        let (canary, rest) = (Some((0, "canary")), Some((1, "rest")));
        let picks = picks(&[("a", canary), ("b", rest), ("c", rest)]);
        let first = vec![GroupRef::Name("canary".to_owned())];
        let rollout = Rollout {
            pace: Pace::ByCluster(Some(Amount::Count(1))),
            first,
            soak_seconds: 600,
            ..Rollout::TOGETHER
        };
        assert_eq!(
            waves(&rollout, &picks),
            "group `canary` first, then 1 cluster at a time (2 in all); about 30 minutes if all goes well"
        );
        let by_group = Rollout { pace: Pace::ByGroup, ..rollout };
        assert_eq!(
            waves(&by_group, &picks),
            "group `canary` first, then group by group (1 group); about 20 minutes if all goes well"
        );
    }

    #[test]
    fn stages_name_their_clusters_waits_and_approvals() {
        use berth_base::model::{Cluster, Requirement, Selector};
        let clusters = [("a", "canary"), ("b", "eu"), ("c", "eu"), ("d", "none")].map(|(name, ring)| {
            let labels = [("ring".to_owned(), ring.to_owned())].into();
            (name.to_owned(), Cluster { name: name.into(), labels, ..Cluster::default() }.into())
        });
        let fleet = Fleet { clusters: clusters.into(), ..Fleet::default() };
        let stage = |ring: &str, after: Vec<StageTask>| Stage {
            name: ring.to_owned(),
            selector: Some(Selector {
                requirements: vec![Requirement::Is("ring".to_owned(), ring.to_owned())],
            }),
            sorted_by: None,
            at_a_time: Amount::Count(1),
            before: Vec::new(),
            after,
        };
        let stages =
            [stage("canary", vec![StageTask::Wait(3_600), StageTask::Approval]), stage("eu", Vec::new())];
        let picks = picks(&[("a", None), ("b", None), ("c", None), ("d", None)]);
        assert_eq!(
            by_stage(&stages, &ClusterLabels::of(&fleet, &Map::new()), &picks.iter().collect::<Vec<_>>())
                .words(),
            "stage `canary` (1 cluster), then stage `eu` (2 clusters, 1 at a time); about 60 minutes if all goes well; \
             waits for 1 approval; 1 cluster in no stage: d"
        );
    }

    #[test]
    fn lengths_of_time_are_rough() {
        let all = [0, 59, 60, 90, 2_400, 7_199, 7_200, 86_400, 172_800].map(duration);
        let words = [
            "0 seconds",
            "59 seconds",
            "1 minute",
            "2 minutes",
            "40 minutes",
            "120 minutes",
            "2 hours",
            "24 hours",
            "2 days",
        ];
        assert_eq!(all, words.map(str::to_owned));
    }
}

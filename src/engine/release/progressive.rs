//! Waves of clusters or decision groups, as OCM's rollout strategies have them.
//!
//! The rules are those of OCM's rollout library, with their corner cases:
//! - Clusters are counted by name, and only until the wave is full. A failure behind a full wave does not
//!   count yet.
//! - Groups count the unfinished clusters of all groups.
//! - With mandatory groups, the next wave begins only when no cluster is unfinished. A cluster past its
//!   deadline, in any group, then stops the rollout for good.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::strategies::{Failures, MOST_NAMES, Step, Turn, Version, first_change, group_name, seconds_after};
use berth_base::model::release::Health;
use berth_base::model::rollout::{Amount, GroupRef, Pace, Rollout};
use berth_base::model::{Group, Timestamp};
use berth_base::text::{counted, some_of};

/// The group of clusters whose placement has no groups.
static NO_GROUP: Group = Group { index: 0, name: String::new() };

/// Returns the clusters that may get the release now. `turns` ascend by name; the picked ones are the
/// clusters of one placement.
pub fn step<'a>(rollout: &Rollout, turns: &[Turn<'a>], now: Timestamp) -> Step<'a> {
    let turns: Vec<&Turn<'a>> = turns.iter().filter(|turn| turn.picked).collect();
    let clusters: Vec<Standing<'a>> = turns.iter().map(|turn| Standing::of(turn, rollout, now)).collect();
    let answer = ProgressiveAnswer::of(rollout, &clusters);
    let moments = clusters.iter().filter_map(|one| one.state.until()).filter(|at| *at > now).collect();
    let later = |at| turns.iter().map(|turn| Standing::of(turn, rollout, at)).collect::<Vec<_>>();
    let next = first_change(moments, |at| ProgressiveAnswer::of(rollout, &later(at)).differs_from(&answer));
    let give: BTreeSet<&str> = answer.give.iter().copied().collect();
    let reason: Arc<str> = answer.reason().into();
    let waiting = turns.iter().filter(|turn| turn.wants() && !give.contains(turn.cluster));
    Step {
        waits: waiting.map(|turn| (turn.cluster, reason.clone())).collect(),
        notes: notes(rollout, &clusters, &answer),
        timed_out: answer.late.into_iter().collect(),
        halted: answer.halted,
        give,
        next,
        ..Step::default()
    }
}

/// The progress of one cluster at a moment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClusterProgress {
    /// The cluster lacks the wanted content.
    Missing,
    /// The cluster has the wanted content, without a report on it yet.
    Assignment,
    UnderWay(Option<Timestamp>),
    /// Failed, but may recover until the deadline.
    Failed(Option<Timestamp>),
    /// A success that has not lasted long enough.
    Fresh(Option<Timestamp>),
    Done,
    /// Past the deadline.
    Late,
}

impl ClusterProgress {
    /// Returns the end of this state, if time alone ends it.
    fn until(self) -> Option<Timestamp> {
        match self {
            ClusterProgress::UnderWay(until)
            | ClusterProgress::Failed(until)
            | ClusterProgress::Fresh(until) => until,
            ClusterProgress::Missing
            | ClusterProgress::Assignment
            | ClusterProgress::Done
            | ClusterProgress::Late => None,
        }
    }

    fn is_failure(self) -> bool {
        matches!(self, ClusterProgress::Failed(_) | ClusterProgress::Late)
    }
}

#[derive(Clone, Copy, Debug)]
struct Standing<'a> {
    cluster: &'a str,
    group: &'a Group,
    state: ClusterProgress,
}

impl<'a> Standing<'a> {
    fn of(turn: &Turn<'a>, rollout: &Rollout, now: Timestamp) -> Standing<'a> {
        // The pace `Together` has no soak time.
        let soak = if rollout.pace == Pace::Together { 0 } else { rollout.soak_seconds };
        let end = |seconds: i64| match turn.since {
            Some(since) => seconds_after(since, seconds),
            // Without a report, the state begins at this moment, whenever it is.
            None => (seconds <= 0).then_some(now),
        };
        let deadline = || rollout.deadline_seconds.and_then(end);
        let passed = |until: Option<Timestamp>| until.is_some_and(|until| until <= now);
        let state = match (turn.has, turn.health) {
            (Version::Nothing | Version::Old, _) => ClusterProgress::Missing,
            (Version::New, Health::Applying) => ClusterProgress::Assignment,
            (Version::New, Health::Succeeded) if passed(end(soak)) => ClusterProgress::Done,
            (Version::New, Health::Succeeded) => ClusterProgress::Fresh(end(soak)),
            (Version::New, _) if passed(deadline()) => ClusterProgress::Late,
            (Version::New, Health::Progressing) => ClusterProgress::UnderWay(deadline()),
            (Version::New, Health::Failed) => ClusterProgress::Failed(deadline()),
        };
        Standing { cluster: turn.cluster, group: turn.group.unwrap_or(&NO_GROUP), state }
    }
}

/// Clusters of the same group, and the limit of their failures.
struct GroupOf<'a> {
    group: &'a Group,
    clusters: Vec<Standing<'a>>,
}

/// The cause of a wait.
#[derive(Debug, Default)]
enum Pause<'a> {
    /// The wave holds as many clusters as may be under way.
    Full(usize),
    Group(&'a Group),
    /// Mandatory groups are finished, but clusters outside of them are not.
    #[default]
    Others,
}

#[derive(Debug, Default)]
struct ProgressiveAnswer<'a> {
    give: Vec<&'a str>,
    under_way: Vec<Standing<'a>>,
    late: Vec<&'a str>,
    halted: Option<Failures<'a>>,
    pause: Pause<'a>,
}

impl<'a> ProgressiveAnswer<'a> {
    fn of(rollout: &Rollout, clusters: &[Standing<'a>]) -> ProgressiveAnswer<'a> {
        let all = clusters.len();
        if rollout.pace == Pace::Together {
            return by_cluster(clusters, |_| true, all, all);
        }
        let mut groups: BTreeMap<usize, GroupOf<'a>> = BTreeMap::new();
        for one in clusters {
            let group = groups.entry(one.group.index);
            group.or_insert(GroupOf { group: one.group, clusters: Vec::new() }).clusters.push(*one);
        }
        let is_first = |group: &Group| rollout.first.iter().any(|wanted| means(wanted, group));
        let (first, rest): (Vec<_>, Vec<_>) = groups.into_values().partition(|group| is_first(group.group));
        if !first.is_empty() {
            let answer = by_group(clusters, &first, None);
            if !(answer.give.is_empty() && answer.under_way.is_empty() && answer.late.is_empty()) {
                return answer;
            }
        }
        match rollout.pace {
            Pace::ByGroup => by_group(clusters, &rest, rollout.max_failures),
            pace => {
                let others = rest.iter().map(|group| group.clusters.len()).sum();
                let most = if let Pace::ByCluster(most) = pace { most } else { None };
                let allowed = usable(rollout.max_failures, all, 0);
                by_cluster(clusters, |one| !is_first(one.group), usable(most, others, others), allowed)
            }
        }
    }

    /// Adds a cluster that has the wanted content.
    fn count(&mut self, one: &Standing<'a>) {
        match one.state {
            ClusterProgress::Late => self.late.push(one.cluster),
            ClusterProgress::Missing | ClusterProgress::Done => {}
            _ => self.under_way.push(*one),
        }
    }

    fn differs_from(&self, other: &ProgressiveAnswer<'_>) -> bool {
        self.give != other.give || self.late != other.late || self.halted.is_some() != other.halted.is_some()
    }

    /// Returns the reason for all clusters that wait.
    fn reason(&self) -> String {
        if let Some(failures) = &self.halted {
            return format!("the rollout is halted: {}", failures.words());
        }
        match &self.pause {
            Pause::Full(size) => {
                let taken = self.under_way.len() + self.give.len();
                let are = if taken == 1 { "is" } else { "are" };
                let size = counted(*size, "cluster");
                format!("{taken} of {size} {are} under way: {}", self.unfinished(|_| true))
            }
            Pause::Group(group) if self.is_unfinished(group) => {
                let names = self.unfinished(|one| one.index == group.index);
                format!("{} is not finished: {names}", group_name(group))
            }
            _ if self.under_way.is_empty() && self.give.is_empty() => format!(
                "after mandatory groups, no wave begins while a cluster is past its deadline: {}",
                some_of(&self.late, MOST_NAMES)
            ),
            _ => format!("the next wave begins when these are finished: {}", self.unfinished(|_| true)),
        }
    }

    fn is_unfinished(&self, group: &Group) -> bool {
        // Only clusters of the unfinished group get the content.
        !self.give.is_empty() || self.under_way.iter().any(|one| one.group.index == group.index)
    }

    /// Lists the unfinished clusters of some groups, with their states where these need a word.
    fn unfinished(&self, is_meant: impl Fn(&Group) -> bool) -> String {
        let under_way = self.under_way.iter().filter(|one| is_meant(one.group));
        let mut names: Vec<(&str, String)> = under_way.map(|one| (one.cluster, words(one))).collect();
        names.extend(self.give.iter().map(|cluster| (*cluster, (*cluster).to_owned())));
        names.sort_unstable();
        some_of(names.into_iter().map(|(_, words)| words), MOST_NAMES)
    }
}

fn words(one: &Standing<'_>) -> String {
    let cluster = one.cluster;
    match one.state {
        ClusterProgress::Failed(Some(until)) => {
            format!("{cluster} (failed; counts as timed out from {until})")
        }
        ClusterProgress::Failed(None) => format!("{cluster} (failed)"),
        ClusterProgress::Fresh(Some(until)) => format!("{cluster} (must stay healthy until {until})"),
        _ => cluster.to_owned(),
    }
}

/// Fills one wave in the order of names.
fn by_cluster<'a>(
    clusters: &[Standing<'a>],
    may_join: impl Fn(&Standing<'a>) -> bool,
    size: usize,
    allowed: usize,
) -> ProgressiveAnswer<'a> {
    let mut answer = ProgressiveAnswer { pause: Pause::Full(size), ..ProgressiveAnswer::default() };
    let mut failures = Failures { allowed, ..Failures::default() };
    for one in clusters.iter().filter(|one| one.state != ClusterProgress::Missing) {
        if one.state != ClusterProgress::Assignment || !failures.are_too_many() {
            answer.count(one);
        }
        failures.count(one);
        if answer.under_way.len() >= size {
            answer.halted = failures.are_too_many().then_some(failures);
            return answer;
        }
    }
    if failures.are_too_many() {
        answer.halted = Some(failures);
        return answer;
    }
    let room = size.saturating_sub(answer.under_way.len());
    let missing = clusters.iter().filter(|one| one.state == ClusterProgress::Missing && may_join(one));
    answer.give = missing.take(room).map(|one| one.cluster).collect();
    answer
}

/// Goes through groups up to the first that is not finished.
fn by_group<'a>(
    clusters: &[Standing<'a>],
    groups: &[GroupOf<'a>],
    allowed: Option<Amount>,
) -> ProgressiveAnswer<'a> {
    let mut answer = ProgressiveAnswer::default();
    // Clusters that were only assigned count with their group.
    clusters.iter().filter(|one| one.state != ClusterProgress::Assignment).for_each(|one| answer.count(one));
    let mut failed = 0;
    for group in groups {
        let allowed = usable(allowed, group.clusters.len(), 0);
        let mut failures = Failures { allowed, group: Some(group.group), ..Failures::default() };
        for one in &group.clusters {
            failures.count(one);
            match one.state {
                ClusterProgress::Missing => answer.give.push(one.cluster),
                ClusterProgress::Assignment => answer.under_way.push(*one),
                _ => {}
            }
        }
        failed += failures.len();
        if failures.are_too_many() || answer.under_way.len() + answer.give.len() > failed {
            answer.pause = Pause::Group(group.group);
            answer.halted = failures.are_too_many().then_some(failures);
            return answer;
        }
    }
    answer
}

impl<'a> Failures<'a> {
    fn count(&mut self, one: &Standing<'a>) {
        match one.state {
            ClusterProgress::Failed(_) => self.failed.push(one.cluster),
            ClusterProgress::Late => self.timed_out.push(one.cluster),
            _ => {}
        }
    }

    fn len(&self) -> usize {
        self.failed.len() + self.timed_out.len()
    }

    fn are_too_many(&self) -> bool {
        self.len() > self.allowed
    }
}

fn means(wanted: &GroupRef, group: &Group) -> bool {
    match wanted {
        GroupRef::Name(name) => group.name == *name,
        GroupRef::Index(index) => group.index == *index,
    }
}

/// Returns an amount of clusters. No amount, zero, and more than `total` mean the default.
fn usable(amount: Option<Amount>, total: usize, default: usize) -> usize {
    amount.map(|amount| amount.of(total)).filter(|count| (1..=total).contains(count)).unwrap_or(default)
}

/// Returns notes on settings and reports that have no effect, against what their author may expect.
fn notes(rollout: &Rollout, clusters: &[Standing<'_>], answer: &ProgressiveAnswer<'_>) -> BTreeSet<String> {
    let mut notes = BTreeSet::new();
    if rollout.pace == Pace::Together {
        return notes;
    }
    if let Some(Amount::Count(most)) = rollout.max_failures.filter(|most| most.of(0) > clusters.len()) {
        let all = clusters.len();
        notes.insert(format!(
            "the limit of {most} failures exceeds the number of clusters, {all}, and counts as 0"
        ));
    }
    if matches!(answer.pause, Pause::Full(_)) && answer.halted.is_none() {
        let is_hidden = |one: &&Standing<'_>| one.state.is_failure() && !answer.names(one.cluster);
        let hidden: Vec<&str> = clusters.iter().filter(is_hidden).map(|one| one.cluster).collect();
        if !hidden.is_empty() {
            let names = some_of(hidden, MOST_NAMES);
            notes.insert(format!("failures behind a full wave do not count yet: {names}"));
        }
    }
    notes
}

impl ProgressiveAnswer<'_> {
    fn names(&self, cluster: &str) -> bool {
        self.late.contains(&cluster) || self.under_way.iter().any(|one| one.cluster == cluster)
    }
}

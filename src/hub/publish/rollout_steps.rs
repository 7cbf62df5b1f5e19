//! Lines for the commit message about rollouts: which clusters were assigned which release, what is proven, and what
//! halted or continues.

use std::collections::BTreeMap;
use std::fmt;

use berth_base::model::release::Releases;
use berth_base::model::{Key, Map, Shared};
use berth_base::text::some_of;

/// The number of clusters that a line names.
const SHOWN: usize = 5;

/// One step of a workload's rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RolloutStep {
    pub key: Key,
    /// `None` if the step has no line in the message.
    pub line: Option<String>,
    pub halt: Option<HaltChange>,
}

/// A rollout that halts or continues.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HaltChange {
    pub release: u64,
    pub turn: Turn,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Turn {
    /// The reason quotes the member.
    Halted {
        reason: String,
    },
    /// Ordered by a person, or because the release failed.
    TakenBack {
        to: u64,
        reason: String,
    },
    Continues,
    /// Another release continues in place of the halted one.
    Replaces(u64),
}

impl HaltChange {
    fn between(before: Option<&Releases>, after: &Releases) -> Option<HaltChange> {
        let halted = before.filter(|before| before.halted.is_some()).map(|before| before.current.number);
        let release = after.current.number;
        let was_back = before.is_some_and(|before| before.taken_back && before.current.number == release);
        let back_to = after.good.filter(|_| after.taken_back && !was_back);
        let reason = after.halted.as_ref().map(|halt| halt.reason.clone()).unwrap_or_default();
        let turn = match (back_to, halted, &after.halted) {
            (Some(to), ..) => Turn::TakenBack { to, reason },
            (None, _, Some(_)) if is_new_halt(before, after) => Turn::Halted { reason },
            (None, Some(number), None) if number != release => Turn::Replaces(number),
            (None, Some(_), None) => Turn::Continues,
            (None, ..) => return None,
        };
        Some(HaltChange { release, turn })
    }

    /// Reports whether the step may need attention.
    pub fn is_warning(&self) -> bool {
        matches!(self.turn, Turn::Halted { .. } | Turn::TakenBack { .. })
    }
}

/// Reports whether a rollout halts that was not halted before, or halts for another reason.
fn is_new_halt(before: Option<&Releases>, after: &Releases) -> bool {
    let since = |releases: &Releases| releases.halted.as_ref().map(|halt| halt.since);
    since(after).is_some() && since(after) != before.and_then(since)
}

impl fmt::Display for HaltChange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let release = self.release;
        match &self.turn {
            Turn::Halted { reason } => write!(f, "release {release} is halted: {reason}"),
            Turn::TakenBack { to, reason } => {
                write!(f, "release {release} is taken back to release {to}: {reason}")
            }
            Turn::Continues => write!(f, "release {release} continues"),
            Turn::Replaces(halted) => {
                write!(f, "release {release} takes the place of release {halted}, which was halted")
            }
        }
    }
}

/// Returns the step of each workload whose releases changed.
pub(crate) fn steps(
    before: &Map<Key, Shared<Releases>>,
    after: &Map<Key, Shared<Releases>>,
) -> Vec<RolloutStep> {
    let changed = before.changes(after);
    changed.filter_map(|one| Some(step(one.key, one.before.map(|before| &**before), one.after?))).collect()
}

fn step(key: &Key, before: Option<&Releases>, after: &Releases) -> RolloutStep {
    let number = after.current.number;
    let halt = HaltChange::between(before, after);
    let (mut parts, mut others) = (Vec::new(), Vec::new());
    if before.is_some_and(|before| before.current.number != number) {
        parts.push("begins".to_owned());
    }
    let was_assigned = |cluster: &String| before.and_then(|before| before.assigned.get(cluster));
    let mut assigned: BTreeMap<u64, Vec<&str>> = BTreeMap::new();
    for (cluster, one) in after.assigned.iter().filter(|(cluster, one)| was_assigned(cluster) != Some(*one)) {
        assigned.entry(one.release).or_default().push(cluster);
    }
    for (release, clusters) in assigned {
        let words = format!("assigned to {}", some_of(clusters, SHOWN));
        if release == number { parts.push(words) } else { others.push(format!("release {release} {words}")) }
    }
    if after.taken_back && before.is_none_or(|before| !before.taken_back) {
        parts.push(format!("taken back to release {}", after.good.unwrap_or_default()));
    }
    if let Some(halted) = after.halted.as_ref().filter(|_| is_new_halt(before, after)) {
        parts.push(format!("halted: {}", halted.reason));
    }
    if halt.as_ref().is_some_and(|halt| halt.turn == Turn::Continues) {
        parts.push("continues".to_owned());
    }
    if after.is_proven() && before.is_some_and(|before| before.good != after.good) {
        parts.push("proven".to_owned());
    }
    let gone = before.into_iter().flat_map(|before| before.removing.keys());
    let gone: Vec<&String> = gone.filter(|cluster| !after.removing.contains_key(*cluster)).collect();
    if !gone.is_empty() {
        others.push(format!("removals finished or no longer awaited: {}", some_of(gone, SHOWN)));
    }
    let own = (!parts.is_empty()).then(|| format!("release {number} {}", parts.join("; ")));
    let words: Vec<String> = own.into_iter().chain(others).collect();
    let line = (!words.is_empty()).then(|| format!("{key}: {}", words.join("; ")));
    RolloutStep { key: key.clone(), line, halt }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_base::model::release::{Halt, Release};
    use berth_base::model::{ContentId, Timestamp};

    fn releases(number: u64, halted: Option<i64>) -> Releases {
        let since = |seconds| Timestamp::from_second(seconds).expect("a moment");
        let current = Release { number, begun: Timestamp::UNIX_EPOCH, inputs: ContentId([0; 20]) };
        Releases {
            good: Some(1),
            halted: halted.map(|at| Halt { since: since(at), reason: format!("a failed at {at}") }),
            ..Releases::of(Key::new("", "Workload", "shop", "web"), current)
        }
    }

    #[track_caller]
    fn check(before: Option<&Releases>, after: Releases, words: Option<&str>, line: Option<&str>) {
        let step = step(&after.key, before, &after);
        assert_eq!(step.halt.map(|halt| halt.to_string()).as_deref(), words);
        assert_eq!(step.line.as_deref().and_then(|line| line.strip_prefix("Workload shop/web: ")), line);
    }

    #[test]
    fn each_halt_and_each_end_of_one_is_one_turn() {
        let (rolling, halted) = (releases(2, None), releases(2, Some(10)));
        let line = Some("release 2 halted: a failed at 10");
        check(Some(&rolling), halted.clone(), Some("release 2 is halted: a failed at 10"), line);
        check(None, halted.clone(), Some("release 2 is halted: a failed at 10"), line);
        check(Some(&halted), rolling.clone(), Some("release 2 continues"), Some("release 2 continues"));
        let back = Releases { taken_back: true, ..halted.clone() };
        let words = "release 2 is taken back to release 1: a failed at 10";
        let line = "release 2 taken back to release 1; halted: a failed at 10";
        check(Some(&rolling), back.clone(), Some(words), Some(line));
        // A halted release is taken back.
        let words = "release 2 is taken back to release 1: a failed at 10";
        check(Some(&halted), back.clone(), Some(words), Some("release 2 taken back to release 1"));
        check(Some(&back), back.clone(), None, None);
        let words = "release 3 takes the place of release 2, which was halted";
        for halted in [&halted, &back] {
            check(Some(halted), releases(3, None), Some(words), Some("release 3 begins"));
        }
        let words = "release 3 is halted: a failed at 20";
        let line = "release 3 begins; halted: a failed at 20";
        check(Some(&halted), releases(3, Some(20)), Some(words), Some(line));
    }

    #[test]
    fn what_stays_halted_or_never_was_is_no_turn() {
        let halted = releases(2, Some(10));
        let reason = Halt { reason: "b failed as well".to_owned(), ..halted.halted.clone().expect("a halt") };
        check(Some(&halted), Releases { halted: Some(reason), ..halted.clone() }, None, None);
        // A person replaces the release by a new one.
        check(Some(&releases(2, None)), releases(3, None), None, Some("release 3 begins"));
    }
}

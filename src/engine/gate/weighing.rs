//! The removals of each workload, weighed for the verdict: now and by deadlines, with their causes and digests.

use std::collections::{BTreeMap, BTreeSet};

use super::causes::{Caused, Causes};
use super::deadlines::{self, Due};
use super::question::Question;
use super::removal::{self, Cause, Pairs};
use berth_base::model::{Digest, Key, Timestamp};

/// The removals of one workload, before the verdict.
#[derive(Debug)]
pub(super) struct Removal {
    /// The removals to judge: immediate ones that were not foreseen, and those that the change's deadlines
    /// bring later.
    pub(super) pairs: Pairs,
    /// The removals that an approval names: the same, with all their deadlines.
    pub(super) named: Pairs,
    pub(super) due: Due,
    pub(super) until: Option<Timestamp>,
    /// The removals of now at a deadline that was judged before, by whether it was approved.
    pub(super) foreseen: [Pairs; 2],
    pub(super) digest: Digest,
    pub(super) cause: Cause,
    /// The removals that statuses or time contribute to.
    pub(super) by_itself: Pairs,
    pub(super) spent: Vec<Digest>,
    /// The new placement makes policy tests fail.
    pub(super) fails: bool,
}

impl Removal {
    /// Reports whether there are immediate removals.
    pub(super) fn goes_now(&self) -> bool {
        self.pairs.len() > self.due.len() || self.foreseen.iter().any(|pairs| !pairs.is_empty())
    }

    /// Reports whether the immediate removals count against later ones.
    pub(super) fn counts(&self) -> bool {
        self.pairs.len() > self.due.len() || !self.foreseen[1].is_empty()
    }
}

/// The losses of each workload, now and by the change's deadlines.
pub(super) fn weigh_all<'a>(
    question: &Question<'a>,
    mut now: BTreeMap<&'a Key, Pairs>,
    due: &'a BTreeMap<Key, Due>,
) -> BTreeMap<&'a Key, Removal> {
    let causes = Causes::of(question);
    let without = deadlines::due(question.states, &question.outlook.without_change);
    let mut all = BTreeMap::new();
    let keys: BTreeSet<&Key> = now.keys().copied().chain(due.keys()).chain(question.failing.keys()).collect();
    for key in keys {
        let mut gone = now.remove(key).unwrap_or_default();
        let foreseen = deadlines::foreseen(question.foreseen, key, &gone);
        gone.retain(|pair| !foreseen.iter().any(|pairs| pairs.contains(pair)));
        let nothing = Due::new();
        let due = due.get(key).unwrap_or(&nothing);
        let retried = question.retried.iter().find(|held| held.key == *key).and_then(|held| held.until);
        let (counted, until) = match retried {
            Some(until) => (deadlines::until(due, until), Some(until)),
            None if question.source_changed => {
                (deadlines::brought(due, without.get(key)), question.outlook.until)
            }
            // Deadlines of a source that was processed before have been judged with it.
            None => (Due::new(), None),
        };
        let failed = question.failing.get(key);
        let removes_nothing = gone.is_empty() && counted.is_empty() && foreseen.iter().all(Pairs::is_empty);
        if removes_nothing && failed.is_none() {
            continue;
        }
        let mut named = gone.clone();
        if !counted.is_empty() {
            // All of them, so that it is the same approval when the change is no longer new.
            named.extend(deadlines::until(due, until.unwrap_or(Timestamp::MAX)).into_keys());
        }
        let placement = failed.map(|failed| removal::placement(key, failed, question.states.next));
        let (digest, earlier) = removal::unused_digest(&named, placement.as_ref(), question.used);
        let Caused { cause, by_itself } = causes.of_workload(key, &gone, digest);
        let cause = if gone.is_empty() && failed.is_none() { Cause::Source } else { cause };
        all.insert(
            key,
            Removal {
                pairs: gone.into_iter().chain(counted.keys().cloned()).collect(),
                named,
                until: until.filter(|_| !counted.is_empty()),
                due: counted,
                foreseen,
                digest,
                cause,
                by_itself,
                fails: failed.is_some(),
                spent: earlier.into_iter().filter(|digest| question.approvals.contains(digest)).collect(),
            },
        );
    }
    all
}

//! The gate: holds back the removals of workloads that exceed the limits, and gives the state to publish.
//!
//! Pure. A held workload keeps its last good form, decision and objects in every cluster; everything else is
//! the next state's. A removal beyond a limit needs the digest of exactly its objects as an approval, which
//! counts once.
//!
//! - [`limits`]: the settings. [`removal`]: removals by workload, and their digests. [`limit_checks`]: the
//!   checks.
//! - [`window`]: recent removals, which count too. [`deadlines`]: later removals. [`causes`]: edits,
//!   statuses and time told apart.
//! - [`published_state`]: the next state with held workloads put back. [`held_record`]: lines for trailers.
//!   [`messages`]: the text for people.

mod causes;
pub mod deadlines;
pub mod held_record;
mod limit_checks;
pub mod limits;
pub mod messages;
mod published_state;
pub mod removal;
#[cfg(test)]
mod tests;
pub mod window;

use std::collections::{BTreeMap, BTreeSet};

use crate::state::State;
use berth_base::model::{Decision, Digest, Key, ObjectId, Timestamp, path};

pub use causes::EditAlone;
pub use deadlines::{Deadline, Due, Outlook};
pub use held_record::HeldRecord;
pub use limits::{Limits, Percent, Span};
pub use removal::{Pairs, digest, digest_of_all};
pub use window::{PastPublication, Removed};

use causes::{Caused, Causes};
use removal::PlaceOwners;

/// The inputs of a verdict.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub previous: &'a State,
    pub next: &'a State,
    pub limits: &'a Limits,
    /// The source differs from the one that was processed last.
    pub source_changed: bool,
    /// Tells edits from statuses and time; empty where only one of them has changed.
    pub edit_alone: &'a [BTreeMap<Key, Decision>],
    /// The deadlines to come; without any moment where the change cannot bring one.
    pub outlook: &'a Outlook,
    /// Deadlines of earlier changes that the gate let pass, and that have passed by now.
    pub foreseen: &'a [Deadline],
    /// Publications of the window that removed something, newest first.
    pub pasts: &'a [PastPublication],
    /// The workloads that were held before.
    pub retried: &'a [HeldRecord],
    /// The approvals that count now, used or not.
    pub approvals: &'a BTreeSet<Digest>,
    /// The approvals that earlier rendered commits used.
    pub used: &'a BTreeSet<Digest>,
}

/// The cause of a removal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Somebody edited the fleet repository.
    Source,
    /// A status, or time.
    Itself,
    /// An edit together with a status or time.
    Both,
}

impl Cause {
    /// The cause of two removals taken together.
    fn and(self, other: Cause) -> Cause {
        if self == other { self } else { Cause::Both }
    }
}

/// The verdict of the gate.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    pub held: Vec<Held>,
    pub approved: Vec<Approved>,
    /// The workloads that lose a copy in this publication.
    pub removed: Vec<Removed>,
    /// The deadlines that the published change brings.
    pub deadlines: Vec<Deadline>,
    /// The state to publish; `None` for the next state unchanged.
    pub state: Option<State>,
}

/// A workload that keeps its last good form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub key: Key,
    /// The source file it is, or was, described in.
    pub source: String,
    pub cause: Cause,
    /// The objects it would lose.
    pub pairs: Pairs,
    /// The losses that come later, at a deadline.
    pub due: Due,
    /// The end of the time searched for deadlines, where the workload is held for some.
    pub until: Option<Timestamp>,
    /// The digest that an approval of this removal alone must name.
    pub digest: Digest,
    /// The digest that one approval of everything held must name.
    pub all: Digest,
    pub why: Vec<Why>,
    /// The source no longer describes the workload.
    pub is_gone: bool,
    /// Approvals that were offered for it and had been used before.
    pub spent: Vec<Digest>,
    /// The moment at which an approval for this removal expired.
    pub expired: Option<Timestamp>,
}

/// An approved removal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approved {
    pub key: Key,
    /// The approvals that count no more.
    pub digests: BTreeSet<Digest>,
    pub pairs: Pairs,
}

/// The reason for holding a workload.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// The workload would lose too many of its clusters, counting those lost within the window.
    Clusters { lost: usize, of: usize, lately: usize },
    /// The workload is among those that would remove too many objects from this cluster, counting those
    /// removed within the window.
    Objects { cluster: String, lost: usize, of: usize, lately: usize },
    /// The change would remove a namespace, a CRD or a volume claim.
    Risky { object: ObjectId },
    /// The same removal was held before, for taking too much together with others.
    Still,
    /// Too many clusters would lose something at once without an edit.
    Evictions { clusters: usize, of: usize },
    /// The same in the words of the first version of the gate, which stand in commits.
    Unedited { clusters: usize, of: usize },
    /// The workload hands an object over to a held workload.
    HandsOver { to: Key },
}

impl Held {
    /// Reports whether an approval would let the removal pass; otherwise it waits for another workload.
    pub fn is_approvable(&self) -> bool {
        self.why.iter().any(|why| !matches!(why, Why::HandsOver { .. }))
    }

    fn record(&self) -> HeldRecord {
        let together = self.why.iter().any(|why| matches!(why, Why::Objects { .. } | Why::Still));
        let (key, digest, cause, until) = (self.key.clone(), self.digest, self.cause, self.until);
        HeldRecord { key, digest, cause, together, until }
    }
}

impl Verdict {
    /// Returns the records that the next verdict needs. A workload that only waits for another needs none.
    pub fn records(&self) -> Vec<HeldRecord> {
        self.held.iter().filter(|held| held.is_approvable()).map(Held::record).collect()
    }

    /// Returns the approved removals of kinds that a member prunes only with an approval: paths in the
    /// folder, and the clusters concerned.
    pub fn prunable(&self) -> BTreeMap<String, BTreeSet<&str>> {
        let mut found: BTreeMap<String, BTreeSet<&str>> = BTreeMap::new();
        for (cluster, object) in self.approved.iter().flat_map(|approved| &approved.pairs) {
            if object.takes_more_along() {
                found.entry(path::of_object(object)).or_default().insert(cluster);
            }
        }
        found
    }
}

/// The removals of one workload, before the verdict.
#[derive(Debug)]
struct Removal {
    /// The removals to judge: immediate ones that were not foreseen, and those that the change's deadlines
    /// bring later.
    pairs: Pairs,
    /// The removals that an approval names: the same, with all their deadlines.
    named: Pairs,
    due: Due,
    until: Option<Timestamp>,
    /// The removals of now at a deadline that was judged before, by whether it was approved.
    foreseen: [Pairs; 2],
    digest: Digest,
    cause: Cause,
    /// The removals that statuses or time contribute to.
    by_itself: Pairs,
    spent: Vec<Digest>,
}

/// Returns the workloads that lose copies in the next state. Cheap where none do.
pub fn losing(previous: &State, next: &State) -> BTreeMap<Key, Pairs> {
    let gone = removal::gone(previous, next);
    if gone.is_empty() {
        return BTreeMap::new();
    }
    let by_workload = removal::by_workload(&PlaceOwners::of(previous), &gone);
    by_workload.into_iter().map(|(key, pairs)| (key.clone(), pairs)).collect()
}

/// Judges the step from the current state to the next.
pub fn judge(question: &Question<'_>) -> Verdict {
    let gone = removal::gone(question.previous, question.next);
    let due = deadlines::due(question, &question.outlook.with_change);
    if gone.is_empty() && due.is_empty() {
        return Verdict::default();
    }
    let before = PlaceOwners::of(question.previous);
    let all = weigh_all(question, removal::by_workload(&before, &gone), &due);
    let (removals, quiet): (BTreeMap<&Key, Removal>, BTreeMap<&Key, Removal>) =
        all.into_iter().partition(|(_, removal)| !removal.pairs.is_empty());
    let reasons = limit_checks::reasons(question, &before, &removals);
    let approved = approved(question, &removals, &reasons);
    let waits = |key: &&Key| !approved.contains_key(*key);
    let mut held: BTreeMap<Key, Vec<Why>> = reasons
        .iter()
        .filter(|(key, _)| waits(key))
        .map(|(key, why)| ((*key).clone(), why.clone()))
        .collect();
    let mut verdict = Verdict::default();
    if !held.is_empty() {
        let digests = held.keys().map(|key| removals[key].digest).collect();
        let all = digest_of_all(&digests).expect("something is held");
        verdict.state = Some(published_state::merge(question, &before, &mut held));
        verdict.held =
            held.into_iter().map(|(key, why)| held_one(question, &removals, key, why, all)).collect();
    }
    // A held workload keeps everything, so its approvals were not used.
    let kept: BTreeSet<&Key> = verdict.held.iter().map(|held| &held.key).collect();
    for (key, removal) in removals.iter().chain(&quiet).filter(|(key, _)| !kept.contains(**key)) {
        let digests = approved.get(*key);
        let [agreed, _] = &removal.foreseen;
        if digests.is_some() || !agreed.is_empty() {
            let pairs = if digests.is_some() { &removal.named | agreed } else { agreed.clone() };
            let digests = digests.cloned().unwrap_or_default();
            verdict.approved.push(Approved { key: (*key).clone(), digests, pairs });
        }
        let counts = Some(removal.cause).filter(|_| digests.is_none() && removal.counts());
        verdict.removed.extend(removal.goes_now().then(|| Removed { key: (*key).clone(), counts }));
        verdict.deadlines.extend(Deadline::of(key, &removal.due, digests.is_some()));
    }
    verdict
}

impl Removal {
    /// Reports whether there are immediate removals.
    fn goes_now(&self) -> bool {
        self.pairs.len() > self.due.len() || self.foreseen.iter().any(|pairs| !pairs.is_empty())
    }

    /// Reports whether the immediate removals count against later ones.
    fn counts(&self) -> bool {
        self.pairs.len() > self.due.len() || !self.foreseen[1].is_empty()
    }
}

/// The losses of each workload, now and by the change's deadlines.
fn weigh_all<'a>(
    question: &Question<'_>,
    mut now: BTreeMap<&'a Key, Pairs>,
    due: &'a BTreeMap<Key, Due>,
) -> BTreeMap<&'a Key, Removal> {
    let causes = Causes::of(question);
    let without = deadlines::due(question, &question.outlook.without_change);
    let mut all = BTreeMap::new();
    let keys: BTreeSet<&Key> = now.keys().copied().chain(due.keys()).collect();
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
        if gone.is_empty() && counted.is_empty() && foreseen.iter().all(Pairs::is_empty) {
            continue;
        }
        let mut named = gone.clone();
        if !counted.is_empty() {
            // All of them, so that it is the same approval when the change is no longer new.
            named.extend(deadlines::until(due, until.unwrap_or(Timestamp::MAX)).into_keys());
        }
        let (digest, earlier) = removal::unused_digest(&named, question.used);
        let Caused { cause, by_itself } = causes.of_workload(key, &gone, digest);
        let cause = if gone.is_empty() { Cause::Source } else { cause };
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
                spent: earlier.into_iter().filter(|digest| question.approvals.contains(digest)).collect(),
            },
        );
    }
    all
}

/// The approved removals, each with the approvals that are used up by it.
fn approved<'a>(
    question: &Question<'_>,
    removals: &BTreeMap<&'a Key, Removal>,
    reasons: &BTreeMap<&'a Key, Vec<Why>>,
) -> BTreeMap<&'a Key, BTreeSet<Digest>> {
    let mut approved: BTreeMap<&Key, BTreeSet<Digest>> = BTreeMap::new();
    for (key, removal) in removals.iter().filter(|(_, one)| question.approvals.contains(&one.digest)) {
        approved.insert(*key, BTreeSet::from([removal.digest]));
    }
    if question.limits.recall.is_none() {
        return approved;
    }
    // One approval covers all held workloads, or all without an approval of their own.
    let everything: Vec<&Key> = reasons.keys().copied().collect();
    let rest: Vec<&Key> = everything.iter().copied().filter(|key| !approved.contains_key(key)).collect();
    for keys in [everything, rest] {
        let digests = keys.iter().map(|key| removals[key].digest).collect();
        if let Some(all) = digest_of_all(&digests).filter(|all| question.approvals.contains(all))
            && !question.used.contains(&all)
        {
            for key in keys {
                approved.entry(key).or_default().extend([all, removals[key].digest]);
            }
        }
    }
    approved
}

fn held_one(
    question: &Question<'_>,
    removals: &BTreeMap<&Key, Removal>,
    key: Key,
    why: Vec<Why>,
    all: Digest,
) -> Held {
    let decision = question.previous.decisions.get(&key);
    let source = decision.map(|decision| decision.source.clone()).unwrap_or_default();
    let cause = if question.source_changed { Cause::Source } else { Cause::Itself };
    let pairs = Pairs::new();
    let held = Held {
        source,
        cause,
        digest: digest(&pairs),
        all,
        pairs,
        due: Due::new(),
        until: None,
        why,
        is_gone: !question.next.decisions.contains_key(&key),
        spent: Vec::new(),
        expired: None,
        key,
    };
    match removals.get(&held.key) {
        Some(removal) => Held {
            cause: removal.cause,
            pairs: removal.named.clone(),
            due: removal.due.clone(),
            until: removal.until,
            digest: removal.digest,
            spent: removal.spent.clone(),
            ..held
        },
        None => held,
    }
}

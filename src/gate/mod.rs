//! Nobody deletes by accident: which workloads' removals are held back, and the state that is published.
//!
//! Pure. A held workload keeps its last good form, decision and objects in every cluster; everything
//! else is the next state's. What is given up for good (a limit passed) needs the digest of exactly
//! its removals as an approval, which counts once.
//!
//! - [`limits`]: how much may go. [`removal`]: what goes, by workload, and its digest. [`rails`]: what is too much.
//! - [`merge`]: held workloads put back. [`record`]: one line each for trailers. [`words`]: what people read.

pub mod limits;
mod merge;
mod rails;
pub mod record;
pub mod removal;
#[cfg(test)]
mod tests;
pub mod words;

use std::collections::{BTreeMap, BTreeSet};

use crate::model::{Digest, Key, ObjectId, Timestamp, path};
use crate::state::State;

pub use limits::{Limits, Percent};
pub use record::HeldRecord;
pub use removal::{Pairs, digest};

use removal::Claims;

/// All that a verdict is a function of.
#[derive(Clone, Copy, Debug)]
pub struct Question<'a> {
    pub previous: &'a State,
    pub next: &'a State,
    pub limits: &'a Limits,
    /// Whether the source differs from the one that was processed last.
    pub source_changed: bool,
    /// What was held then.
    pub retried: &'a [HeldRecord],
    /// The approvals that count now, used or not.
    pub approvals: &'a BTreeSet<Digest>,
    /// The approvals that earlier rendered commits used.
    pub used: &'a BTreeSet<Digest>,
}

/// Where a removal comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Cause {
    /// Somebody edited the fleet repository.
    Source,
    /// A status, or time.
    Itself,
}

/// What the gate says.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Verdict {
    pub held: Vec<Held>,
    pub approved: Vec<Approved>,
    /// What to publish; `None` where that is the next state as it is.
    pub state: Option<State>,
}

/// A workload that keeps its last good form.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Held {
    pub key: Key,
    /// The source file it is, or was, described in.
    pub source: String,
    pub cause: Cause,
    /// What it would lose.
    pub pairs: Pairs,
    /// What an approval must name.
    pub digest: Digest,
    pub why: Vec<Why>,
    /// Whether the source describes it no more.
    pub is_gone: bool,
    /// Approvals that were offered for it and had been used before.
    pub spent: Vec<Digest>,
    /// When an approval that was offered for it ceased to count.
    pub expired: Option<Timestamp>,
}

/// A removal that somebody approved.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Approved {
    pub key: Key,
    pub digest: Digest,
    pub pairs: Pairs,
}

/// Why a workload is held.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It would leave too many of its clusters.
    Clusters { lost: usize, of: usize },
    /// It is among those that would take too many objects from this cluster.
    Objects { cluster: String, lost: usize, of: usize },
    /// It would remove a namespace, a CRD or a volume claim.
    Risky { object: ObjectId },
    /// It was held before, for taking too much together with others.
    Still,
    /// Too many clusters would lose something at once, though nobody edited anything.
    Evictions { clusters: usize, of: usize },
    /// It hands an object over to a workload that is held.
    HandsOver { to: Key },
}

impl Held {
    /// Whether an approval would let it pass; otherwise it waits for another workload.
    pub fn is_approvable(&self) -> bool {
        self.why.iter().any(|why| !matches!(why, Why::HandsOver { .. }))
    }

    fn record(&self) -> HeldRecord {
        let together = self.why.iter().any(|why| matches!(why, Why::Objects { .. } | Why::Still));
        HeldRecord { key: self.key.clone(), digest: self.digest, cause: self.cause, together }
    }
}

impl Verdict {
    /// What the next verdict must know of this one. Who only waits for another is found again by itself.
    pub fn records(&self) -> Vec<HeldRecord> {
        self.held.iter().filter(|held| held.is_approvable()).map(Held::record).collect()
    }

    /// The approved removals of what a member removes only with an approval: paths in the folder, and
    /// the clusters concerned.
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

/// One workload's removals, before anything is said about them.
#[derive(Debug)]
struct Removal {
    pairs: Pairs,
    digest: Digest,
    cause: Cause,
    spent: Vec<Digest>,
}

/// Judges the way from the previous state to the next.
pub fn judge(question: &Question<'_>) -> Verdict {
    let gone = removal::gone(question.previous, question.next);
    if gone.is_empty() {
        return Verdict::default();
    }
    let before = Claims::of(question.previous);
    let removals: BTreeMap<&Key, Removal> = removal::by_workload(&before, &gone)
        .into_iter()
        .map(|(key, pairs)| (key, weigh(question, key, pairs)))
        .collect();
    let reasons = rails::reasons(question, &before, &removals);
    let mut verdict = Verdict::default();
    let mut held: BTreeMap<Key, Vec<Why>> = BTreeMap::new();
    for (key, removal) in &removals {
        if question.approvals.contains(&removal.digest) {
            let (digest, pairs) = (removal.digest, removal.pairs.clone());
            verdict.approved.push(Approved { key: (*key).clone(), digest, pairs });
        } else if let Some(why) = reasons.get(key) {
            held.insert((*key).clone(), why.clone());
        }
    }
    if held.is_empty() {
        return verdict;
    }
    verdict.state = Some(merge::merge(question, &before, &mut held));
    verdict.held = held.into_iter().map(|(key, why)| held_one(question, &removals, key, why)).collect();
    // A held workload keeps everything, so nothing of it was used.
    let kept: BTreeSet<&Key> = verdict.held.iter().map(|held| &held.key).collect();
    verdict.approved.retain(|approved| !kept.contains(&approved.key));
    verdict
}

fn weigh(question: &Question<'_>, key: &Key, pairs: Pairs) -> Removal {
    let (digest, earlier) = removal::unused_digest(&pairs, question.used);
    let spent = earlier.into_iter().filter(|digest| question.approvals.contains(digest)).collect();
    let retried = question.retried.iter().any(|held| held.key == *key && held.cause == Cause::Source);
    let cause = if question.source_changed || retried { Cause::Source } else { Cause::Itself };
    Removal { pairs, digest, cause, spent }
}

fn held_one(question: &Question<'_>, removals: &BTreeMap<&Key, Removal>, key: Key, why: Vec<Why>) -> Held {
    let decision = question.previous.decisions.get(&key);
    let source = decision.map(|decision| decision.source.clone()).unwrap_or_default();
    let cause = if question.source_changed { Cause::Source } else { Cause::Itself };
    let pairs = Pairs::new();
    let held = Held {
        source,
        cause,
        digest: digest(&pairs),
        pairs,
        why,
        is_gone: !question.next.decisions.contains_key(&key),
        spent: Vec::new(),
        expired: None,
        key,
    };
    match removals.get(&held.key) {
        Some(removal) => Held {
            cause: removal.cause,
            pairs: removal.pairs.clone(),
            digest: removal.digest,
            spent: removal.spent.clone(),
            ..held
        },
        None => held,
    }
}

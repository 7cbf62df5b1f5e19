//! The gate: holds back the removals of workloads that exceed the limits, and gives the state to publish.
//!
//! Pure. A held workload keeps its last good form, decision and objects in every cluster; everything else is
//! the next state's. Where only silent clusters lose copies, these alone are kept. A removal beyond a limit needs the
//! digest of exactly its objects as an approval, which counts once.
//!
//! - [`question`]: the inputs. [`limits`]: the settings. [`removal`]: removals by workload, and their digests.
//! - [`weighing`]: the removals to judge. [`limit_checks`]: the checks. [`verdict`]: the result.
//! - [`window`]: recent removals, which count too. [`deadlines`]: later removals. [`causes`]: edits,
//!   statuses and time told apart.
//! - [`apart`]: workloads that go on without the held removals.
//! - [`published_state`]: the next state with held workloads put back. [`held_record`]: lines for trailers.
//!   [`messages`]: the text for people.

mod apart;
mod causes;
pub mod deadlines;
pub(crate) mod held_record;
mod limit_checks;
pub mod limits;
pub mod messages;
mod published_state;
mod question;
pub mod removal;
#[cfg(test)]
mod tests;
mod verdict;
mod weighing;
pub mod window;

use std::collections::{BTreeMap, BTreeSet};

use crate::state::Comparison;
use berth_base::model::{Digest, Key};

pub use causes::EditAlone;
pub use deadlines::{Deadline, Due, Outlook};
pub use held_record::HeldRecord;
pub use limits::{Limits, Percent, Span};
pub use question::Question;
pub use removal::{Cause, Pairs, digest, digest_of_all};
pub use verdict::{Approved, Held, Verdict, Why};
pub use window::{PastPublication, Removed};

use weighing::{Removal, weigh_all};

/// Returns the workloads that lose copies in the next state.
pub fn losing(states: &Comparison<'_>) -> BTreeMap<Key, Pairs> {
    removal::by_workload(states).into_iter().map(|(key, pairs)| (key.clone(), pairs)).collect()
}

/// Judges the step from the current state to the next.
pub fn judge(question: &Question<'_>) -> Verdict {
    let due = deadlines::due(question.states, &question.outlook.with_change);
    let now = removal::by_workload(question.states);
    if now.is_empty() && due.is_empty() && question.failing.is_empty() {
        return Verdict::default();
    }
    let all = weigh_all(question, now, &due);
    let (removals, quiet): (BTreeMap<&Key, Removal>, BTreeMap<&Key, Removal>) =
        all.into_iter().partition(|(_, removal)| !removal.pairs.is_empty() || removal.fails);
    let reasons = limit_checks::reasons(question, &removals);
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
        let apart = apart::find(question, &removals);
        verdict.state = Some(published_state::merge(question.states, &apart, &mut held));
        let one = |(key, why): (Key, Vec<Why>)| {
            let goes_on = apart::goes_on(&apart, &key, &why);
            Held { goes_on, ..held_one(question, &removals, key, why, all) }
        };
        verdict.held = held.into_iter().map(one).collect();
    }
    // A held workload keeps all its copies, so its approvals were not used.
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
    let decision = question.states.current.decisions.get(&key);
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
        goes_on: false,
        is_gone: !question.states.next.decisions.contains_key(&key),
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

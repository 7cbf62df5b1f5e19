//! A member's report, and its facts, which decisions have read.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::cluster::{AddOnScore, Silence, Taint, WorkloadName, WorkloadReport};
use super::object::ObjectId;
use super::release::CopyReport;
use super::selector::Labels;

/// A `ClusterStatus` of `berth.dev/v1alpha1`: the form of statuses and of facts.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ClusterStatus {
    pub cluster: String,
    /// The time of the report, and the time by which the next is due.
    pub reported: Option<Timestamp>,
    pub next_due: Option<Timestamp>,
    /// The folder that the member applied.
    pub applied: Option<Applied>,
    pub labels: Labels,
    pub claims: Labels,
    pub properties: BTreeMap<String, String>,
    /// Scores from add-ons, by resource and score name. An empty name marks a resource without scores.
    pub scores: BTreeMap<(String, String), AddOnScore>,
    pub workloads: BTreeMap<WorkloadName, WorkloadReport>,
    /// The verdicts on workloads' copies that rollouts wait for.
    pub copies: BTreeMap<WorkloadName, CopyReport>,
    /// The beginning of the member's silence, if its last report is long overdue. Only in facts.
    pub silent: Option<Timestamp>,
    /// The moment since which nothing more moves away because of the silence: much of the fleet is silent.
    /// Only in facts.
    pub frozen: Option<Timestamp>,
    /// The member reports, so the older status in its file does not count. Only in facts.
    pub heard: bool,
    /// The times at which undated taints were first seen. Only in facts.
    pub taints: BTreeMap<TaintName, Timestamp>,
}

impl ClusterStatus {
    /// Reports whether both statuses are equal apart from their times.
    pub fn says_the_same(&self, other: &ClusterStatus) -> bool {
        let timeless =
            |status: &ClusterStatus| ClusterStatus { reported: None, next_due: None, ..status.clone() };
        timeless(self) == timeless(other)
    }

    /// Drops the scores that expired before a moment, and the expiry of the others.
    pub fn keep_scores(&mut self, now: Timestamp) {
        self.scores.retain(|_, score| score.valid_until.is_none_or(|until| until >= now));
        self.scores.values_mut().for_each(|score| score.valid_until = None);
    }

    /// Replaces everything by the values of another status of the same cluster.
    pub fn replace_by(&mut self, other: &ClusterStatus) {
        self.cluster.clone_from(&other.cluster);
        self.labels.extend(other.labels.clone());
        self.claims.extend(other.claims.clone());
        self.properties.extend(other.properties.clone());
        self.scores.extend(other.scores.clone());
        self.workloads.extend(other.workloads.clone());
        self.copies.extend(other.copies.clone());
        self.taints.extend(other.taints.clone());
        self.heard |= other.heard;
        if other.silent.is_some() {
            (self.silent, self.frozen) = (other.silent, other.frozen);
        }
    }

    /// Reports whether the status contains only verdicts on copies.
    pub fn says_copies_alone(&self) -> bool {
        let ClusterStatus {
            cluster: _,
            copies: _,
            reported,
            next_due,
            applied,
            labels,
            claims,
            properties,
            scores,
            workloads,
            silent,
            frozen,
            heard,
            taints,
        } = self;
        (reported, next_due, silent, frozen) == (&None, &None, &None, &None)
            && applied.is_none()
            && !heard
            && labels.is_empty()
            && claims.is_empty()
            && properties.is_empty()
            && scores.is_empty()
            && workloads.is_empty()
            && taints.is_empty()
    }

    /// Returns the member's silence, if any.
    pub fn silence(&self) -> Option<Silence> {
        self.silent.map(|since| Silence { since, frozen: self.frozen })
    }

    /// Clears the fields that a file cannot set: verdicts on copies, and the hub's own fields.
    pub fn keep_what_people_write(&mut self) {
        self.copies.clear();
        self.forget_first_seen();
    }

    /// Clears the hub's own fields: a member cannot set them.
    pub fn forget_first_seen(&mut self) {
        self.taints.clear();
        (self.silent, self.frozen, self.heard) = (None, None, false);
    }
}

/// The identity of a cluster's taint.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TaintName {
    pub key: String,
    pub value: String,
    pub effect: String,
}

impl TaintName {
    pub fn of(taint: &Taint) -> TaintName {
        let [key, value, effect] = [&taint.key, &taint.value, &taint.effect_word].map(String::clone);
        TaintName { key, value, effect }
    }
}

/// The folder that a member last applied, and the outcome.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// The `Berth-Seq` of the folder.
    pub sequence: u64,
    /// The folder's tree id.
    pub tree: String,
    pub objects: usize,
    pub problems: Vec<Problem>,
    /// The differences of objects that are only compared; these are no problems.
    pub differences: Vec<Problem>,
    /// Notes for people on this folder, mostly take-overs.
    pub notes: Vec<Problem>,
    /// The number of problems and notes that were left out to keep the status small.
    pub left_out: usize,
    /// The reason why nothing is currently applied.
    pub suspended: Option<Suspension>,
    /// Some object may still become correct by itself.
    pub progressing: bool,
    /// The objects for which this holds; empty if there are too many to name.
    pub waiting: Vec<ObjectId>,
    /// Objects that the folder no longer has but that still exist, until they are removed.
    pub removing: Vec<ObjectId>,
    /// The number of further such objects.
    pub more_removing: usize,
    /// The fault that prevents the member from applying its folder. All other fields are then those of the
    /// last sync.
    pub failing: Option<Failing>,
}

/// The maximal number of problems that a member names. With more, any object may have a problem.
pub const MOST_PROBLEMS: usize = 100;

impl Applied {
    /// Reports whether some problems are not named, so the health of other objects is unknown.
    pub fn lacks_problems(&self) -> bool {
        self.left_out > 0 && self.problems.len() >= MOST_PROBLEMS
    }
}

/// A sync that fails as a whole.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failing {
    /// The end of the first failed sync.
    pub since: Timestamp,
    pub message: String,
}

impl std::fmt::Display for Failing {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "failing since {}: {}", self.since, self.message)
    }
}

/// A pause that people requested.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suspension {
    pub reason: String,
    /// `None`: until further notice.
    pub until: Option<Timestamp>,
}

impl std::fmt::Display for Suspension {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("suspended")?;
        if let Some(until) = self.until {
            write!(f, " until {until}")?;
        }
        if self.reason.is_empty() { Ok(()) } else { write!(f, ": {}", self.reason) }
    }
}

/// An object that could not be brought into its wanted form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    pub object: ObjectId,
    pub kind: ProblemKind,
    /// The differing fields, as JSON pointers.
    pub paths: Vec<String>,
    /// A text for people. No decision and no condition depends on it.
    pub message: String,
}

/// The kinds of problems, from which hubs' conditions are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemKind {
    /// A write, a removal or a check failed.
    #[default]
    Failed,
    /// The object exists, and berth did not create it.
    Foreign,
    /// The object exists, berth did not create it, and does not take it over in its current form.
    TakeOverRefused,
    /// The object was changed in the cluster.
    Drifted,
    /// The object is only compared, and differs.
    Different,
    /// The object should be compared, but could not be.
    NotCompared,
    /// The object is no longer wanted, but kept.
    Kept,
}

impl ProblemKind {
    const WORDS: [(ProblemKind, &'static str); 7] = [
        (ProblemKind::Failed, "failed"),
        (ProblemKind::Foreign, "foreign"),
        (ProblemKind::TakeOverRefused, "takeOverRefused"),
        (ProblemKind::Drifted, "drifted"),
        (ProblemKind::Different, "different"),
        (ProblemKind::NotCompared, "notCompared"),
        (ProblemKind::Kept, "kept"),
    ];

    /// Returns the word of this kind in a status.
    pub fn word(self) -> &'static str {
        ProblemKind::WORDS.iter().find(|(kind, _)| *kind == self).map_or("failed", |(_, word)| word)
    }

    /// Returns the kind of a word. An unknown word, from a newer member, counts as a failure.
    pub fn of_word(word: &str) -> ProblemKind {
        ProblemKind::WORDS.iter().find(|(_, known)| *known == word).map(|(kind, _)| *kind).unwrap_or_default()
    }
}

impl Problem {
    /// Returns a problem of the kind `Failed`.
    pub fn failed(object: ObjectId, message: impl Into<String>) -> Problem {
        Problem::of(ProblemKind::Failed, object, message)
    }

    pub fn of(kind: ProblemKind, object: ObjectId, message: impl Into<String>) -> Problem {
        Problem { object, kind, paths: Vec::new(), message: message.into() }
    }
}

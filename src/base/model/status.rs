//! A member's report, and the facts of it that a decision has read.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::cluster::{AddOnScore, Silence, Taint, WorkloadName, WorkloadReport};
use super::object::ObjectId;
use super::release::CopyReport;
use super::selector::Labels;

/// `ClusterStatus` of `berth.dev/v1alpha1`: the shape of statuses and of facts.
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
    /// Scores that add-ons gave the cluster, by resource and score name. An empty name is for a resource without scores.
    pub scores: BTreeMap<(String, String), AddOnScore>,
    pub workloads: BTreeMap<WorkloadName, WorkloadReport>,
    /// The verdicts on workloads' copies that rollouts wait for.
    pub copies: BTreeMap<WorkloadName, CopyReport>,
    /// Since when the member has been silent, where its last report is overdue for long. Only facts have this.
    pub silent: Option<Timestamp>,
    /// Since when nothing more is moved away for the silence, because much of the fleet is silent. Only facts have this.
    pub frozen: Option<Timestamp>,
    /// The member reports, so that the older status in its file does not count. Only facts have this.
    pub heard: bool,
    /// The times at which taints without a time of their own were first seen. Only facts have these.
    pub taints: BTreeMap<TaintName, Timestamp>,
}

impl ClusterStatus {
    /// Reports whether both say the same, whenever they say it.
    pub fn says_the_same(&self, other: &ClusterStatus) -> bool {
        let timeless =
            |status: &ClusterStatus| ClusterStatus { reported: None, next_due: None, ..status.clone() };
        timeless(self) == timeless(other)
    }

    /// Forgets the scores that ran out before a moment, and when the others will.
    pub fn keep_scores(&mut self, now: Timestamp) {
        self.scores.retain(|_, score| score.valid_until.is_none_or(|until| until >= now));
        self.scores.values_mut().for_each(|score| score.valid_until = None);
    }

    /// Takes over everything that another status of the same cluster says.
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

    /// Reports whether nothing is said but verdicts on copies.
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

    /// The member's silence, if any.
    pub fn silence(&self) -> Option<Silence> {
        self.silent.map(|since| Silence { since, frozen: self.frozen })
    }

    /// Clears what nobody can write into a file: verdicts on copies, and what only the hub may say.
    pub fn keep_what_people_write(&mut self) {
        self.copies.clear();
        self.forget_first_seen();
    }

    /// Clears what only the hub may say: a member's own word does not count.
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

/// The folder a member last applied, and how that went.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Applied {
    /// The `Berth-Seq` of the folder.
    pub sequence: u64,
    /// The folder's tree id.
    pub tree: String,
    pub objects: usize,
    pub problems: Vec<Problem>,
    /// In what objects differ that are left as they are, which is no problem.
    pub differences: Vec<Problem>,
    /// Notes for people on this folder, take-overs above all.
    pub notes: Vec<Problem>,
    /// The number of problems and notes left out, so that a status stays small.
    pub left_out: usize,
    /// The reason why nothing is applied for now.
    pub suspended: Option<Suspension>,
    /// Something may still become as wanted by itself.
    pub progressing: bool,
    /// The objects of which that is so; none where they are too many to name.
    pub waiting: Vec<ObjectId>,
    /// Objects that the folder does not have any more and that are still there, to be removed.
    pub removing: Vec<ObjectId>,
    /// The number of further such objects, which are not named.
    pub more_removing: usize,
    /// The fault that keeps the member from its folder. All other fields are then those of the last sync.
    pub failing: Option<Failing>,
}

/// The number of problems that a member names. Beyond it, any object may have a problem.
pub const MOST_PROBLEMS: usize = 100;

impl Applied {
    /// Reports whether some problems are not named, so that the health of the other objects is unknown.
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

/// A pause that people asked for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Suspension {
    pub reason: String,
    /// `None` for until further notice.
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

/// An object that could not be brought to its wanted form.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    pub object: ObjectId,
    pub kind: ProblemKind,
    /// The fields in which it differs, as JSON pointers.
    pub paths: Vec<String>,
    /// Words for people. No decision and no condition depends on them.
    pub message: String,
}

/// The kinds of problems, from which hubs' conditions are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum ProblemKind {
    /// A write, a removal or a check failed.
    #[default]
    Failed,
    /// It exists, and berth did not make it.
    Foreign,
    /// It exists, berth did not make it, and does not take it over as it is.
    TakeOverRefused,
    /// It was changed in the cluster.
    Drifted,
    /// It is only compared, and differs.
    Different,
    /// It is only compared, and could not be.
    NotCompared,
    /// It is no longer wanted, and kept.
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

    /// Returns the word that a status has for it.
    pub fn word(self) -> &'static str {
        ProblemKind::WORDS.iter().find(|(kind, _)| *kind == self).map_or("failed", |(_, word)| word)
    }

    /// Returns the kind of a word. A newer member's word is a failure.
    pub fn of_word(word: &str) -> ProblemKind {
        ProblemKind::WORDS.iter().find(|(_, known)| *known == word).map(|(kind, _)| *kind).unwrap_or_default()
    }
}

impl Problem {
    /// Makes a problem of the plain kind.
    pub fn failed(object: ObjectId, message: impl Into<String>) -> Problem {
        Problem::of(ProblemKind::Failed, object, message)
    }

    pub fn of(kind: ProblemKind, object: ObjectId, message: impl Into<String>) -> Problem {
        Problem { object, kind, paths: Vec::new(), message: message.into() }
    }
}

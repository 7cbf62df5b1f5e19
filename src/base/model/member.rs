//! Members as the hub sees them: a cluster's published folder compared with its last report.
//!
//! A member is silent when three times its own reporting interval has passed without a report; `now` is an
//! argument.

use std::collections::BTreeSet;

use super::map::{Cursor, Map};
use super::pick_cursor::rows_among;
use super::shared::Shared;
use super::status::Problem;
use super::{ClusterStatus, Decision, ObjectId, Timestamp, path};

/// The published folder of a cluster.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// The `Berth-Seq` at which the folder's tree last changed.
    pub sequence: u64,
    /// The folder's tree id.
    pub tree: String,
}

/// The paths at which an applied folder differs from the published one.
pub type Differing = Shared<BTreeSet<String>>;

/// The hub's knowledge of members.
#[derive(Clone, Copy, Debug)]
pub struct Observed<'s> {
    pub statuses: &'s Map<String, Shared<ClusterStatus>>,
    pub published: &'s Map<String, Published>,
    /// The differing paths of members that applied another folder than the published one, if both can be
    /// read.
    pub differing: &'s Map<String, Differing>,
    pub now: Timestamp,
}

impl<'s> Observed<'s> {
    /// Returns all clusters with a folder or a report, by name.
    pub fn members(self) -> Vec<Member<'s>> {
        let names: BTreeSet<&String> = self.published.keys().chain(self.statuses.keys()).collect();
        let mut members = self.cursor();
        names.into_iter().filter_map(|name| members.member(name)).collect()
    }

    /// Returns the cluster with this name, if it has a folder or a report.
    pub fn member(self, name: &str) -> Option<Member<'s>> {
        self.cursor().member(name)
    }

    /// Returns a cursor for looking up many clusters.
    pub fn cursor(self) -> MemberCursor<'s> {
        let Observed { statuses, published, differing, now } = self;
        let (statuses, published, differing) = (statuses.cursor(), published.cursor(), differing.cursor());
        MemberCursor { statuses, published, differing, now }
    }
}

/// A cursor over members; lookups are fast if names ascend.
#[derive(Debug)]
pub struct MemberCursor<'s> {
    statuses: Cursor<'s, String, Shared<ClusterStatus>>,
    published: Cursor<'s, String, Published>,
    differing: Cursor<'s, String, Differing>,
    now: Timestamp,
}

impl<'s> MemberCursor<'s> {
    /// Returns the cluster with this name, if it has a folder or a report.
    pub fn member(&mut self, name: &str) -> Option<Member<'s>> {
        let (status, published) = (self.statuses.entry(name), self.published.entry(name));
        let name = status.map(|(name, _)| name).or(published.map(|(name, _)| name))?;
        let (status, published) = (status.map(|(_, status)| &**status), published.map(|(_, folder)| folder));
        let state = state(status, published, self.now);
        let tree = status.and_then(|status| status.applied.as_ref()).map(|applied| &applied.tree);
        let lacks = match published {
            _ if !state.is_heard() => Lacks::Unknown,
            Some(published) if tree != Some(&published.tree) => {
                self.differing.get(name).map_or(Lacks::Unknown, |paths| Lacks::Paths(paths))
            }
            _ => Lacks::Nothing,
        };
        Some(Member { name, status, published, state, lacks })
    }
}

/// A cluster's published folder and its report.
#[derive(Debug)]
pub struct Member<'s> {
    pub name: &'s str,
    pub status: Option<&'s ClusterStatus>,
    pub published: Option<&'s Published>,
    pub state: MemberState,
    pub lacks: Lacks<'s>,
}

/// The part of the published folder that a member lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lacks<'s> {
    Nothing,
    /// The files at these paths.
    Paths(&'s BTreeSet<String>),
    /// Possibly everything: the member is silent, or its folder cannot be read.
    Unknown,
}

impl<'s> Member<'s> {
    /// Returns the objects that differ from their wanted form.
    pub fn problems(&self) -> &'s [Problem] {
        let applied = self.status.and_then(|status| status.applied.as_ref());
        applied.map(|applied| applied.problems.as_slice()).unwrap_or_default()
    }

    /// Returns the parts of the member for a workload's line in the report.
    pub fn view(&self) -> MemberView<'s> {
        let applied = self.status.and_then(|status| status.applied.as_ref());
        MemberView {
            name: self.name,
            is_heard: self.state.is_heard(),
            lacks: self.lacks,
            problems: self.problems(),
            progressing: applied.is_some_and(|applied| applied.progressing),
            waiting: applied.map(|applied| applied.waiting.as_slice()).unwrap_or_default(),
        }
    }

    /// Returns the objects that differ from the folder and are only compared.
    pub fn differences(&self) -> &'s [Problem] {
        let applied = self.status.and_then(|status| status.applied.as_ref());
        applied.map(|applied| applied.differences.as_slice()).unwrap_or_default()
    }
}

/// The inputs from a member for a workload's line in the fleet report. If they do not change, neither does
/// the line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemberView<'s> {
    pub name: &'s str,
    pub is_heard: bool,
    pub lacks: Lacks<'s>,
    /// The objects that differ from their wanted form.
    pub problems: &'s [Problem],
    /// Some object may still become correct by itself.
    pub progressing: bool,
    /// The objects for which this holds; empty if there are too many to name.
    pub waiting: &'s [ObjectId],
}

impl<'s> MemberView<'s> {
    /// Reports whether the member is heard, and has the published copies of these objects.
    pub fn has(&self, objects: &[ObjectId]) -> bool {
        match self.lacks {
            Lacks::Nothing => true,
            Lacks::Paths(paths) => !objects.iter().any(|object| paths.contains(&path::of_object(object))),
            Lacks::Unknown => false,
        }
    }

    /// Returns the first problem of one of these objects.
    pub fn problem_of(&self, objects: &[ObjectId]) -> Option<&'s Problem> {
        self.problems.iter().find(|problem| objects.contains(&problem.object))
    }

    /// Reports whether some of these objects may still have to become correct.
    pub fn awaits(&self, objects: &[ObjectId]) -> bool {
        let is_unknown = self.waiting.is_empty();
        self.progressing && (is_unknown || self.waiting.iter().any(|id| objects.contains(id)))
    }
}

/// Returns a decision's clusters, each with its member if it has one. `members` ascend by name.
pub fn placed<'m, 's>(
    decision: &'s Decision,
    members: &'m [Member<'s>],
) -> impl Iterator<Item = (&'s str, Option<&'m Member<'s>>)> {
    let rows = rows_among(&decision.picks, members.len(), |row| members[row].name);
    decision.picks.iter().zip(rows).map(|(pick, row)| (&*pick.cluster, row.map(|row| &members[row])))
}

/// The state of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// The whole folder is applied, and every object is correct.
    InSync,
    /// The whole folder is applied, and some object may still become correct by itself.
    Progressing,
    /// The whole folder is applied, and some object differs from its wanted form.
    WithProblems,
    /// The member has applied an older folder.
    Behind,
    /// People suspended the cluster.
    Suspended,
    /// The member reports that it cannot work.
    Failing,
    Silent,
    NeverReported,
}

impl MemberState {
    /// Reports whether the report still describes the cluster.
    pub fn is_heard(self) -> bool {
        !matches!(self, MemberState::Failing | MemberState::Silent | MemberState::NeverReported)
    }

    const ALL: [MemberState; 8] = [
        MemberState::InSync,
        MemberState::Progressing,
        MemberState::WithProblems,
        MemberState::Behind,
        MemberState::Suspended,
        MemberState::Failing,
        MemberState::Silent,
        MemberState::NeverReported,
    ];

    /// Returns the state with these words.
    pub fn of_word(word: &str) -> Option<MemberState> {
        MemberState::ALL.into_iter().find(|state| state.word() == word)
    }

    /// Returns the state in words.
    pub const fn word(self) -> &'static str {
        match self {
            MemberState::InSync => "in sync",
            MemberState::Progressing => "progressing",
            MemberState::WithProblems => "problems",
            MemberState::Behind => "behind",
            MemberState::Suspended => "suspended",
            MemberState::Failing => "failing",
            MemberState::Silent => "silent",
            MemberState::NeverReported => "never reported",
        }
    }
}

fn state(status: Option<&ClusterStatus>, published: Option<&Published>, now: Timestamp) -> MemberState {
    let Some(status) = status else { return MemberState::NeverReported };
    if is_silent(status, now) {
        return MemberState::Silent;
    }
    let Some(applied) = &status.applied else { return MemberState::NeverReported };
    if applied.failing.is_some() {
        MemberState::Failing
    } else if applied.suspended.is_some() {
        MemberState::Suspended
    } else if published.is_some_and(|published| published.tree != applied.tree) {
        MemberState::Behind
    } else if !applied.problems.is_empty() {
        MemberState::WithProblems
    } else if applied.progressing {
        MemberState::Progressing
    } else {
        MemberState::InSync
    }
}

/// Reports whether three times the member's own interval has passed since its report.
pub fn is_silent(status: &ClusterStatus, now: Timestamp) -> bool {
    silent_after(status).is_some_and(|last| now.as_second() > last)
}

/// Returns the second after which a member counts as silent if it does not report again. `None` if its report promises
/// no other.
pub fn silent_after(status: &ClusterStatus) -> Option<i64> {
    let (reported, due) = (status.reported?.as_second(), status.next_due?.as_second());
    let interval = due.saturating_sub(reported).max(0);
    Some(reported.saturating_add(interval.saturating_mul(3)))
}

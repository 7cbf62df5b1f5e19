//! Members as the hub sees them: a cluster's published folder against its last report.
//!
//! A member is silent once three times its own reporting interval has passed without a report; `now` is an
//! argument.

use std::collections::{BTreeMap, BTreeSet};

use super::decision::rows_among;
use super::map::Map;
use super::shared::Shared;
use super::status::Problem;
use super::{ClusterStatus, Decision, ObjectId, Timestamp};

/// The folder a cluster should have.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Published {
    /// The `Berth-Seq` at which the folder's tree last changed.
    pub sequence: u64,
    /// The folder's tree id.
    pub tree: String,
}

/// Returns all clusters with a folder or a report, by name.
pub fn members<'s>(
    statuses: &'s Map<String, Shared<ClusterStatus>>,
    published: &'s BTreeMap<String, Published>,
    now: Timestamp,
) -> Vec<Member<'s>> {
    let names: BTreeSet<&String> = published.keys().chain(statuses.keys()).collect();
    let member = |name: &'s String| {
        let (status, published) = (statuses.get(name).map(|status| &**status), published.get(name));
        let state = state(status, published, now);
        let tree = status.and_then(|status| status.applied.as_ref()).map(|applied| &applied.tree);
        let is_there = published.is_none() || tree == published.map(|published| &published.tree);
        Member { name, status, published, state, has_folder: state.is_heard() && is_there }
    };
    names.into_iter().map(member).collect()
}

/// A cluster's published folder and its report.
#[derive(Debug)]
pub struct Member<'s> {
    pub name: &'s str,
    pub status: Option<&'s ClusterStatus>,
    pub published: Option<&'s Published>,
    pub state: MemberState,
    /// The member reports, and has the published folder.
    pub has_folder: bool,
}

impl<'s> Member<'s> {
    /// The objects that are not as wanted.
    pub fn problems(&self) -> &'s [Problem] {
        let applied = self.status.and_then(|status| status.applied.as_ref());
        applied.map(|applied| applied.problems.as_slice()).unwrap_or_default()
    }

    /// Reports whether some of these objects may still have to become as wanted.
    pub fn awaits(&self, objects: &[ObjectId]) -> bool {
        let Some(applied) = self.status.and_then(|status| status.applied.as_ref()) else { return false };
        let is_unknown = applied.waiting.is_empty();
        applied.progressing && (is_unknown || applied.waiting.iter().any(|id| objects.contains(id)))
    }

    /// The objects that differ from the folder, and are only compared.
    pub fn differences(&self) -> &'s [Problem] {
        let applied = self.status.and_then(|status| status.applied.as_ref());
        applied.map(|applied| applied.differences.as_slice()).unwrap_or_default()
    }
}

/// A decision's clusters, each with its member where it has one; both go by name.
pub fn placed<'m, 's>(
    decision: &'s Decision,
    members: &'m [Member<'s>],
) -> impl Iterator<Item = (&'s str, Option<&'m Member<'s>>)> {
    let rows = rows_among(&decision.picks, members.len(), |row| members[row].name);
    decision.picks.iter().zip(rows).map(|(pick, row)| (pick.cluster.as_str(), row.map(|row| &members[row])))
}

/// The state of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// All of the folder is applied, and every object is as wanted.
    InSync,
    /// All of the folder is applied, and some object may still become as wanted by itself.
    Progressing,
    /// All of the folder is applied, and some object is not as wanted.
    WithProblems,
    /// Its last folder is an older one.
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

    /// The state in words.
    pub fn word(self) -> &'static str {
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
    let (Some(reported), Some(due)) = (status.reported, status.next_due) else { return false };
    let interval = due.as_second().saturating_sub(reported.as_second()).max(0);
    now.as_second() > reported.as_second().saturating_add(interval.saturating_mul(3))
}

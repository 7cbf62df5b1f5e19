//! Rollout policies: people's orders for the rollouts of workloads, in addition to each system's strategies.

use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::key::Key;
use super::rollout::Strategy;
use super::schedule::{Schedule, add_on_the_wall};
use super::selector::Selector;
use super::staged::StageGate;
use crate::diag::Pos;
use crate::text::fits;

/// The kind of rollout policies, and the annotation by which a workload names one.
pub const KIND: &str = "RolloutPolicy";
pub const ANNOTATION: &str = "berth.dev/rollout-policy";

/// Orders for the rollouts of some workloads. A namespaced policy applies only to its namespace.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RolloutPolicy {
    pub key: Key,
    pub origin: Pos,
    /// `None` for every workload: of the namespace, or the default of the whole fleet.
    pub workloads: Option<Vec<WorkloadPattern>>,
    pub strategy: Option<PolicyStrategy>,
    pub on_failure: Option<OnFailure>,
    pub freezes: Vec<Freeze>,
    /// The reason for the pause.
    pub paused: Option<String>,
    pub pins: Vec<Pin>,
    /// The workloads that must be proven everywhere before these.
    pub after: Vec<WorkloadPattern>,
    /// The workloads form one release.
    pub together: bool,
    pub approved: Vec<GateApproval>,
    pub aborted: Vec<Abort>,
    pub restarted: Vec<Restart>,
}

impl RolloutPolicy {
    /// Reports whether the policy is the default of the whole fleet.
    pub fn is_fleet_default(&self) -> bool {
        self.workloads.is_none() && self.key.namespace.is_empty()
    }

    /// Reports whether the policy itself selects a workload.
    pub fn is_for(&self, workload: &Key) -> bool {
        self.may_reach(workload)
            && self.workloads.as_ref().is_none_or(|all| all.iter().any(|one| one.matches(workload)))
    }

    /// Reports whether a workload is within the policy's namespace.
    pub fn may_reach(&self, workload: &Key) -> bool {
        self.key.namespace.is_empty() || self.key.namespace == workload.namespace
    }
}

/// The strategy in a policy.
#[derive(Clone, Debug, PartialEq)]
pub enum PolicyStrategy {
    Written(Strategy),
    /// A staged update strategy of the fleet, by name.
    Staged {
        name: String,
        at: Pos,
    },
}

/// Workloads by kind, namespace and name, each a pattern; an absent pattern matches all.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorkloadPattern {
    pub at: Pos,
    pub kind: Option<String>,
    pub namespace: Option<String>,
    pub name: Option<String>,
}

impl WorkloadPattern {
    /// Returns the pattern of all workloads.
    pub fn any() -> WorkloadPattern {
        WorkloadPattern { at: Pos::file(""), kind: None, namespace: None, name: None }
    }

    pub fn matches(&self, key: &Key) -> bool {
        let holds = |pattern: &Option<String>, text: &str| {
            pattern.as_deref().is_none_or(|pattern| fits(pattern, text))
        };
        holds(&self.kind, &key.kind) && holds(&self.namespace, &key.namespace) && holds(&self.name, &key.name)
    }

    /// Reports whether the pattern names a single workload.
    pub fn is_exact(&self) -> bool {
        [&self.kind, &self.name].iter().all(|part| part.as_ref().is_some_and(|text| !text.contains('*')))
            && self.namespace.as_ref().is_none_or(|text| !text.contains('*'))
    }

    /// Returns the first key that the pattern matches, if it names a kind, a namespace and a name.
    pub(super) fn first_key(&self) -> Option<Key> {
        let parts = (self.kind.as_ref(), self.namespace.as_ref(), self.name.as_ref());
        let (Some(kind), Some(namespace), Some(name)) = parts else { return None };
        self.is_exact().then(|| Key::new("", kind, namespace, name))
    }

    /// Returns `Kind namespace/name`, with `*` for absent parts.
    pub fn describe(&self) -> String {
        let part = |text: &Option<String>| text.clone().unwrap_or_else(|| "*".to_owned());
        Key::new("", &part(&self.kind), &part(&self.namespace), &part(&self.name)).to_string()
    }
}

/// The reaction to a failing release.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum OnFailure {
    /// No further cluster gets the release.
    #[default]
    Halt,
    /// The clusters that have the release return to the last good one.
    RollBack,
}

impl OnFailure {
    pub const WORDS: [&'static str; 2] = ["Halt", "RollBack"];
}

/// Windows in which no cluster gets anything new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Freeze {
    /// The moments at which the window opens.
    pub schedule: Schedule,
    pub zone: TimeZone,
    pub zone_name: String,
    /// The length, as local time shows it.
    pub seconds: i64,
    /// Empty if missing.
    pub reason: String,
}

impl Freeze {
    /// Returns the end of the window that a moment is in.
    pub fn end(&self, now: Timestamp) -> Option<Timestamp> {
        let start = self.schedule.last(now, &self.zone)?;
        Some(add_on_the_wall(start, self.seconds, &self.zone)).filter(|end| now < *end)
    }

    /// Returns the start of the next window after a moment.
    pub fn next_start(&self, now: Timestamp) -> Option<Timestamp> {
        self.schedule.next(now, &self.zone)
    }
}

/// Clusters that are pinned to a release.
#[derive(Clone, Debug, PartialEq)]
pub struct Pin {
    pub at: Pos,
    /// Patterns of names. A cluster is pinned by its name or by its labels.
    pub clusters: Vec<String>,
    pub selector: Option<Selector>,
    /// `None`: the release that each cluster has.
    pub release: Option<u64>,
    pub reason: String,
}

/// A person's approval of a gate between stages, for one release.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GateApproval {
    pub workload: WorkloadPattern,
    pub release: u64,
    pub gate: StageGate,
}

/// A release to take back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Abort {
    pub workload: WorkloadPattern,
    pub release: u64,
    pub reason: String,
}

/// A release whose deadlines and failures restart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Restart {
    pub workload: WorkloadPattern,
    pub release: u64,
    /// The number of times so far.
    pub times: u64,
}

/// The policy that a workload names by its annotation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PolicyName {
    pub name: String,
    pub at: Pos,
}

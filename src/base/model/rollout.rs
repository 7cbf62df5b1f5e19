//! Strategies: the order and the speed in which a workload's changes reach its clusters.

use super::placement_ref::PlacementRef;
use super::selector::Selector;

/// How a workload's changes reach its clusters.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Strategy {
    /// To all clusters at once.
    #[default]
    AtOnce,
    /// In waves of clusters or decision groups, for each followed placement by itself.
    Progressive(Vec<Rollout>),
    /// A few clusters at a time, so that most stay available.
    Rolling(Rolling),
    /// Stage by stage, once for each release.
    Stages(Vec<Stage>),
    /// When a staged run says so; until then every cluster keeps what it has.
    Runs,
}

/// Waves for the clusters of one placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// `None` for all clusters of the workload.
    pub placement: Option<PlacementRef>,
    pub pace: Pace,
    /// Decision groups that go before everybody else, one after the other by index.
    pub first: Vec<GroupRef>,
    /// How long a success must last before it counts.
    pub soak_seconds: i64,
    /// How long a cluster may take before it counts as failed; `None` for ever.
    pub deadline_seconds: Option<i64>,
    /// The failures that do not stop the rollout.
    pub max_failures: Option<Amount>,
}

impl Rollout {
    /// To all clusters of the workload at once.
    pub const TOGETHER: Rollout = Rollout {
        placement: None,
        pace: Pace::Together,
        first: Vec::new(),
        soak_seconds: 0,
        deadline_seconds: None,
        max_failures: None,
    };

    /// The clusters that may be under way at a time, where that is limited.
    pub fn at_a_time(&self) -> Option<Amount> {
        match self.pace {
            Pace::ByCluster(most) => most,
            Pace::Together | Pace::ByGroup => None,
        }
    }
}

/// The order in which clusters are served.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// All clusters at once.
    Together,
    /// Clusters by name, so many at a time; `None` for all that are left.
    ByCluster(Option<Amount>),
    /// Decision groups by index.
    ByGroup,
}

/// A decision group by its name, which may be that of several, or by its index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupRef {
    Name(String),
    Index(usize),
}

/// Budgets of clusters that may lack the workload, and of copies beyond the wanted number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rolling {
    pub max_unavailable: Amount,
    pub max_surge: Amount,
    /// How long a copy without a measure of its health must be applied to count as available.
    pub period_seconds: i64,
    /// The number of clusters that shares are of; `None` for as many as are picked.
    pub wanted: Option<usize>,
    /// Somebody wrote the strategy; otherwise it is the system's default, which nobody may have thought of.
    pub asked: bool,
}

/// One stage of a staged rollout.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    pub name: String,
    /// `None` takes no cluster, as the system has it.
    pub selector: Option<Selector>,
    /// The label whose integer value orders the clusters, before their names.
    pub sorted_by: Option<String>,
    /// The clusters of the stage that may be under way at a time; see [`Amount::at_a_time_of`].
    pub at_a_time: Amount,
    pub before: Vec<StageTask>,
    pub after: Vec<StageTask>,
}

/// A condition of the step into a stage, or to the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageTask {
    /// A person approves it.
    Approval,
    /// Time passes, in seconds.
    Wait(i64),
}

/// A number, or a share of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Count(usize),
    Percent(u32),
}

impl Amount {
    /// As a number of so many; a share is rounded up as OCM does, see [`share_of`].
    pub fn of(self, total: usize) -> usize {
        match self {
            Amount::Count(count) => count,
            Amount::Percent(percent) => share_of(percent, total),
        }
    }

    /// The clusters of a stage of so many that go at a time: a share is rounded down, and one always goes.
    pub fn at_a_time_of(self, total: usize) -> usize {
        let amount = match self {
            Amount::Count(count) => count,
            Amount::Percent(percent) => total.saturating_mul(percent as usize) / 100,
        };
        amount.max(1)
    }

    /// As a number of so many; a share is rounded up in whole numbers, as Kubernetes does: 7% of 100 are 7.
    pub fn rounded_up(self, total: usize) -> usize {
        match self {
            Amount::Count(count) => count,
            Amount::Percent(percent) => total.saturating_mul(percent as usize).div_ceil(100),
        }
    }
}

/// So many percent of a number, rounded up. In floating point and in this order, as OCM has it: 7% of 100
/// are 8.
pub fn share_of(percent: u32, total: usize) -> usize {
    (f64::from(percent) / 100.0 * total as f64).ceil() as usize
}

//! Strategies: the order and the speed at which a workload's changes reach its clusters.

use super::key::PlacementRef;
use super::selector::Selector;

/// The way in which a workload's changes reach its clusters.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Strategy {
    /// To all clusters at once.
    #[default]
    AtOnce,
    /// In waves of clusters or decision groups, separately for each followed placement.
    Progressive(Vec<Rollout>),
    /// A few clusters at a time, so that most stay available.
    Rolling(Rolling),
    /// Stage by stage, once for each release.
    Stages(Vec<Stage>),
    /// Only by a staged run; until then every cluster keeps its copies.
    Runs,
}

/// Waves for the clusters of one placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    /// `None` for all clusters of the workload.
    pub placement: Option<PlacementRef>,
    pub pace: Pace,
    /// Decision groups that go first, one after the other by index.
    pub first: Vec<GroupRef>,
    /// The time that a success must last before it counts.
    pub soak_seconds: i64,
    /// The time after which an unfinished cluster counts as failed; `None`: for ever.
    pub deadline_seconds: Option<i64>,
    /// The number of failures that do not stop the rollout.
    pub max_failures: Option<Amount>,
}

impl Rollout {
    /// Rolls out to all clusters of the workload at once.
    pub const TOGETHER: Rollout = Rollout {
        placement: None,
        pace: Pace::Together,
        first: Vec::new(),
        soak_seconds: 0,
        deadline_seconds: None,
        max_failures: None,
    };

    /// Returns the number of clusters that may be under way at a time, if it is limited.
    pub fn at_a_time(&self) -> Option<Amount> {
        match self.pace {
            Pace::ByCluster(most) => most,
            Pace::Together | Pace::ByGroup => None,
        }
    }
}

/// The order in which clusters get the change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pace {
    /// All clusters at once.
    Together,
    /// Clusters by name, up to this many at a time; `None`: all remaining clusters.
    ByCluster(Option<Amount>),
    /// Decision groups by index.
    ByGroup,
}

/// A decision group by its name, which several groups may share, or by its index.
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
    /// The time after which a copy without a measure of its health counts as available.
    pub period_seconds: i64,
    /// The number of clusters that shares refer to; `None`: the number picked.
    pub wanted: Option<usize>,
    /// A person wrote the strategy; otherwise it is the system's default.
    pub asked: bool,
}

/// One stage of a staged rollout.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    pub name: String,
    /// `None` selects no cluster, as in KubeFleet.
    pub selector: Option<Selector>,
    /// The label whose integer value orders the clusters, before their names.
    pub sorted_by: Option<String>,
    /// The clusters of the stage that may be under way at a time; see [`Amount::at_a_time_of`].
    pub at_a_time: Amount,
    pub before: Vec<StageTask>,
    pub after: Vec<StageTask>,
}

/// A condition for beginning a stage, or the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StageTask {
    /// A person approves it.
    Approval,
    /// Time passes, in seconds.
    Wait(i64),
}

/// A number, or a share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Count(usize),
    Percent(u32),
}

impl Amount {
    /// Returns the number for a total; a share is rounded up as in OCM, see [`share_of`].
    pub fn of(self, total: usize) -> usize {
        match self {
            Amount::Count(count) => count,
            Amount::Percent(percent) => share_of(percent, total),
        }
    }

    /// Returns the number of a stage's clusters that go at a time: a share is rounded down, with a minimum of
    /// one.
    pub fn at_a_time_of(self, total: usize) -> usize {
        let amount = match self {
            Amount::Count(count) => count,
            Amount::Percent(percent) => total.saturating_mul(percent as usize) / 100,
        };
        amount.max(1)
    }

    /// Returns the number for a total; a share is rounded up in whole numbers, as in Kubernetes: 7% of 100 is
    /// 7.
    pub fn rounded_up(self, total: usize) -> usize {
        match self {
            Amount::Count(count) => count,
            Amount::Percent(percent) => total.saturating_mul(percent as usize).div_ceil(100),
        }
    }
}

/// Returns a percentage of a number, rounded up. It uses floating point in this order, as OCM does: 7% of 100
/// is 8.
pub fn share_of(percent: u32, total: usize) -> usize {
    (f64::from(percent) / 100.0 * total as f64).ceil() as usize
}

//! Rollouts of a workload to the clusters of a followed placement: all at once, or some at a time.

use super::placement_ref::PlacementRef;

/// For the clusters of one placement.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rollout {
    pub placement: PlacementRef,
    pub pace: Pace,
    /// Decision groups that go before everybody else, one after the other by index.
    pub first: Vec<GroupRef>,
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

/// A number, or a share of all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Count(usize),
    Percent(u32),
}

impl Amount {
    /// As a number of so many; a share is rounded up.
    pub fn of(self, total: usize) -> usize {
        match self {
            Amount::Count(count) => count,
            Amount::Percent(percent) => share_of(percent, total),
        }
    }
}

/// So many percent of a number, rounded up. In floating point and in this order, as OCM has it: 7% of 100
/// are 8.
pub fn share_of(percent: u32, total: usize) -> usize {
    (f64::from(percent) / 100.0 * total as f64).ceil() as usize
}

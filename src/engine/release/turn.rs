//! One workload's clusters as a strategy sees them, and a strategy's answer.
//!
//! A strategy knows neither files nor reports. It sees the content and health of each cluster, and selects
//! the clusters that get the release now.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_base::model::release::Health;
use berth_base::model::{Group, Timestamp};
use berth_base::text::{counted, some_of};

/// A cluster's content of a workload, compared with the wanted content.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    #[default]
    Nothing,
    Old,
    New,
}

/// One cluster of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn<'a> {
    pub cluster: &'a str,
    /// The cluster's decision group in the placement that is rolled out.
    pub group: Option<&'a Group>,
    /// False for a cluster that has a copy and is no longer picked.
    pub picked: bool,
    pub has: Version,
    /// The health of the cluster's copy.
    pub health: Health,
    /// The moment at which that health began; `None` without a report on the copy.
    pub since: Option<Timestamp>,
    /// The health was measured. Otherwise the objects' kinds have no measure, and only time counts.
    pub measured: bool,
    /// The folder no longer has the copy, but the member still does.
    pub removing: bool,
}

impl Turn<'_> {
    /// Reports whether the cluster should have the wanted content and does not have it yet.
    pub fn wants(&self) -> bool {
        self.picked && self.has != Version::New
    }

    /// Reports whether the cluster has a copy without being picked, and no removal is under way.
    pub fn is_left_over(&self) -> bool {
        !self.picked && self.has != Version::Nothing && !self.removing
    }
}

/// A strategy's answer for this moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step<'a> {
    /// The picked clusters that get the wanted content now.
    pub give: BTreeSet<&'a str>,
    /// The clusters whose copy may be removed now, without those whose removal is under way.
    pub remove: BTreeSet<&'a str>,
    /// The clusters with the wanted content that took too long.
    pub timed_out: BTreeSet<&'a str>,
    /// Too many clusters failed, so no further wave begins. In OCM's groups, the clusters of the failed group
    /// still get the content.
    pub halted: Option<Failures<'a>>,
    /// The reason for each cluster that waits, for people. It waits for the wanted content or, where it is no
    /// longer picked, for the removal of its copy.
    pub waits: BTreeMap<&'a str, Arc<str>>,
    /// The next moment at which the answer changes by time alone, apart from its words. With several
    /// placements, the earliest.
    pub next: Option<Timestamp>,
    /// Parts of the strategy that have no effect, against what their author may expect.
    pub notes: BTreeSet<String>,
}

/// The failures that halt a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures<'a> {
    /// The clusters that failed, by name.
    pub failed: Vec<&'a str>,
    /// The clusters that took too long, by name.
    pub timed_out: Vec<&'a str>,
    pub allowed: usize,
    /// The group whose failures are counted; `None` for all clusters.
    pub group: Option<&'a Group>,
}

impl Failures<'_> {
    /// Returns the failures in plain words: `eu-2 failed; no failures are allowed in group canary`.
    pub fn words(&self) -> String {
        let some = |names: &[&str], verb: &str| match names {
            [] => None,
            names => Some(format!("{} {verb}", some_of(names, MOST_NAMES))),
        };
        let parts = [some(&self.failed, "failed"), some(&self.timed_out, "took too long")];
        let what = parts.into_iter().flatten().collect::<Vec<_>>().join(", ");
        let place = self.group.map(|group| format!(" in {}", group_name(group))).unwrap_or_default();
        match self.allowed {
            0 => format!("{what}; no failures are allowed{place}"),
            allowed => format!("{what}; at most {} may fail{place}", counted(allowed, "cluster")),
        }
    }
}

/// The maximal number of clusters that a reason names.
pub(super) const MOST_NAMES: usize = 5;

/// Returns `group canary`, or `group 2` for a group without a name.
pub(super) fn group_name(group: &Group) -> String {
    if group.name.is_empty() { format!("group {}", group.index) } else { format!("group {}", group.name) }
}

//! One workload's clusters as a strategy sees them, and a strategy's answer.
//!
//! A strategy knows neither files nor reports: it sees for each cluster which content it has and how that does, and
//! says who may go on now.

use std::collections::{BTreeMap, BTreeSet};

use berth_base::model::release::Health;
use berth_base::model::{Group, Timestamp};

/// The content that a cluster has of a workload, against the wanted one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Has {
    #[default]
    Nothing,
    Old,
    New,
}

/// One cluster of a workload.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Turn<'a> {
    pub cluster: &'a str,
    /// Its decision group in the placement that is rolled out.
    pub group: Option<&'a Group>,
    /// False for a cluster that has a copy and is no longer picked.
    pub picked: bool,
    pub has: Has,
    /// Of the copy that it has.
    pub health: Health,
    /// When that health began; `None` while nothing is reported on the copy.
    pub since: Option<Timestamp>,
    /// The health was measured. Otherwise the objects' kinds have no measure, and only time tells.
    pub measured: bool,
    /// The copy's removal was let out, and the member still has it.
    pub removing: bool,
}

/// A strategy's answer for this moment.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Step<'a> {
    /// The picked clusters without the wanted content that are told to take it now.
    pub give: BTreeSet<&'a str>,
    /// The clusters whose copy may go now. One whose removal is under way is not named again.
    pub remove: BTreeSet<&'a str>,
    /// Of the clusters with the wanted content, those that took too long.
    pub timed_out: BTreeSet<&'a str>,
    /// Too many clusters failed, so that no further one is told.
    pub halted: Option<Failures<'a>>,
    /// The reason for each picked cluster that must wait, for people.
    pub waits: BTreeMap<&'a str, String>,
    /// The next moment at which the answer changes by itself.
    pub next: Option<Timestamp>,
}

/// The failures that halt a rollout.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Failures<'a> {
    /// The clusters that failed or took too long, by name.
    pub clusters: Vec<&'a str>,
    pub allowed: usize,
    /// The mandatory group that allows none, where that halts.
    pub group: Option<&'a str>,
}

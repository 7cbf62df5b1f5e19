//! Releases: the versions of a workload that clusters have during a rollout, and their proofs.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::content::ContentId;
use super::decision::{Digest, Pick};
use super::key::Key;
use super::staged::RunProgress;

/// A workload's releases, as the rendered branch keeps them.
#[derive(Clone, Debug, PartialEq)]
pub struct Releases {
    pub key: Key,
    /// The release that is being rolled out, or that all clusters have.
    pub current: Release,
    /// The number of the newest proven release: every cluster that should have it reported success. Newcomers
    /// begin with it.
    pub good: Option<u64>,
    /// Earlier releases that may be needed again, by number ascending.
    pub earlier: Vec<Release>,
    /// The clusters to which another release than the good one was assigned.
    pub assigned: BTreeMap<String, Assignment>,
    /// The clusters that have another release than the assigned one or the good one.
    pub stays: BTreeMap<String, Stays>,
    /// The current release was taken back: clusters return to the good one, until there is a newer release.
    pub taken_back: bool,
    /// The number of times that people restarted the current release's failures and deadlines.
    pub restarts: u64,
    /// The reason why the rollout stops.
    pub halted: Option<Halt>,
    /// The progress of a staged rollout.
    pub run: Option<RunProgress>,
    /// The clusters that lost their copies and whose members have not confirmed this yet, with the moment at
    /// which the copies left their folders.
    pub removing: BTreeMap<String, Timestamp>,
    /// The clusters outside `assigned` whose members have not reported on their copies yet, with the moment
    /// at which they got them: earlier reports do not count.
    pub awaited: BTreeMap<String, Timestamp>,
}

/// One version of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Counted from 1 for each workload, and never reused for it, even if the workload was removed meanwhile.
    pub number: u64,
    /// The moment its rollout began.
    pub begun: Timestamp,
    /// The stored inputs, from which copies can be rendered again. Equal inputs have equal ids.
    pub inputs: ContentId,
}

/// The release that was assigned to a cluster, and when.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Assignment {
    pub release: u64,
    pub at: Timestamp,
}

/// A release that a cluster has without an assignment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stays {
    pub release: u64,
    /// An order pinned it. Otherwise the cluster already had the release's copies, or keeps them.
    pub pinned: bool,
}

impl Releases {
    /// Returns releases with this one only, assigned to no cluster.
    pub fn of(key: Key, current: Release) -> Releases {
        Releases {
            key,
            current,
            good: None,
            earlier: Vec::new(),
            assigned: BTreeMap::new(),
            stays: BTreeMap::new(),
            taken_back: false,
            restarts: 0,
            halted: None,
            run: None,
            removing: BTreeMap::new(),
            awaited: BTreeMap::new(),
        }
    }

    /// Returns the number of the release that a cluster with copies has.
    pub fn of_cluster(&self, cluster: &str) -> Option<u64> {
        self.stays.get(cluster).map(|stays| stays.release).or_else(|| self.assigned_to(cluster))
    }

    /// Returns the number of the release that was last assigned to a cluster.
    pub fn assigned_to(&self, cluster: &str) -> Option<u64> {
        self.assigned.get(cluster).map(|one| one.release).or(self.good)
    }

    /// Returns the moment from which reports on a cluster's copies count. `None`: all of them count.
    pub fn reports_from(&self, cluster: &str) -> Option<Timestamp> {
        self.assigned.get(cluster).map(|one| one.at).or_else(|| self.awaited.get(cluster).copied())
    }

    /// Returns the number of the release that clusters go to.
    pub fn target(&self) -> u64 {
        let of_run = self.run.as_ref().filter(|run| run.finished.is_none()).map(|run| run.release);
        self.good.filter(|_| self.taken_back).or(of_run).unwrap_or(self.current.number)
    }

    /// Returns the number of the release that a picked cluster has; `None` for a cluster without a copy.
    pub fn of_pick(&self, pick: &Pick) -> Option<u64> {
        if pick.pending { None } else { self.of_cluster(&pick.cluster) }
    }

    /// Reports whether a picked cluster waits for its turn. Without releases, no rollout has begun.
    pub fn has_waiting(releases: Option<&Releases>, pick: &Pick) -> bool {
        releases.map_or(pick.pending, |releases| releases.is_waiting(pick))
    }

    /// Reports whether a picked cluster waits for its turn.
    pub fn is_waiting(&self, pick: &Pick) -> bool {
        let is_pinned = || self.stays.get(&*pick.cluster).is_some_and(|stays| stays.pinned);
        !pick.leaving && self.of_pick(pick) != Some(self.target()) && !is_pinned()
    }

    /// Returns a release that is still kept.
    pub fn get(&self, number: u64) -> Option<&Release> {
        self.all().find(|release| release.number == number)
    }

    /// Returns the newest proven release.
    pub fn good(&self) -> Option<&Release> {
        self.get(self.good?)
    }

    /// Reports whether every cluster has the current release and reported success.
    pub fn is_proven(&self) -> bool {
        self.good == Some(self.current.number)
    }

    /// Returns all releases that are kept, the current one last.
    pub fn all(&self) -> impl Iterator<Item = &Release> {
        self.earlier.iter().chain([&self.current])
    }
}

/// A stopped rollout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt {
    pub since: Timestamp,
    /// In plain words, with the member's own message.
    pub reason: String,
}

/// A member's verdict on one workload's copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyReport {
    /// The digest of the judged copies. The verdict counts only for these.
    pub digest: Digest,
    pub health: Health,
    /// The beginning of this verdict on these copies. `None` if there was no earlier look.
    pub since: Option<Timestamp>,
    /// The member's own message, unless it is a success.
    pub message: String,
}

/// The health of a workload's copies in one cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Assigned, without a report on this content yet.
    #[default]
    Applying,
    /// Applied, but not healthy yet.
    Progressing,
    Succeeded,
    Failed,
}

impl Health {
    /// The words of the stored form.
    pub const WORDS: [&str; 4] = ["applying", "progressing", "succeeded", "failed"];

    pub fn word(self) -> &'static str {
        Health::WORDS[self as usize]
    }

    pub fn of_word(word: &str) -> Option<Health> {
        [Health::Applying, Health::Progressing, Health::Succeeded, Health::Failed]
            .into_iter()
            .find(|health| health.word() == word)
    }
}

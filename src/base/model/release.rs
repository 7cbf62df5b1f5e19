//! Releases: the versions of a workload that clusters have during a rollout, and what proves them.

use std::collections::BTreeMap;

use jiff::Timestamp;

use super::content::ContentId;
use super::decision::Digest;
use super::key::Key;
use super::staged::RunProgress;

/// A workload's releases, as the rendered branch keeps them.
#[derive(Clone, Debug, PartialEq)]
pub struct Releases {
    pub key: Key,
    /// The release that is rolled out, or that all clusters have.
    pub current: Release,
    /// The newest release that all its clusters reported as a success, where that is another one.
    /// Clusters that join get it until their turn comes.
    pub good: Option<Release>,
    /// The last step's moment of each cluster that was told to take the current release. A cluster that is not
    /// here keeps what it has.
    pub told: BTreeMap<String, Timestamp>,
    /// Whether the current release was proven: every cluster reported success.
    pub proven: bool,
    /// The reason why the rollout does not go on, and since when.
    pub halted: Option<Halt>,
    /// The progress of a staged rollout.
    pub run: Option<RunProgress>,
}

/// One version of a workload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Release {
    /// Counted from 1 for each workload.
    pub number: u64,
    /// Of templates and overrides.
    pub version: Digest,
    /// The stored inputs, from which a copy can be rendered again.
    pub inputs: ContentId,
    /// The moment its rollout began.
    pub begun: Timestamp,
}

/// A rollout that does not go on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Halt {
    pub since: Timestamp,
    /// In plain words, with the member's own message.
    pub reason: String,
}

/// A member's verdict on one workload's copies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CopyReport {
    /// Of the copies that the verdict is about. It counts for these and no others.
    pub digest: Digest,
    pub health: Health,
    /// When this verdict on these copies began. `None` until somebody has looked before.
    pub since: Option<Timestamp>,
    /// The member's own words where it is no success.
    pub message: String,
}

/// The health of a workload's copies in one cluster.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Health {
    /// Told, and nothing is reported on this content yet.
    #[default]
    Applying,
    /// Applied, and not in order yet.
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

//! The values that a page is made from. Whoever reads them decides where they come from: a repository or a daemon.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use berth_base::model::{ClusterStatus, Digest, Fleet, Key, Map, Shared, Timestamp};
use berth_engine::causes::How;
use berth_engine::consequences::folded::FoldedPlan;
use berth_engine::plan::Counts;
use berth_engine::report::{ClusterLine, FleetSummary};
use berth_engine::rollouts::RolloutProgress;
use berth_engine::state::State;

use crate::form::Stamp;

/// Everything that a page shows.
#[derive(Clone, Debug)]
pub struct SiteInputs<'s> {
    /// The fleet's name.
    pub name: &'s str,
    /// The publication that the page shows.
    pub shown: Shown<'s>,
    /// The moment for which members were judged. The page does not show it.
    pub now: Timestamp,
    pub state: &'s State,
    /// The fleet behind the state. `None` if its source is not known.
    pub fleet: Option<&'s Fleet>,
    /// The members' reports. `None` for a past publication, or where no report was read.
    pub members: Option<Members<'s>>,
    /// By key.
    pub rollouts: &'s [RolloutProgress],
    /// The held removals of the source processed last.
    pub held: &'s [Held],
    pub source: SourceProgress,
    /// The newest first.
    pub history: &'s [Publication],
    /// A change that is not published yet, for the page of a pull request.
    pub change: Option<&'s PlannedChange>,
    pub links: Option<Links>,
    pub stamp: Stamp,
}

/// The publication that a page shows.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'s> {
    pub sequence: u64,
    pub commit: &'s str,
    pub source: Option<&'s str>,
    pub subject: &'s str,
    /// The moment of its decisions.
    pub moment: Timestamp,
    /// The date of its commit.
    pub published: Timestamp,
}

/// The members' reports, and what they mean.
#[derive(Clone, Copy, Debug)]
pub struct Members<'s> {
    pub summary: &'s FleetSummary,
    /// The lines of the summary as `berth status` shows them, by name.
    pub lines: &'s [ClusterLine],
    pub statuses: &'s Map<String, Shared<ClusterStatus>>,
}

/// A removal that waits for an approval.
#[derive(Clone, Debug)]
pub struct Held {
    pub key: Key,
    pub digest: Digest,
}

/// How far the source is processed.
#[derive(Clone, Debug, Default)]
pub struct SourceProgress {
    /// The number of errors in the source processed last.
    pub errors: usize,
    /// The source processed last.
    pub commit: Option<String>,
    /// The commits of the source branch that no pass has processed, and the branch.
    pub pending: Option<(usize, String)>,
}

/// One publication of the past.
#[derive(Clone, Debug, Default)]
pub struct Publication {
    pub sequence: u64,
    pub commit: String,
    pub parent: Option<String>,
    pub source: Option<String>,
    pub published: Timestamp,
    pub digest: Option<String>,
    /// The subject of the source commit, if this publication is the first of it.
    pub subject: Option<String>,
    /// The message of the commit, without its trailers.
    pub message: String,
    /// `None` if the publication before it is not known, as in a shallow clone.
    pub changes: Option<ChangeCounts>,
    /// The placements that it changed, each with the clusters whose copies it changed.
    pub touched: BTreeMap<Key, BTreeSet<Arc<str>>>,
    pub held: Vec<Held>,
    /// The trailers of used approvals.
    pub approvals: Vec<String>,
    /// The commit whose state it restores.
    pub rollback: Option<String>,
    /// Causes and consequences. `None` for older publications, and where the source is not known.
    pub explained: Option<FoldedPlan>,
}

/// A change that is not published: its first step, and the end that the steps lead to.
#[derive(Clone, Debug, Default)]
pub struct PlannedChange {
    /// The title of the plan: problems, held workloads, and the effect.
    pub title: String,
    /// The base and the change.
    pub words: String,
    /// The commit whose files the causes name.
    pub source: String,
    pub now: ChangeSide,
    /// The counts leave held changes out, the plan has them.
    pub end: ChangeSide,
    pub held: Vec<Held>,
    pub remarks: Vec<Remark>,
}

/// The changes until a step.
#[derive(Clone, Debug, Default)]
pub struct ChangeSide {
    pub counts: ChangeCounts,
    pub plan: FoldedPlan,
}

/// A part of a plan beside causes and consequences, such as problems, rollouts and deadlines: a heading with lines, each
/// with its mark.
#[derive(Clone, Debug, Default)]
pub struct Remark {
    pub heading: String,
    pub lines: Vec<(char, String)>,
}

/// Counts of changed files of clusters, and of the clusters that have them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ChangeCounts {
    pub removed: usize,
    pub changed: usize,
    pub added: usize,
    pub clusters: usize,
}

/// The addresses of files and commits at a forge: `{commit}`, `{file}` and `{line}` stand for the values.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Links {
    pub file: String,
    pub commit: String,
}

impl From<Counts> for ChangeCounts {
    fn from(counts: Counts) -> ChangeCounts {
        let Counts { removed, changed, added, clusters } = counts;
        ChangeCounts { removed, changed, added, clusters }
    }
}

impl SiteInputs<'_> {
    /// Returns the rollout of a workload, if it goes in steps.
    pub(crate) fn rollout(&self, key: &Key) -> Option<&RolloutProgress> {
        let index = self.rollouts.binary_search_by(|rollout| rollout.key.cmp(key)).ok()?;
        self.rollouts.get(index)
    }

    /// Returns the newest publication of the history that changed each placement.
    pub(crate) fn last_changes(&self) -> BTreeMap<&Key, &Publication> {
        let mut last = BTreeMap::new();
        for publication in self.history.iter().rev() {
            last.extend(publication.touched.keys().map(|key| (key, publication)));
        }
        last
    }
}

impl Links {
    /// Guesses the addresses at a forge from that of a repository there. Credentials in the address are left out.
    pub fn guess(repository: &str) -> Option<Links> {
        let (host, path) = host_and_path(repository)?;
        let path = path.trim_matches('/').trim_end_matches(".git");
        let base = format!("https://{host}/{path}");
        let has = |name: &str| host.contains(name);
        let (file, commit) = match () {
            () if path.is_empty() => return None,
            () if has("github") => ("blob", "commit"),
            () if has("gitlab") => ("-/blob", "-/commit"),
            () if has("gitea") || has("forgejo") || has("codeberg") => ("src/commit", "commit"),
            () => return None,
        };
        Some(Links {
            file: format!("{base}/{file}/{{commit}}/{{file}}#L{{line}}"),
            commit: format!("{base}/{commit}/{{commit}}"),
        })
    }
}

/// Returns the host and the path of a repository: `https://host/path` or `user@host:path`.
fn host_and_path(repository: &str) -> Option<(&str, &str)> {
    let (host, path) = match repository.split_once("://") {
        Some((_, rest)) => rest.split_once('/')?,
        None => repository.split_once(':')?,
    };
    let host = host.rsplit('@').next()?;
    // The port of ssh differs from that of the web server.
    let host = host.split(':').next()?;
    let is_host =
        !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-".contains(&byte));
    let is_path = path.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte));
    (is_host && is_path).then_some((host, path))
}

/// Describes how causes and a consequence relate, where it needs words.
pub(crate) fn words_of(how: How) -> Option<&'static str> {
    match how {
        How::Alone => None,
        How::Together => Some("only together"),
        How::Parts => Some("each a part of it"),
        How::Each => Some("each alone would do it"),
        How::Earlier => Some("an earlier edit, which had waited"),
        How::First => Some("the first publication"),
        How::Imported => Some("imported from a hub"),
        How::Untraced => Some("one of these"),
    }
}

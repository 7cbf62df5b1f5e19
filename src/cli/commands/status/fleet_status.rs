//! The status of a fleet as values: the publication, the source, and each cluster and workload.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::Serialize;

use crate::flags::state;
use crate::output::ui::Ui;
use crate::planning::rehearsal::{Revision, source_tip};
use crate::process::exit::CommandError;
use berth_base::diag::did_you_mean;
use berth_base::meta::parse_requirements;
use berth_base::model::{Digest, Map, MemberState, Timestamp};
use berth_base::text::counted;
use berth_engine::gate::messages::ALLOW_DELETE;
use berth_engine::gate::{HeldRecord, digest_of_all};
use berth_engine::release::stages::ClusterLabels;
use berth_engine::report::{ClusterLine, Detail, FleetSummary, PlacedLine, SummaryInputs, WorkloadLine};
use berth_git::shared_refs::{Refs, Statuses, read_statuses};
use berth_git::{CommitId, Repo};
use berth_hub::inputs::{LocatedState, PassInputs, Search, UnpublishedContents};
use berth_hub::publish::{ClusterRefCache, DifferingCache, differing};

/// The state of a cluster without problems.
pub(super) const IN_SYNC: &str = MemberState::InSync.word();
/// The state of a member that is behind and does not report.
pub(super) const NO_ANSWER: &str = "no answer";

/// Returns the members' statuses, and everything that they are compared with.
pub(crate) fn gather(repo: &Repo, located: &LocatedState, ui: &Ui) -> Result<SummaryInputs, CommandError> {
    let Statuses { by_cluster: statuses, diagnostics, .. } = read_statuses(repo, &located.refs)?;
    ui.diagnostics(&diagnostics);
    let (mut decisions, mut releases) = (Map::new(), Map::new());
    if let Some(current) = &located.current {
        ui.diagnostics(&current.foreign);
        decisions = current.state.decisions.clone();
        releases = current.state.releases.clone();
    }
    let listed = repo.list_refs(&located.refs.clusters)?;
    let published = ClusterRefCache::default().folders(repo, &listed)?.clone();
    let differing = differing(repo, &statuses, &published, &mut DifferingCache::default());
    Ok(SummaryInputs { statuses, published, differing, decisions, releases, now: ui.now() })
}

/// An overview of the fleet.
#[derive(Debug, Serialize)]
pub(crate) struct FleetStatus<'s> {
    pub rendered: Option<Rendered<'s>>,
    pub processed: Option<ProcessedSource>,
    pub pending: Option<Pending>,
    pub fleet: Shown,
    /// The first second at which a member that is behind counts as silent, if it does not report before.
    #[serde(skip)]
    pub next_silence: Option<i64>,
}

/// The clusters and workloads of a status.
#[derive(Debug, Serialize)]
pub(crate) struct Shown {
    /// By name.
    pub clusters: Vec<ShownCluster>,
    /// The number of clusters in each state.
    pub totals: BTreeMap<&'static str, usize>,
    /// Empty if only some clusters are shown.
    pub workloads: Vec<WorkloadLine>,
}

/// A cluster, with its workloads and problems if requested.
#[derive(Debug, Serialize)]
pub(crate) struct ShownCluster {
    #[serde(flatten)]
    pub line: ClusterLine,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub has: Option<OnCluster>,
}

/// Everything known about the objects in a cluster.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct OnCluster {
    pub workloads: Vec<PlacedLine>,
    pub problems: Vec<ObjectProblem>,
}

/// An object that differs from its wanted form, with the member's message.
#[derive(Debug, Serialize)]
pub(crate) struct ObjectProblem {
    pub object: String,
    pub message: String,
}

/// The current publication.
#[derive(Debug, Serialize)]
pub(crate) struct Rendered<'s> {
    #[serde(rename = "ref")]
    name: &'s str,
    pub commit: String,
    pub sequence: u64,
    pub source: Option<String>,
}

/// The source commit that the last pass read.
#[derive(Debug, Serialize)]
pub(crate) struct ProcessedSource {
    pub source: String,
    pub errors: usize,
    pub warnings: usize,
    /// The messages of the errors, if the commit is readable here.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub messages: Vec<String>,
    pub held: Vec<HeldWorkload>,
    #[serde(skip)]
    pub commit: CommitId,
}

/// A held workload, with the line that approves all of them and the line for it alone.
#[derive(Debug, Serialize)]
pub(crate) struct HeldWorkload {
    pub workload: String,
    pub approval: String,
    pub alone: String,
}

/// The commits of the source branch that no pass has processed.
#[derive(Debug, Serialize)]
pub(crate) struct Pending {
    pub branch: String,
    pub source: String,
    pub commits: usize,
}

impl<'s> FleetStatus<'s> {
    pub fn of(
        repo: &Repo,
        located: &'s LocatedState,
        gathered: SummaryInputs,
        selection: &Selection,
    ) -> Result<FleetStatus<'s>, CommandError> {
        let now = gathered.now;
        let summary = FleetSummary::of(gathered, Detail::Full);
        FleetStatus::of_summary(repo, located, (&summary, now), selection)
    }

    /// Returns the status of a fleet whose summary was made for a moment.
    pub fn of_summary(
        repo: &Repo,
        located: &'s LocatedState,
        (summary, now): (&FleetSummary, Timestamp),
        selection: &Selection,
    ) -> Result<FleetStatus<'s>, CommandError> {
        let (mut clusters, mut next_silence) = (Vec::new(), None::<i64>);
        let chosen = summary.clusters().values().filter(|line| selection.has(&line.name));
        for mut line in chosen.cloned() {
            let silent_from = tell_dead_from_behind(repo, &located.refs, &mut line, now)?;
            next_silence = next_silence.into_iter().chain(silent_from).min();
            let facts = located.current.as_ref().and_then(|current| current.state.facts.get(&line.name));
            line.unreachable_since = facts.and_then(|facts| facts.silent);
            line.frozen_since = facts.and_then(|facts| facts.frozen);
            let has = (*selection != Selection::All).then(|| OnCluster::of(summary, &line.name));
            clusters.push(ShownCluster { line, has });
        }
        let mut totals = BTreeMap::new();
        for cluster in &clusters {
            *totals.entry(cluster.line.state).or_default() += 1;
        }
        let workloads = match selection {
            Selection::All => summary.workloads().values().map(|line| (**line).clone()).collect(),
            _ => Vec::new(),
        };
        let rendered = located.current.as_ref().map(|current| Rendered {
            name: &located.refs.rendered,
            commit: current.commit.to_string(),
            sequence: current.trailers.seq,
            source: current.trailers.source.map(|source| source.to_string()),
        });
        let (mut processed, mut pending) = (None, None);
        if let Some(last) = &located.processed {
            pending = Pending::since(repo, located, last.source)?;
            processed = Some(ProcessedSource {
                source: last.source.to_string(),
                errors: last.errors,
                warnings: last.warnings,
                messages: Vec::new(),
                held: held(&last.held),
                commit: last.source,
            });
        }
        let fleet = Shown { clusters, totals, workloads };
        Ok(FleetStatus { rendered, processed, pending, fleet, next_silence })
    }

    /// Reads the source commit processed last again, to show its errors. Without the commit, only their number is
    /// known.
    pub fn name_errors(&mut self, path: &Path, repo: &Repo) {
        let Some(processed) = self.processed.as_mut().filter(|processed| processed.errors > 0) else {
            return;
        };
        if repo.has_commit(processed.commit) {
            processed.messages = errors_of(path, &processed.source).unwrap_or_default();
        }
    }
}

fn errors_of(path: &Path, source: &str) -> Result<Vec<String>, CommandError> {
    let inputs = PassInputs::revision(path, source, None, None, &Search::leniently())?;
    let built = inputs.build(&mut UnpublishedContents::naming(&inputs)?)?;
    Ok(built.diagnostics.errors().map(ToString::to_string).collect())
}

impl ShownCluster {
    /// Reports whether the cluster is in sync, with each of its workloads if these are known.
    pub fn is_in_sync(&self) -> bool {
        let workloads = self.has.iter().flat_map(|has| &has.workloads);
        self.line.state == IN_SYNC && workloads.into_iter().all(|one| one.state == IN_SYNC)
    }
}

impl OnCluster {
    pub fn of(summary: &FleetSummary, cluster: &str) -> OnCluster {
        let problems = summary.problems_on(cluster).iter().map(|problem| ObjectProblem {
            object: problem.object.to_string(),
            message: problem.message.clone(),
        });
        OnCluster { workloads: summary.placed_on(cluster), problems: problems.collect() }
    }
}

impl Pending {
    fn since(repo: &Repo, located: &LocatedState, seen: CommitId) -> Result<Option<Pending>, CommandError> {
        if !repo.has_commit(seen) {
            return Ok(None);
        }
        let Some(Revision { name, commit }) = source_tip(repo, located, None)? else { return Ok(None) };
        if commit == seen || !repo.is_same_or_after(commit, seen)? {
            return Ok(None);
        }
        let commits = repo.commits_between(seen, commit)?.len();
        Ok(Some(Pending { branch: name, source: commit.to_string(), commits }))
    }
}

/// The time in which a running member applies a new folder and reports.
const ANSWER_SECONDS: i64 = 60;

/// Marks a member that is behind as silent, if it has not reported for a while since its folder was published. Returns the
/// second from which it counts as silent, if that is later.
fn tell_dead_from_behind(
    repo: &Repo,
    refs: &Refs,
    cluster: &mut ClusterLine,
    now: Timestamp,
) -> Result<Option<i64>, CommandError> {
    let Some(reported) = cluster.reported else { return Ok(None) };
    let silent_for = |since: i64| now.as_second().saturating_sub(since);
    cluster.reported_seconds_ago = Some(silent_for(reported.as_second()).max(0));
    if cluster.state == MemberState::Behind.word()
        && let Some(commit) = repo.read_ref(&refs.cluster(&cluster.name))?
    {
        let since = repo.commit(commit)?.seconds.max(reported.as_second());
        if silent_for(since) <= ANSWER_SECONDS {
            return Ok(Some(since.saturating_add(ANSWER_SECONDS + 1)));
        }
        cluster.state = NO_ANSWER;
    }
    Ok(None)
}

fn held(lines: &[String]) -> Vec<HeldWorkload> {
    let records: Vec<HeldRecord> = lines.iter().filter_map(|line| line.parse().ok()).collect();
    let all = digest_of_all(&records.iter().map(|record| record.digest).collect());
    let line = |digest: Digest| format!("{ALLOW_DELETE}: {digest}");
    let one = |record: &HeldRecord| HeldWorkload {
        workload: record.key.to_string(),
        approval: line(all.unwrap_or(record.digest)),
        alone: line(record.digest),
    };
    records.iter().map(one).collect()
}

/// All clusters, or some of them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Selection {
    All,
    /// The clusters that the user named.
    Named(BTreeSet<String>),
    /// The clusters with the given labels.
    Labelled(BTreeSet<String>),
}

impl Selection {
    pub fn of(
        names: &[String],
        selector: Option<&str>,
        repo: &Repo,
        located: &LocatedState,
        gathered: &SummaryInputs,
    ) -> Result<Selection, CommandError> {
        let known: BTreeSet<&String> = gathered.published.keys().chain(gathered.statuses.keys()).collect();
        if let Some(missing) = names.iter().find(|name| !known.contains(name)) {
            let error = CommandError::usage(format!("no cluster `{missing}` in the published state"));
            let near = did_you_mean(missing, known.iter().map(|name| name.as_str()));
            return Err(error.hint(near.unwrap_or_else(|| {
                format!("choose one of {}; `berth status` lists all", counted(known.len(), "cluster"))
            })));
        }
        let names: BTreeSet<String> = names.iter().cloned().collect();
        let Some(selector) = selector else {
            return Ok(if names.is_empty() { Selection::All } else { Selection::Named(names) });
        };
        let selector = parse_requirements(selector)
            .map_err(|fault| CommandError::usage(format!("--selector: {fault}")))?;
        let Some(current) = &located.current else { return Ok(Selection::Labelled(names)) };
        let Some(inputs) = state::publication_inputs(repo, current, current) else {
            let error = CommandError::usage(
                "the labels of clusters are not known: the source of the current state is not in this clone",
            );
            return Err(error.hint("fetch the branch that people edit, or name clusters"));
        };
        let fleet = inputs.fleet();
        let labels = ClusterLabels::of(&fleet, &current.state.facts);
        let has = |name: &str| labels.get(name).is_some_and(|labels| selector.matches(labels));
        let mut chosen: BTreeSet<String> =
            fleet.clusters.keys().filter(|name| has(name)).map(|name| name.to_string()).collect();
        if !names.is_empty() {
            chosen.retain(|name| names.contains(name));
        }
        Ok(Selection::Labelled(chosen))
    }

    pub fn has(&self, cluster: &str) -> bool {
        match self {
            Selection::All => true,
            Selection::Named(names) | Selection::Labelled(names) => names.contains(cluster),
        }
    }
}

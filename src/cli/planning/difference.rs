//! The difference between a placement's published decision and the decision from its source now, with the edit behind
//! each cluster's change if it can be determined.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::flags::state::StateArgs;
use crate::output::results::as_text_or_null;
use crate::output::ui::{Tone, Ui};
use crate::process::exit::CommandError;
use berth_base::model::cluster::Cluster;
use berth_base::model::placement::{Follow, Source};
use berth_base::model::{Decision, Fleet, Key, Shared, Template};
use berth_base::text::counted;
use berth_engine::gate::{HeldRecord, messages::ALLOW_DELETE};
use berth_git::shared_refs::trailers::HELD;
use berth_git::{CommitId, Repo};
use berth_hub::inputs::current_state::{self, Place};
use berth_hub::inputs::{PassInputs, Search};
use berth_hub::publish::{self, Trailers};

/// The number of lines of one kind.
const SHOWN: usize = 20;

/// The number of other clusters' edits in a cause.
const OTHERS: usize = 3;

/// The number of publications with unreadable files to search beyond. Each requires reading a whole fleet.
const MOST_UNREADABLE: usize = 20;

/// The published state, and the source commits from which its decisions were made.
pub struct Published {
    path: PathBuf,
    repo: Repo,
    search: Search,
    tip: Option<CommitId>,
    held: Vec<HeldRecord>,
}

/// The changes of one placement, with their reasons.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Difference {
    /// The line that approves the held removal.
    pub held: Option<String>,
    /// The source commit that the published decision was made from, where it is known.
    #[serde(serialize_with = "as_text_or_null")]
    pub published_source: Option<CommitId>,
    /// The clusters that gain or lose the placement.
    pub clusters: Vec<ClusterDifference>,
}

/// A cluster that gains or loses a placement.
#[derive(Debug, Serialize)]
pub struct ClusterDifference {
    pub name: String,
    pub change: GainOrLoss,
    pub cause: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum GainOrLoss {
    #[serde(rename = "removed")]
    Loss,
    #[serde(rename = "added")]
    Gain,
}

impl Published {
    /// Reads the published state of a folder; `None` if nothing is published, or there is no repository.
    pub fn of(
        inputs: &PassInputs,
        path: &Path,
        state: &StateArgs,
    ) -> Result<Option<Published>, CommandError> {
        if inputs.current.decisions.is_empty() {
            return Ok(None);
        }
        let Ok(repo) = Repo::open(path) else { return Ok(None) };
        let search = Search { first: true, ..state.search(path)? };
        let Place { refs, commit: tip, .. } = current_state::locate(&repo, &search)?;
        let processed = publish::read_processed(&repo, &refs)?;
        let lines = processed.map(|processed| processed.held).unwrap_or_default();
        let held = lines.iter().filter_map(|line| line.parse().ok()).collect();
        Ok(Some(Published { path: path.to_owned(), repo, search, tip, held }))
    }

    /// Compares the published decision with the next one; `None` if both pick the same clusters.
    pub fn difference(
        &self,
        key: &Key,
        published: Option<&Decision>,
        next: Option<&Decision>,
        fleet: &Fleet,
    ) -> Result<Option<Difference>, CommandError> {
        let names = |decision: Option<&Decision>| -> BTreeSet<String> {
            decision.into_iter().flat_map(|it| it.picks.iter()).map(|pick| pick.cluster.to_string()).collect()
        };
        let (before, after) = (names(published), names(next));
        if before == after || published.is_none() {
            return Ok(None);
        }
        let held = self.held.iter().find(|record| record.key == *key);
        let (since, earlier) = self.earlier(key)?;
        let picked: BTreeSet<String> = before.union(&after).cloned().collect();
        let why = |cluster: &String| match &earlier {
            Some(earlier) => cause(key, cluster, [earlier, fleet], &picked),
            None => "the source of the published decision is not in this repository".to_owned(),
        };
        let clusters = before.symmetric_difference(&after);
        let difference = |name: &String| ClusterDifference {
            name: name.clone(),
            change: if after.contains(name) { GainOrLoss::Gain } else { GainOrLoss::Loss },
            cause: why(name),
        };
        Ok(Some(Difference {
            held: held.map(|record| format!("{ALLOW_DELETE}: {}", record.digest)),
            published_source: since,
            clusters: clusters.map(difference).collect(),
        }))
    }

    /// Returns the source commit of the published decision, and its fleet if this repository has it.
    fn earlier(&self, key: &Key) -> Result<(Option<CommitId>, Option<Shared<Fleet>>), CommandError> {
        let mut from = self.tip;
        let mut left = MOST_UNREADABLE;
        loop {
            let Some((source, before)) = self.source_of(key, from)? else { return Ok((None, None)) };
            if !self.repo.has_commit(source) {
                return Ok((Some(source), None));
            }
            let fleet =
                PassInputs::revision(&self.path, &source.to_string(), None, None, &self.search)?.fleet();
            // If its file was unreadable, the decision was made from an older form.
            let file = fleet.placements.get(key).map(|placement| &*placement.origin.file);
            let is_older =
                fleet.doubt.everything || file.is_some_and(|file| fleet.doubt.files.contains(file));
            if !is_older || before.is_none() || left == 0 {
                return Ok((Some(source), Some(fleet)));
            }
            (from, left) = (before, left - 1);
        }
    }

    /// Returns the source commit of the newest publication, from here on, in which the placement was not held, and
    /// the publication before it.
    fn source_of(
        &self,
        key: &Key,
        from: Option<CommitId>,
    ) -> Result<Option<(CommitId, Option<CommitId>)>, CommandError> {
        let mut next = from;
        while let Some(commit) = next {
            let info = self.repo.commit(commit)?;
            let Some(trailers) = Trailers::read(&info.message) else { return Ok(None) };
            let is_held = trailers
                .others
                .iter()
                .filter(|(name, _)| name == HELD)
                .any(|(_, line)| line.parse::<HeldRecord>().is_ok_and(|record| record.key == *key));
            next = info.parents.first().copied().filter(|parent| self.repo.has_commit(*parent));
            if !is_held {
                return Ok(trailers.source.map(|source| (source, next)));
            }
        }
        Ok(None)
    }
}

/// Describes the edit of a placement.
fn placement_edit(key: &Key, [before, after]: [&Fleet; 2]) -> Option<String> {
    match (before.placements.get(key), after.placements.get(key)) {
        (Some(was), None) => Some(format!("{key} is no longer described; it was in {}", was.origin.file)),
        (None, Some(is)) => Some(format!("{key} is new in {}", is.origin.file)),
        (Some(was), Some(is)) => {
            let names = |follow: &Follow| -> Vec<String> {
                follow.placements.iter().map(|one| one.describe()).collect()
            };
            let is_same = match (&was.source, &is.source) {
                (Source::Own(was), Source::Own(now)) => was.text == now.text,
                (Source::Follows(was), Source::Follows(now)) => names(was) == names(now),
                _ => false,
            };
            (!is_same).then(|| format!("{key} was edited in {}", is.origin))
        }
        (None, None) => None,
    }
}

/// Returns the edit that changed the cluster's part, as far as both sources show it. `picked` are the clusters that
/// the placement picked before or picks now.
pub(crate) fn cause(
    key: &Key,
    cluster: &str,
    [before, after]: [&Fleet; 2],
    picked: &BTreeSet<String>,
) -> String {
    let edited = |key: &Key| placement_edit(key, [before, after]);
    let mut causes: Vec<String> = edited(key).into_iter().collect();
    let edits_of =
        |cluster: &str, name: &str| match (before.clusters.get(cluster), after.clusters.get(cluster)) {
            (Some(was), None) => vec![format!("{name} left the inventory; it was in {}", files(was))],
            (None, Some(is)) => vec![format!("{name} is new in {}", files(is))],
            (Some(was), Some(is)) => cluster_edits(was, is),
            (None, None) => Vec::new(),
        };
    causes.extend(edits_of(cluster, "the cluster"));
    let Some(placement) = after.placements.get(key) else { return causes.join("; ") };
    let (filters, followed): (&[_], &[_]) = match &placement.source {
        Source::Own(policy) => (&policy.filters, &[]),
        Source::Follows(follow) => (&follow.filters, &follow.placements),
    };
    let asked_by: BTreeSet<&Key> = filters.iter().filter_map(|filter| filter.by.as_ref()).collect();
    causes.extend(asked_by.into_iter().filter_map(edited));
    for followed in followed.iter().filter_map(|wanted| after.find(wanted)) {
        causes.extend(edited(&followed.key));
    }
    if causes.is_empty() {
        // Replicas and places are distributed among all clusters that the placement picks.
        let others = picked.iter().filter(|other| *other != cluster);
        let mut edits = others.flat_map(|other| {
            let name = format!("cluster `{other}`");
            edits_of(other, &name).into_iter().map(move |edit| match edit.starts_with(&name) {
                true => edit,
                false => format!("{name}: {edit}"),
            })
        });
        causes.extend(edits.by_ref().take(OTHERS));
        causes.extend(edits.next().map(|_| "edits of further clusters".to_owned()));
    }
    if causes.is_empty() {
        return "neither the placement nor a cluster that it picks was edited: the cause is a status, a deadline or \
                another placement"
            .to_owned();
    }
    causes.join("; ")
}

/// Returns the edit of a workload's objects, which may change its clusters' numbers of replicas.
pub(crate) fn template_edit(key: &Key, before: &Fleet, after: &Fleet) -> Option<String> {
    let (was, is) = (before.workloads.get(key)?, after.workloads.get(key)?);
    let object = |template: &Template| (template.object.id.clone(), template.object.content.clone());
    let was: Vec<_> = was.templates.iter().map(object).collect();
    let edited = is.templates.iter().find(|template| !was.contains(&object(template)))?;
    Some(format!("{} was edited in {}", edited.object.id, edited.object.origin))
}

fn files(cluster: &Cluster) -> String {
    cluster.origins.iter().map(|origin| origin.file.to_string()).collect::<Vec<_>>().join(", ")
}

/// Describes the differing labels, claims and taints.
fn cluster_edits(was: &Cluster, is: &Cluster) -> Vec<String> {
    let mut edits = Vec::new();
    for (what, was, is) in [("label", &was.labels, &is.labels), ("claim", &was.claims, &is.claims)] {
        edits.extend(changed_keys(was, is).into_iter().map(|(key, change)| format!("{what} {key} {change}")));
    }
    let taints = |cluster: &Cluster| -> BTreeMap<String, String> {
        let text = |taint: &berth_base::model::cluster::Taint| {
            (taint.key.clone(), format!("{}:{}", taint.value, taint.effect_word))
        };
        cluster.taints.iter().map(text).collect()
    };
    let (old, new) = (taints(was), taints(is));
    let taints = changed_keys(&old, &new);
    edits.extend(taints.into_iter().map(|(key, change)| format!("taint {key} {change}")));
    if was.leaving != is.leaving {
        edits.push(if is.leaving { "the cluster is being removed" } else { "the cluster stays" }.to_owned());
    }
    let place = files(is);
    edits.into_iter().map(|edit| format!("{edit} ({place})")).collect()
}

fn changed_keys<'a>(
    was: &'a BTreeMap<String, String>,
    is: &'a BTreeMap<String, String>,
) -> Vec<(&'a String, String)> {
    let keys: BTreeSet<&String> = was.keys().chain(is.keys()).collect();
    let change = |key: &String| match (was.get(key), is.get(key)) {
        (Some(was), Some(is)) if was != is => Some(format!("was `{was}`, is `{is}`")),
        (Some(was), None) => Some(format!("was `{was}`, is removed")),
        (None, Some(is)) => Some(format!("is new: `{is}`")),
        _ => None,
    };
    keys.into_iter().filter_map(|key| Some((key, change(key)?))).collect()
}

impl Difference {
    /// Describes the held removal, and clusters grouped by cause.
    pub fn text(&self, ui: &Ui) -> String {
        let mut text = String::from("\n");
        if let Some(approval) = &self.held {
            let line = format!("held: the current decision stays until approved by `{approval}`");
            let _ = writeln!(text, "{}", ui.tint(&line, Tone::Bad));
        }
        let since = self
            .published_source
            .map(|commit| format!(" from source {}", commit.short()))
            .unwrap_or_default();
        let _ = writeln!(text, "differs from the current decision{since}:");
        let mut grouped: BTreeMap<(GainOrLoss, &str), Vec<&str>> = BTreeMap::new();
        for ClusterDifference { name, change, cause } in &self.clusters {
            grouped.entry((*change, cause)).or_default().push(name);
        }
        for ((change, why), clusters) in &grouped {
            let sign = match change {
                GainOrLoss::Gain => ui.tint("+", Tone::Good),
                GainOrLoss::Loss => ui.tint("-", Tone::Bad),
            };
            let more = clusters.len().saturating_sub(SHOWN);
            let mut names = clusters.iter().take(SHOWN).copied().collect::<Vec<_>>().join(", ");
            if more > 0 {
                let _ = write!(names, " and {}", counted(more, "other"));
            }
            let _ = writeln!(text, "  {sign} {names}: {why}");
        }
        text
    }
}

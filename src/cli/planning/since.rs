//! Changes of a placement since a revision of the source: its decision then and now, cluster by cluster.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use serde::{Serialize, Serializer};

use super::difference::{cause, template_edit};
use crate::flags::state;
use crate::output::results::as_text;
use crate::output::ui::{Tone, Ui};
use crate::process::exit::CommandError;
use berth_base::diag::harmless_line;
use berth_base::model::{Decision, Fleet, Key, Map, Shared, Timestamp};
use berth_base::text::{counted, some_of};
use berth_engine::decide::{self, Trace};
use berth_engine::pipeline;
use berth_git::{CommitId, Repo};
use berth_hub::inputs::gate::rules_of;
use berth_hub::inputs::{PassInputs, Rendering, Search, SourceCommit, current_state};
use berth_hub::publish::{CurrentState, Trailers};

/// The number of clusters in a line.
const NAMES: usize = 10;

/// A revision of the source with its decisions: the published ones or, if the revision was never published, those
/// that follow from its files and the facts of the preceding publication.
pub(crate) struct Then {
    commit: CommitId,
    subject: String,
    /// The sequence of the publication with the facts.
    sequence: Option<u64>,
    inputs: PassInputs,
    fleet: Shared<Fleet>,
    decisions: Map<Key, Decision>,
}

/// One placement's changes.
#[derive(Debug)]
pub(crate) struct Since {
    words: String,
    commit: CommitId,
    sequence: Option<u64>,
    /// The number of clusters picked then; `None` if the placement did not exist.
    picked: Option<usize>,
    clusters: Vec<ClusterChange>,
}

/// A cluster that was added or removed, or has another number of replicas.
#[derive(Debug)]
struct ClusterChange {
    name: String,
    what: ChangeKind,
    /// The reasons for picking the cluster or not.
    then: String,
    now: String,
    /// The edit behind the change, as far as both sources show it.
    cause: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ChangeKind {
    Lost,
    Gained,
    Replicas(Option<i64>, Option<i64>),
}

impl Then {
    /// Reads a revision of the source.
    pub fn read(path: &Path, search: &Search, revision: &str) -> Result<Then, CommandError> {
        let repo = Repo::open(path)?;
        let commit = repo.require(revision)?;
        let place = current_state::locate(&repo, &Search { first: true, ..search.clone() })?;
        let published = match place.commit {
            Some(tip) => publication_of(&repo, tip, commit)?,
            None => None,
        };
        let published =
            published.map(|id| state::read_publication(&repo, &place.refs.rendered, id)).transpose()?;
        let (facts, now, rules) = match &published {
            Some(CurrentState { state, trailers, .. }) => {
                (state.facts.clone(), trailers.now.unwrap_or_default(), rules_of(trailers, commit))
            }
            None => (Map::new(), Timestamp::MIN, None),
        };
        let source = SourceCommit { repo: &repo, commit, rules, current: published.as_ref() };
        let inputs = PassInputs::recorded(source, facts, now, &Rendering::Now)?;
        let (loaded, decided, _) = inputs.decide();
        Ok(Then {
            commit,
            subject: repo.commit(commit)?.subject().to_owned(),
            sequence: published.map(|published| published.trailers.seq),
            inputs,
            fleet: loaded.fleet,
            decisions: decided.decisions,
        })
    }

    /// Compares a placement's decision with the present one, given by its trace and fleet.
    pub fn compared(&self, key: &Key, trace: &Trace, now: Option<&Decision>, fleet: &Fleet) -> Since {
        let then = self.decisions.get(key);
        let inputs = &self.inputs;
        let statuses = pipeline::with_first_seen(&inputs.current, &inputs.reports.statuses);
        let traced = decide::explain(&self.fleet, &inputs.current.decisions, &statuses, inputs.now, key);
        let names = |decision: Option<&Decision>| -> BTreeSet<String> {
            decision.into_iter().flat_map(Decision::picked).map(|pick| pick.cluster.to_string()).collect()
        };
        let (before, after) = (names(then), names(now));
        let picked: BTreeSet<String> = before.union(&after).cloned().collect();
        let replicas = |decision: Option<&Decision>, name: &str| decision?.pick(name)?.replicas;
        let change = |name: &String| {
            let what = match (before.contains(name), after.contains(name)) {
                (true, false) => ChangeKind::Lost,
                (false, true) => ChangeKind::Gained,
                _ => {
                    let (before, after) = (replicas(then, name), replicas(now, name));
                    (before != after).then_some(ChangeKind::Replicas(before, after))?
                }
            };
            let fleets = [&*self.fleet, fleet];
            let of_template = match what {
                ChangeKind::Replicas(..) => template_edit(key, fleets[0], fleets[1]),
                ChangeKind::Lost | ChangeKind::Gained => None,
            };
            Some(ClusterChange {
                what,
                then: reason(traced.as_ref(), name, !self.fleet.clusters.contains_key(name)),
                now: reason(Some(trace), name, !fleet.clusters.contains_key(name)),
                cause: of_template.unwrap_or_else(|| cause(key, name, fleets, &picked)),
                name: name.clone(),
            })
        };
        Since {
            words: format!("{} ({})", self.commit.short(), self.subject),
            commit: self.commit,
            sequence: self.sequence,
            picked: then.map(|_| before.len()),
            clusters: picked.iter().filter_map(change).collect(),
        }
    }
}

/// Returns the publication of a source commit, or of the nearest earlier commit.
fn publication_of(repo: &Repo, tip: CommitId, source: CommitId) -> Result<Option<CommitId>, CommandError> {
    for commit in repo.first_parents(tip) {
        let published = Trailers::read(&commit.message).and_then(|trailers| trailers.source);
        if let Some(published) = published.filter(|published| repo.has_commit(*published))
            && repo.is_same_or_after(source, published)?
        {
            return Ok(Some(commit.id));
        }
    }
    Ok(None)
}

fn reason(trace: Option<&Trace>, cluster: &str, is_unknown: bool) -> String {
    let Some(trace) = trace else { return "there was no such placement".to_owned() };
    let traced = trace.clusters.iter().find(|one| one.cluster == cluster);
    match traced {
        _ if is_unknown => "not in the fleet".to_owned(),
        Some(traced) if !traced.reason.is_empty() => traced.reason.clone(),
        Some(traced) if traced.picked => "picked".to_owned(),
        _ => "not picked".to_owned(),
    }
}

impl Since {
    /// Keeps only one cluster.
    pub fn narrow(&mut self, cluster: &str) {
        self.clusters.retain(|one| one.name == cluster);
    }

    /// Describes the changes, with equal clusters grouped.
    pub fn text(&self, ui: &Ui) -> String {
        let number = self.sequence.map_or_else(String::new, |number| format!(", number {number}"));
        let picked = match self.picked {
            Some(picked) => format!("picked {}", counted(picked, "cluster")),
            None => "did not exist".to_owned(),
        };
        let title = harmless_line(&format!("since {}{number}, when it {picked}", self.words)).into_owned();
        let mut text = format!("\n{}\n", ui.tint(&title, Tone::Strong));
        if self.clusters.is_empty() {
            text.push_str("  the same clusters\n");
        }
        let mut grouped: BTreeMap<(ChangeKind, &str, &str, &str), Vec<&str>> = BTreeMap::new();
        for one in &self.clusters {
            grouped.entry((one.what, &one.then, &one.now, &one.cause)).or_default().push(&one.name);
        }
        for ((what, then, now, cause), clusters) in grouped {
            let names = some_of(&clusters, NAMES);
            let line = match what {
                ChangeKind::Lost => ui.tint(&format!("  - {names}"), Tone::Bad),
                ChangeKind::Gained => ui.tint(&format!("  + {names}"), Tone::Good),
                ChangeKind::Replicas(before, after) => {
                    let number = |number: Option<i64>| number.map_or("none".to_owned(), |it| it.to_string());
                    ui.tint(
                        &format!("  ~ {names}: {} → {} replicas", number(before), number(after)),
                        Tone::Warn,
                    )
                }
            };
            let _ = writeln!(text, "{line}");
            for (label, words) in [("then", then), ("now", now), ("cause", cause)] {
                let _ = writeln!(text, "      {label}: {}", harmless_line(words));
            }
        }
        text
    }
}

/// A placement's changes, for programs.
#[derive(Serialize)]
struct SinceForm<'a> {
    #[serde(serialize_with = "as_text")]
    commit: CommitId,
    publication: Option<u64>,
    picked: Option<usize>,
    clusters: Vec<ClusterChangeForm<'a>>,
}

#[derive(Serialize)]
struct ClusterChangeForm<'a> {
    name: &'a str,
    change: &'static str,
    replicas: Option<ReplicasChange>,
    then: &'a str,
    now: &'a str,
    cause: &'a str,
}

#[derive(Serialize)]
struct ReplicasChange {
    then: Option<i64>,
    now: Option<i64>,
}

impl Serialize for Since {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Since { words: _, commit, sequence, picked, clusters } = self;
        let form = SinceForm {
            commit: *commit,
            publication: *sequence,
            picked: *picked,
            clusters: clusters.iter().map(ClusterChangeForm::of).collect(),
        };
        form.serialize(serializer)
    }
}

impl<'a> ClusterChangeForm<'a> {
    fn of(one: &'a ClusterChange) -> ClusterChangeForm<'a> {
        let (change, replicas) = match one.what {
            ChangeKind::Lost => ("removed", None),
            ChangeKind::Gained => ("added", None),
            ChangeKind::Replicas(then, now) => ("replicas", Some(ReplicasChange { then, now })),
        };
        let ClusterChange { name, what: _, then, now, cause } = one;
        ClusterChangeForm { name, change, replicas, then, now, cause }
    }
}

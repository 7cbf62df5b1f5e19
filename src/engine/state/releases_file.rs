//! A workload's releases ↔ the text of their file on the rendered branch.
//!
//! The inputs of release 7 have their own file, `7.yaml` in the folder beside it. Clusters are grouped, so
//! that a step changes few lines.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::decision::{ClusterNames, MetadataForm, NameForm};
use berth_base::model::release::{Assignment, Halt, Release, Releases, Stays};
use berth_base::model::rollout::{Amount, StageTask};
use berth_base::model::staged::{RunProgress, StageCluster, StageProgress};
use berth_base::model::{API_VERSION, ContentId, Key, Timestamp, path};
use berth_base::yaml;

const KIND: &str = "Releases";

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReleasesForm {
    api_version: String,
    kind: String,
    #[serde(default = "first", skip_serializing_if = "is_first")]
    format: u64,
    metadata: MetadataForm,
    workload: NameForm,
    current: ReleaseForm,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    good: Option<u64>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    earlier: Vec<ReleaseForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    assigned: Vec<AssignmentForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    stays: Vec<StaysForm>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    taken_back: bool,
    #[serde(default, skip_serializing_if = "is_zero")]
    restarts: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    halted: Option<HaltForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<RunForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    removing: Vec<SinceForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    awaited: Vec<SinceForm>,
}

#[derive(Serialize, Deserialize)]
struct ReleaseForm {
    number: u64,
    begun: Timestamp,
}

/// The clusters to which one release was assigned at one moment.
#[derive(Serialize, Deserialize)]
struct AssignmentForm {
    release: u64,
    at: Timestamp,
    #[serde(flatten)]
    clusters: ClusterNames<String>,
}

/// The clusters that have one release without an assignment.
#[derive(Serialize, Deserialize)]
struct StaysForm {
    release: u64,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pinned: bool,
    #[serde(flatten)]
    clusters: ClusterNames<String>,
}

/// The clusters that lost or got their copies at one moment.
#[derive(Serialize, Deserialize)]
struct SinceForm {
    at: Timestamp,
    #[serde(flatten)]
    clusters: ClusterNames<String>,
}

#[derive(Serialize, Deserialize)]
struct HaltForm {
    since: Timestamp,
    reason: String,
}

#[derive(Serialize, Deserialize)]
struct RunForm {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    run: Option<NameForm>,
    release: u64,
    begun: Timestamp,
    stages: Vec<StageForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finished: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    ended: Vec<NameForm>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StageForm {
    name: String,
    /// A number, or a share such as `25%`.
    max_concurrency: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    before: Vec<TaskForm>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    after: Vec<TaskForm>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    updated: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    finished: Option<Timestamp>,
    /// In the order of their turns.
    clusters: Vec<StageClusterForm>,
}

#[derive(Serialize, Deserialize)]
enum TaskForm {
    Approval,
    /// In seconds.
    TimedWait(i64),
}

#[derive(Serialize, Deserialize)]
struct StageClusterForm {
    name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    started: Option<Timestamp>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    succeeded: Option<Timestamp>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

fn first() -> u64 {
    1
}

fn is_first(format: &u64) -> bool {
    *format == first()
}

/// Returns the path of a workload's releases in their folder.
pub fn file(key: &Key) -> String {
    path::of_key(key)
}

/// Returns the path of one release's inputs in the same folder.
pub fn inputs_file(key: &Key, number: u64) -> String {
    inputs_beside(&file(key), number)
}

/// Returns the path of inputs. The releases of `web` have the file `web.yaml`, so the inputs of a workload
/// named `web.yaml` use another folder.
fn inputs_beside(file: &str, number: u64) -> String {
    let stem = file.strip_suffix(".yaml").unwrap_or(file);
    let apart = if stem.ends_with(".yaml") { "~" } else { "" };
    format!("{stem}{apart}/{number}.yaml")
}

/// Splits a path of inputs into the releases' file and the number; `None` for any other path.
pub fn of_inputs_file(path: &str) -> Option<(String, u64)> {
    let (folder, number) = path.rsplit_once('/')?;
    let number = number.strip_suffix(".yaml")?.parse().ok()?;
    let stem = folder.strip_suffix('~').unwrap_or(folder);
    let file = format!("{stem}.yaml");
    (folder.contains('/') && inputs_beside(&file, number) == path).then_some((file, number))
}

/// Returns the text of the file.
pub fn write(releases: &Releases) -> String {
    let key = &releases.key;
    let (assigned, stays) = (alike(&releases.assigned), alike(&releases.stays));
    let form = ReleasesForm {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        format: first(),
        metadata: MetadataForm::of(key),
        workload: NameForm::of_key(key),
        current: ReleaseForm::of(&releases.current),
        good: releases.good,
        earlier: releases.earlier.iter().map(ReleaseForm::of).collect(),
        assigned: assigned
            .into_iter()
            .map(|(Assignment { release, at }, names)| AssignmentForm {
                release,
                at,
                clusters: ClusterNames::of(names),
            })
            .collect(),
        stays: stays
            .into_iter()
            .map(|(Stays { release, pinned }, names)| StaysForm {
                release,
                pinned,
                clusters: ClusterNames::of(names),
            })
            .collect(),
        taken_back: releases.taken_back,
        restarts: releases.restarts,
        halted: releases
            .halted
            .as_ref()
            .map(|halt| HaltForm { since: halt.since, reason: halt.reason.clone() }),
        run: releases.run.as_ref().map(RunForm::of),
        removing: SinceForm::of(&releases.removing),
        awaited: SinceForm::of(&releases.awaited),
    };
    yaml::emit(&serde_json::to_value(form).expect("texts, numbers and lists always are JSON"))
}

/// Groups clusters by equal values.
fn alike<T: Copy + Ord>(clusters: &BTreeMap<String, T>) -> BTreeMap<T, Vec<String>> {
    let mut alike: BTreeMap<T, Vec<String>> = BTreeMap::new();
    for (cluster, one) in clusters {
        alike.entry(*one).or_default().push(cluster.clone());
    }
    alike
}

/// Reads the file, given the ids of its releases' inputs by number; the error is one line.
pub fn read(bytes: &[u8], inputs: &BTreeMap<u64, ContentId>) -> Result<Releases, String> {
    let value = yaml::read_stored(bytes)?.to_json();
    let form = ReleasesForm::deserialize(value).map_err(|error| error.to_string())?;
    if form.api_version != API_VERSION || form.kind != KIND {
        return Err(format!("it is a {} {}, not a {API_VERSION} {KIND}", form.api_version, form.kind));
    }
    let release = |form: ReleaseForm| match inputs.get(&form.number) {
        Some(id) => Ok(Release { number: form.number, begun: form.begun, inputs: *id }),
        None => Err(format!("the inputs of release {} are missing", form.number)),
    };
    let mut assigned = BTreeMap::new();
    for one in form.assigned {
        let at = Assignment { release: one.release, at: one.at };
        assigned.extend(one.clusters.into_iter().map(|cluster| (cluster, at)));
    }
    let mut stays = BTreeMap::new();
    for StaysForm { release, pinned, clusters } in form.stays {
        stays.extend(clusters.into_iter().map(|cluster| (cluster, Stays { release, pinned })));
    }
    if !is_first(&form.format) {
        return Err(format!("it has the format {}, which this berth does not know", form.format));
    }
    Ok(Releases {
        key: form.workload.key(),
        current: release(form.current)?,
        good: form.good,
        earlier: form.earlier.into_iter().map(release).collect::<Result<_, _>>()?,
        assigned,
        stays,
        taken_back: form.taken_back,
        restarts: form.restarts,
        halted: form.halted.map(|halt| Halt { since: halt.since, reason: halt.reason }),
        run: form.run.map(RunForm::read).transpose()?,
        removing: SinceForm::read(form.removing),
        awaited: SinceForm::read(form.awaited),
    })
}

impl ReleaseForm {
    fn of(release: &Release) -> ReleaseForm {
        ReleaseForm { number: release.number, begun: release.begun }
    }
}

impl SinceForm {
    fn of(clusters: &BTreeMap<String, Timestamp>) -> Vec<SinceForm> {
        let groups = alike(clusters).into_iter();
        groups.map(|(at, names)| SinceForm { at, clusters: ClusterNames::of(names) }).collect()
    }

    fn read(forms: Vec<SinceForm>) -> BTreeMap<String, Timestamp> {
        let of_group =
            |SinceForm { at, clusters }: SinceForm| clusters.into_iter().map(move |cluster| (cluster, at));
        forms.into_iter().flat_map(of_group).collect()
    }
}

impl RunForm {
    fn of(run: &RunProgress) -> RunForm {
        RunForm {
            run: run.run.as_ref().map(NameForm::of_key),
            release: run.release,
            begun: run.begun,
            stages: run.stages.iter().map(StageForm::of).collect(),
            finished: run.finished,
            ended: run.ended.iter().map(NameForm::of_key).collect(),
        }
    }

    fn read(self) -> Result<RunProgress, String> {
        Ok(RunProgress {
            run: self.run.map(|run| run.key()),
            release: self.release,
            begun: self.begun,
            stages: self.stages.into_iter().map(StageForm::read).collect::<Result<_, _>>()?,
            finished: self.finished,
            ended: self.ended.iter().map(NameForm::key).collect(),
        })
    }
}

impl StageForm {
    fn of(stage: &StageProgress) -> StageForm {
        let cluster = |one: &StageCluster| StageClusterForm {
            name: one.name.clone(),
            started: one.started,
            succeeded: one.succeeded,
        };
        StageForm {
            name: stage.name.clone(),
            max_concurrency: match stage.at_a_time {
                Amount::Count(count) => count.to_string(),
                Amount::Percent(percent) => format!("{percent}%"),
            },
            before: stage.before.iter().map(TaskForm::of).collect(),
            after: stage.after.iter().map(TaskForm::of).collect(),
            started: stage.started,
            updated: stage.updated,
            finished: stage.finished,
            clusters: stage.clusters.iter().map(cluster).collect(),
        }
    }

    fn read(self) -> Result<StageProgress, String> {
        let amount = |text: &str| match text.strip_suffix('%') {
            Some(percent) => percent.parse().ok().map(Amount::Percent),
            None => text.parse().ok().map(Amount::Count),
        };
        let no_amount =
            || format!("maxConcurrency is `{}`, which is no number or share", self.max_concurrency);
        let cluster = |one: StageClusterForm| StageCluster {
            name: one.name,
            started: one.started,
            succeeded: one.succeeded,
        };
        Ok(StageProgress {
            at_a_time: amount(&self.max_concurrency).ok_or_else(no_amount)?,
            name: self.name,
            before: self.before.into_iter().map(TaskForm::read).collect(),
            after: self.after.into_iter().map(TaskForm::read).collect(),
            clusters: self.clusters.into_iter().map(cluster).collect(),
            started: self.started,
            updated: self.updated,
            finished: self.finished,
        })
    }
}

impl TaskForm {
    fn of(task: &StageTask) -> TaskForm {
        match task {
            StageTask::Approval => TaskForm::Approval,
            StageTask::Wait(seconds) => TaskForm::TimedWait(*seconds),
        }
    }

    fn read(self) -> StageTask {
        match self {
            TaskForm::Approval => StageTask::Approval,
            TaskForm::TimedWait(seconds) => StageTask::Wait(seconds),
        }
    }
}

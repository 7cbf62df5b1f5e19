//! The status of a placement, as its hub shows it.
//!
//! Each picked cluster passes the same conditions in order, and stops at the first that is not true. The
//! placement's own conditions sum them up.

use serde_json::{Value as Json, json};

use super::kinds::{NEXT_GROUP, PLACEMENT_GROUP};
use super::placement_policy;
use crate::dialects::Described;
use crate::dialects::described::condition_json;
use berth_base::model::annotation::APPLY;
use berth_base::model::object::{group_of, version_of};
use berth_base::model::placement::Selection;
use berth_base::model::release::Health;
use berth_base::model::status::{Problem, ProblemKind};
use berth_base::model::{API_VERSION, Key, Member, MemberState, ObjectId, Override, Pick, Workload};

/// The conditions after Scheduled, with the placement's own reasons for True, False and Unknown.
const LATER: [(&str, [&str; 3]); 5] = [
    ("RolloutStarted", ["RolloutStarted", "RolloutNotStartedYet", "RolloutStartedUnknown"]),
    ("Overridden", ["OverriddenSucceeded", "OverriddenFailed", "OverriddenPending"]),
    ("WorkSynchronized", ["WorkSynchronized", "WorkNotSynchronizedYet", "WorkSynchronizedUnknown"]),
    ("Applied", ["ApplySucceeded", "ApplyFailed", "ApplyPending"]),
    ("Available", ["ResourceAvailable", "ResourceNotAvailableYet", "ResourceAvailableUnknown"]),
];

/// The condition that replaces the last two if members write nothing.
const DIFF_REPORTED: (&str, [&str; 3]) =
    ("DiffReported", ["DiffReportingCompleted", "DiffReportingIncompleteOrFailed", "DiffReportingPending"]);

fn later(only_compared: bool) -> Vec<(&'static str, [&'static str; 3])> {
    let up_to = if only_compared { 3 } else { LATER.len() };
    LATER.iter().take(up_to).copied().chain(only_compared.then_some(DIFF_REPORTED)).collect()
}

/// The status of a condition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Word {
    True,
    False,
    Unknown,
}

impl Word {
    fn text(self) -> &'static str {
        ["True", "False", "Unknown"][self as usize]
    }
}

/// A condition of one cluster; a cluster's conditions are in the order of [`LATER`].
pub(super) struct ConditionStep {
    pub(super) word: Word,
    reason: &'static str,
    message: String,
}

/// Returns the status of a placement.
pub(super) fn describe(described: &Described<'_>) -> Option<Json> {
    let key = &described.decision.key;
    let next = || placement_policy::describe(described, views(described).map(|view| view.steps()).collect());
    match &*key.group {
        PLACEMENT_GROUP if described.fleet.is_some_and(|fleet| fleet.is_replaced(key)) => Some(next()),
        PLACEMENT_GROUP => Some(status(described)),
        NEXT_GROUP => Some(next()),
        _ => None,
    }
}

fn views<'a>(described: &'a Described<'a>) -> impl Iterator<Item = PickedCluster<'a>> {
    let Described { decision, fleet, placed, .. } = described;
    let workload = fleet.and_then(|fleet| fleet.workloads.get(&decision.key)).map(|workload| &**workload);
    placed.iter().map(move |(cluster, member)| PickedCluster {
        described,
        workload,
        cluster,
        member: *member,
    })
}

fn status(described: &Described<'_>) -> Json {
    let Described { decision, fleet, .. } = described;
    let key = &decision.key;
    let workload = fleet.and_then(|fleet| fleet.workloads.get(key)).map(|workload| &**workload);
    let mut all_steps = Vec::new();
    let mut statuses = Vec::new();
    for (view, pick) in views(described).zip(decision.picks.iter()) {
        let steps = view.steps();
        statuses.push(view.status(pick, &steps));
        all_steps.push(steps);
    }
    statuses.extend(unfilled(described));
    let mut conditions: Vec<Json> =
        decision.condition.iter().map(|one| condition_json(one, &key.kind)).collect();
    let later = later(workload.is_some_and(is_only_compared));
    conditions.extend(summed_up(key, &all_steps, &later));
    json!({
        "conditions": conditions,
        "placementStatuses": statuses,
        "selectedResources": decision.objects.iter().map(|id| resource(id, workload)).collect::<Vec<_>>(),
    })
}

/// Returns the placement's conditions: Unknown if one cluster's is, else False if one is, else True.
fn summed_up(key: &Key, clusters: &[Vec<ConditionStep>], later: &[(&str, [&'static str; 3])]) -> Vec<Json> {
    let mut found = Vec::new();
    for (index, (kind, reasons)) in later.iter().enumerate() {
        let steps: Vec<&ConditionStep> = clusters.iter().filter_map(|steps| steps.get(index)).collect();
        if steps.is_empty() {
            break;
        }
        let any = |word: Word| steps.iter().filter(|step| step.word == word).count();
        let (word, count) = match (any(Word::Unknown), any(Word::False)) {
            (0, 0) => (Word::True, steps.len()),
            (0, count) => (Word::False, count),
            (count, _) => (Word::Unknown, count),
        };
        let none_overridden =
            *kind == "Overridden" && steps.iter().all(|step| step.reason == "NoOverrideSpecified");
        let reason = match word {
            Word::True if none_overridden => "NoOverrideSpecified",
            word => reasons[word as usize],
        };
        found.push(json!({
            "type": format!("{}{kind}", key.kind), "status": word.text(), "reason": reason,
            "message": in_words(count, clusters.len()),
        }));
        if word != Word::True {
            break;
        }
    }
    found
}

fn in_words(count: usize, of: usize) -> String {
    let share = if count == of && of > 1 { "all ".to_owned() } else { format!("{count} of ") };
    format!("in {share}{of} clusters")
}

/// Returns entries for wanted clusters that are missing.
fn unfilled(described: &Described<'_>) -> Vec<Json> {
    let Described { decision, fleet, .. } = described;
    let placement = fleet.and_then(|fleet| fleet.placements.get(&decision.key));
    let Some(policy) = placement.and_then(|placement| placement.own_policy()) else { return Vec::new() };
    let failed = |message: String| json!([{"type": "Scheduled", "status": "False", "reason": "ScheduleFailed", "message": message}]);
    match &policy.selection {
        Selection::All | Selection::InTurn(_) => Vec::new(),
        Selection::First(count) => {
            let refused = decision.refused.iter().map(|one| format!("{}: {}", one.clusters, one.reason));
            let refused: Vec<String> = refused.collect();
            let message = format!("no other cluster matches; not picked: {}", refused.join("; "));
            let missing = count.saturating_sub(decision.picks.len());
            (0..missing).map(|_| json!({"conditions": failed(message.clone())})).collect()
        }
        Selection::Exactly(names) => {
            let missing = names.iter().filter(|name| !decision.has(name));
            let entry = |name: &String| {
                let message = "the cluster is not in the fleet or not eligible".to_owned();
                json!({"clusterName": name, "conditions": failed(message)})
            };
            missing.map(entry).collect()
        }
    }
}

/// A picked cluster.
struct PickedCluster<'a> {
    described: &'a Described<'a>,
    workload: Option<&'a Workload>,
    cluster: &'a str,
    member: Option<&'a Member<'a>>,
}

impl PickedCluster<'_> {
    fn status(&self, pick: &Pick, steps: &[ConditionStep]) -> Json {
        let score = |name: &str| pick.scores.get(name).copied().unwrap_or(0);
        let scores = if pick.scores.is_empty() {
            String::new()
        } else {
            let (affinity, spread) = (score("affinityScore"), score("topologySpreadScore"));
            format!(" (affinity score: {affinity}, topology spread score: {spread})")
        };
        let mut conditions = vec![json!({
            "type": "Scheduled", "status": "True", "reason": "Scheduled",
            "message": format!("picked: {}{scores}", pick.reason),
        })];
        let later = later(self.is_only_compared());
        conditions.extend(steps.iter().zip(later).map(|(step, (kind, _))| {
            json!({"type": kind, "status": step.word.text(), "reason": step.reason, "message": step.message})
        }));
        let mut status = json!({"clusterName": self.cluster, "conditions": conditions});
        let (of_cluster, of_namespace) = self.overrides();
        for (field, names) in [
            ("applicableClusterResourceOverrides", of_cluster),
            ("applicableResourceOverrides", of_namespace),
        ] {
            if !names.is_empty() {
                status[field] = json!(names);
            }
        }
        let failed: Vec<Json> = self.problems().map(|problem| self.failed(problem)).collect();
        if !failed.is_empty() {
            status["failedPlacements"] = json!(failed);
        }
        for (field, observed, kinds) in [
            ("driftedPlacements", "observedDrifts", &[ProblemKind::Drifted][..]),
            ("diffedPlacements", "observedDiffs", &[ProblemKind::Different, ProblemKind::TakeOverRefused]),
        ] {
            let found = self.problems().chain(self.differences());
            let found = found.filter(|one| kinds.contains(&one.kind));
            let entries: Vec<Json> = found.map(|one| self.observed(one, observed)).collect();
            if !entries.is_empty() {
                status[field] = json!(entries);
            }
        }
        status
    }

    fn is_only_compared(&self) -> bool {
        self.workload.is_some_and(is_only_compared)
    }

    /// Returns an object with its differing fields.
    fn observed(&self, problem: &Problem, field: &str) -> Json {
        let mut entry = resource(&problem.object, self.workload);
        entry[field] = problem.paths.iter().map(|path| json!({ "path": path })).collect();
        entry["message"] = json!(problem.message);
        entry
    }

    fn steps(&self) -> Vec<ConditionStep> {
        let step = |word, reason, message: &str| ConditionStep { word, reason, message: message.to_owned() };
        let waits = self.described.waits();
        if let Some(wait) = waits.get(self.cluster) {
            return vec![step(Word::False, "RolloutNotStartedYet", wait)];
        }
        if self.member.is_none_or(|member| member.published.is_none()) {
            return vec![step(Word::Unknown, "RolloutStartedUnknown", "nothing is published for it yet")];
        }
        let mut steps = vec![step(Word::True, "RolloutStarted", "its folder is published")];
        let failures =
            self.described.decision.failures.iter().filter(|failure| failure.cluster == self.cluster);
        if let Some(failure) = failures.min() {
            let message = format!("{}: {}", failure.object, failure.reason);
            steps.push(step(Word::False, "OverriddenFailed", &message));
            return steps;
        }
        let (of_cluster, of_namespace) = self.overrides();
        let count = of_cluster.len() + of_namespace.len();
        steps.push(match count {
            0 => step(Word::True, "NoOverrideSpecified", "no override applies to it"),
            count => step(Word::True, "OverriddenSucceeded", &format!("{count} applied")),
        });
        steps.push(step(Word::True, "AllWorkSynced", "its folder holds all objects in their current form"));
        if self.is_only_compared() {
            steps.push(self.compared());
            return steps;
        }
        let applied = self.applied();
        let goes_on = applied.word == Word::True;
        steps.push(applied);
        if goes_on {
            steps.push(self.available());
        }
        steps
    }

    fn compared(&self) -> ConditionStep {
        let applied = self.applied();
        let (reason, message) = match applied.word {
            Word::True => {
                let message = match self.differences().count() {
                    0 => "NoDiffFound: all objects equal the folder".to_owned(),
                    count => format!("FoundDiff: {count} differ from the folder"),
                };
                ("AllWorkHaveDiffReported", message)
            }
            Word::False => ("NotAllWorkHaveDiffReported", applied.message),
            Word::Unknown => ("DiffReportInProgress", applied.message),
        };
        ConditionStep { word: applied.word, reason, message }
    }

    fn applied(&self) -> ConditionStep {
        let step = |word, reason, message: String| ConditionStep { word, reason, message };
        let state = self.member.map(|member| member.state);
        let problems = self.problems().count();
        let objects = &self.described.decision.objects;
        let has_copies = self.member.is_some_and(|member| member.view().has(objects));
        let unknown = |message: &str| step(Word::Unknown, "ApplyInProgress", message.to_owned());
        match state {
            Some(state) if state.is_heard() && problems > 0 => {
                let message = format!("{problems} could not be applied");
                step(Word::False, "NotAllWorkHaveBeenApplied", message)
            }
            Some(_) if has_copies => {
                let message = "the member reports its copies as applied".to_owned();
                step(Word::True, "AllWorkHaveBeenApplied", message)
            }
            Some(MemberState::Failing) => unknown("the member reports that it fails"),
            Some(MemberState::Silent) => unknown("the member is silent"),
            Some(MemberState::NeverReported) | None => unknown("the member has never reported"),
            Some(_) => unknown("the member has not applied the latest yet"),
        }
    }

    fn available(&self) -> ConditionStep {
        let objects = &self.described.decision.objects;
        if self.member.is_some_and(|member| member.view().awaits(objects)) {
            let message = "the member waits for objects to become available".to_owned();
            return ConditionStep { word: Word::False, reason: "NotAllWorkAreAvailable", message };
        }
        let later = objects.iter().find(|id| !AT_ONCE.contains(&&*id.kind));
        let health = self.described.rollout.map(|rollout| rollout.health(self.cluster));
        let (word, reason, message) = match later {
            None => (Word::True, "AllWorkAreAvailable", "all are available as soon as they exist".to_owned()),
            Some(_) if health == Some(Health::Succeeded) => {
                let message = "the member reports these copies in order".to_owned();
                (Word::True, "AllWorkAreAvailable", message)
            }
            Some(id) => {
                let message = format!("members do not report whether {id} is available");
                (Word::Unknown, "ResourceAvailableUnknown", message)
            }
        };
        ConditionStep { word, reason, message }
    }

    fn problems(&self) -> impl Iterator<Item = &Problem> {
        let all = self.member.map(|member| member.problems()).unwrap_or_default();
        all.iter().filter(|problem| self.described.decision.objects.contains(&problem.object))
    }

    fn differences(&self) -> impl Iterator<Item = &Problem> {
        let all = self.member.map(|member| member.differences()).unwrap_or_default();
        all.iter().filter(|one| self.described.decision.objects.contains(&one.object))
    }

    fn failed(&self, problem: &Problem) -> Json {
        let reason = reason(problem.kind);
        let kind = if self.is_only_compared() { "DiffReported" } else { "Applied" };
        let mut entry = resource(&problem.object, self.workload);
        entry["condition"] =
            json!({"type": kind, "status": "False", "reason": reason, "message": problem.message});
        entry
    }

    /// Returns the names of the matching overrides: ClusterResourceOverrides, then ResourceOverrides.
    fn overrides(&self) -> (Vec<String>, Vec<String>) {
        let cluster = self.described.fleet.and_then(|fleet| fleet.clusters.get(self.cluster));
        let is_own = |one: &&Override| *one.by.group != *group_of(API_VERSION);
        let applies = |one: &&Override| {
            is_own(one) && one.clusters.include(self.cluster, cluster.map(|cluster| &**cluster))
        };
        let all = self.workload.map(|workload| workload.overrides.as_slice()).unwrap_or_default();
        let (mut of_cluster, mut of_namespace): (Vec<String>, Vec<String>) = Default::default();
        for one in all.iter().filter(applies) {
            let names = if one.by.namespace.is_empty() { &mut of_cluster } else { &mut of_namespace };
            names.push(one.by.full_name());
        }
        of_cluster.dedup();
        of_namespace.dedup();
        (of_cluster, of_namespace)
    }
}

/// Returns KubeFleet's reason for a problem.
fn reason(kind: ProblemKind) -> &'static str {
    match kind {
        ProblemKind::Failed | ProblemKind::Kept => "ManifestApplyFailed",
        ProblemKind::Foreign => "NotTakenOver",
        ProblemKind::TakeOverRefused => "FailedToTakeOver",
        ProblemKind::Drifted => "FoundDrifts",
        ProblemKind::Different => "FoundDiff",
        ProblemKind::NotCompared => "FailedToReportDiff",
    }
}

/// Reports whether members only report differences of a workload and write nothing.
fn is_only_compared(workload: &Workload) -> bool {
    let mut ways = workload.templates.iter().filter_map(|template| template.sync_annotations.get(APPLY));
    ways.any(|way| way == "report-diff")
}

fn resource(id: &ObjectId, workload: Option<&Workload>) -> Json {
    let template = workload.and_then(|one| one.templates.iter().find(|template| template.object.id == *id));
    let api_version =
        template.and_then(|one| one.object.content.get("apiVersion")).and_then(|version| version.as_str());
    let parts = [
        ("group", &*id.group),
        ("version", api_version.map(version_of).unwrap_or_default()),
        ("kind", &*id.kind),
        ("namespace", &*id.namespace),
        ("name", &*id.name),
    ];
    let written = parts.into_iter().filter(|(_, text)| !text.is_empty());
    written.map(|(field, text)| (field.to_owned(), json!(text))).collect()
}

/// Kinds that are available as soon as they exist; for all others, a member's report decides.
pub(super) const AT_ONCE: [&str; 18] = [
    "ClusterRole",
    "ClusterRoleBinding",
    "ConfigMap",
    "ControllerRevision",
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "IngressClass",
    "LimitRange",
    "Namespace",
    "NetworkPolicy",
    "PriorityClass",
    "ResourceQuota",
    "Role",
    "RoleBinding",
    "Secret",
    "ServiceAccount",
    "StorageClass",
];

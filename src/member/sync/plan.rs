//! Compares a folder's objects with a backend's, and plans the writes and removals in order.
//!
//! Pure. Nothing is taken over or removed by accident: a foreign object is a conflict unless its annotation
//! allows the take-over, and an object that must not be removed stays, with the reason. Namespaces and CRDs
//! are written first and removed last.
//!
//! A plan as JSON names objects and never shows their content.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;
use serde_json::Value as Json;

use super::desired::{Annotations, Desired, DesiredSet};
use super::strategy::{Strategy, WriteLimit};
use berth_base::model::ObjectId;
use berth_base::model::annotation::{DELETE_OPTIONS, HELM_POLICY, ORPHAN, PRUNE, TAKE_OVER, WORKLOAD, stays};
use berth_base::model::status::{Problem, ProblemKind};

/// A placeholder name for every object of a kind. No object can have it.
pub(crate) const ALL_OF_KIND: &str = "*";

/// One version of a live object, in the backend's notation: a hash, or a UID.
#[derive(Clone, PartialEq, Eq)]
pub struct Version(pub String);

// The version may be a hash of a Secret, from which its content could be guessed.
impl fmt::Debug for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Version(..)")
    }
}

/// The live state of one object in a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Live {
    /// True if the object belongs to this fleet and cluster.
    pub owned: bool,
    pub form: Form,
    /// The object's `berth.dev/` annotations.
    pub annotations: Annotations,
    /// The reason why berth must not remove the object, if the backend knows one.
    pub stays: Option<HoldReason>,
}

/// The form of an object in a backend.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Form {
    /// Berth owns the object, but it is missing.
    Absent,
    /// The object exists; `same` is true if it equals its wanted form.
    There { version: Version, same: bool },
    /// The object cannot be written: it cannot be created, is being removed, or another object blocks it.
    Faulty(String),
    /// Berth must not change the object. Objects that depend on it are written without it.
    Refused(String),
}

impl Form {
    fn version(&self) -> Option<Version> {
        match self {
            Form::There { version, .. } => Some(version.clone()),
            Form::Absent | Form::Faulty(_) | Form::Refused(_) => None,
        }
    }
}

/// The planned writes and removals, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SyncPlan {
    pub writes: Vec<Write>,
    pub unchanged: Vec<ObjectId>,
    pub prunes: Vec<Prune>,
    /// Removals that do not happen.
    pub held: Vec<HeldRemoval>,
    pub problems: Vec<Problem>,
    /// Differences of objects that are only reported.
    pub differences: Vec<Problem>,
}

/// A plan, with its inputs.
#[derive(Clone, Copy, Debug)]
pub struct Planned<'a> {
    pub plan: &'a SyncPlan,
    pub desired: &'a DesiredSet,
    pub live: &'a BTreeMap<ObjectId, Live>,
}

/// An object to write.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Write {
    pub id: ObjectId,
    pub action: WriteAction,
    /// The version that the plan was based on.
    pub seen: Option<Version>,
}

/// The reason why an object is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum WriteAction {
    Create,
    Update,
    /// The object exists and does not belong to berth.
    TakeOver,
}

/// An object to remove or release. If it is already missing, only its record is removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prune {
    pub id: ObjectId,
    pub seen: Option<Version>,
    /// True if it is removed before the writes.
    pub first: bool,
    pub workload: String,
    /// Releases the object: it stays, and berth no longer owns it.
    pub orphan: bool,
    /// The options of Kubernetes' delete request, from the object's annotation.
    pub options: Option<String>,
}

/// A removal that does not happen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldRemoval {
    pub id: ObjectId,
    pub why: HoldReason,
}

/// The reason why an object stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum HoldReason {
    /// The object's annotation forbids it.
    Disabled,
    /// Its chart says that it stays.
    Kept,
    /// Removing the kind deletes more objects, and nobody approved that.
    NeedsApproval,
    /// New objects of its workload are missing.
    WorkloadFailed,
    /// New objects of its workload are not healthy yet.
    NotHealthy,
    /// A namespace that the cluster itself needs.
    Protected,
    /// Another object owns it, and its removal also removes this one.
    HasOwner,
    /// People suspended the workload or the backend.
    Suspended,
}

impl WriteAction {
    pub fn word(self) -> &'static str {
        match self {
            WriteAction::Create => "create",
            WriteAction::Update => "update",
            WriteAction::TakeOver => "take over",
        }
    }
}

impl HoldReason {
    pub fn words(self) -> &'static str {
        match self {
            HoldReason::Kept => "its annotation `helm.sh/resource-policy` is `keep`",
            HoldReason::Disabled => "its annotation `berth.dev/prune` is `disabled`",
            HoldReason::NeedsApproval => {
                "namespaces, CRDs and volume claims are removed only with an approval, or with `--allow-risky-prune`"
            }
            HoldReason::WorkloadFailed => "not all of its workload could be applied",
            HoldReason::NotHealthy => "its workload is not healthy yet",
            HoldReason::Protected => "protected namespaces are never removed",
            HoldReason::HasOwner => "its owner (`metadata.ownerReferences`) removes it",
            HoldReason::Suspended => "it is suspended",
        }
    }
}

impl HeldRemoval {
    /// Returns the problem for the report.
    pub(crate) fn problem(&self) -> Problem {
        kept(self.id.clone(), self.why.words())
    }
}

/// Returns the problem of an unwanted object that stays for now.
pub(crate) fn kept(object: ObjectId, why: impl fmt::Display) -> Problem {
    Problem::of(ProblemKind::Kept, object, format!("no longer wanted, but kept: {why}"))
}

impl SyncPlan {
    /// Reports whether the plan changes nothing.
    pub(crate) fn is_quiet(&self) -> bool {
        self.writes.is_empty() && self.prunes.is_empty()
    }

    /// Returns the removals.
    pub fn removed(&self) -> impl Iterator<Item = &Prune> {
        self.prunes.iter().filter(|prune| !prune.orphan)
    }

    /// Returns the objects to release.
    pub fn orphaned(&self) -> impl Iterator<Item = &Prune> {
        self.prunes.iter().filter(|prune| prune.orphan)
    }
}

/// Compares the wanted objects with the live ones.
pub fn plan(
    desired: &DesiredSet,
    live: &BTreeMap<ObjectId, Live>,
    is_approved: impl Fn(&ObjectId) -> bool,
) -> SyncPlan {
    let mut plan = SyncPlan::default();
    for blocked in desired.blocked.values() {
        plan.problems.push(Problem::failed(blocked.id.clone(), blocked.message.clone()));
    }
    for (id, wanted) in &desired.objects {
        match action(wanted, live.get(id)) {
            Ok(Some(action)) => {
                let seen = live.get(id).and_then(|live| live.form.version());
                plan.writes.push(Write { id: id.clone(), action, seen });
            }
            Ok(None) => plan.unchanged.push(id.clone()),
            Err((kind, message)) => plan.problems.push(Problem::of(kind, id.clone(), message)),
        }
    }
    let unwanted = live
        .iter()
        .filter(|(id, live)| live.owned && !desired.objects.contains_key(*id) && !desired.is_blocked(id));
    for (id, live) in unwanted {
        remove(&mut plan, id, live, is_approved(id));
    }
    plan.writes.sort_by_key(|write| (!goes_first(&write.id), write.id.clone()));
    plan.prunes.sort_by_key(|prune| (!prune.first, goes_first(&prune.id), Reverse(prune.id.clone())));
    plan
}

/// The reason why an object is not written.
type WriteRefusal = (ProblemKind, String);

/// Decides how to write a wanted object. `None` if it needs no write.
fn action(wanted: &Desired, live: Option<&Live>) -> Result<Option<WriteAction>, WriteRefusal> {
    if let Some(settled) = decide_by_limit(wanted, live) {
        return settled;
    }
    let Some(live) = live else { return Ok(Some(WriteAction::Create)) };
    match &live.form {
        Form::Faulty(message) | Form::Refused(message) => Err((ProblemKind::Failed, message.clone())),
        Form::Absent => Ok(Some(WriteAction::Create)),
        Form::There { same, .. } if live.owned => Ok((!same).then_some(WriteAction::Update)),
        Form::There { same, .. } => match wanted.annotation(TAKE_OVER) {
            Some("true") => Ok(Some(WriteAction::TakeOver)),
            Some("if-no-diff") if *same => Ok(Some(WriteAction::TakeOver)),
            take_over => {
                let message = match take_over {
                    Some("if-no-diff") => {
                        "it exists, was not made by berth, and differs from the folder".to_owned()
                    }
                    Some("never") => "NotTakenOver: it exists and was not made by berth".to_owned(),
                    _ => format!(
                        "it exists and was not made by berth; annotate it `{TAKE_OVER}: \"true\"` to take it over"
                    ),
                };
                Err((ProblemKind::Foreign, message))
            }
        },
    }
}

/// Decides by the write limit alone. `None` if a comparison must decide.
pub(super) fn decide_by_limit(
    wanted: &Desired,
    live: Option<&Live>,
) -> Option<Result<Option<WriteAction>, WriteRefusal>> {
    let form = live.map(|live| &live.form);
    match (Strategy::of(wanted).way, form) {
        (WriteLimit::Write, _) => None,
        (WriteLimit::ReportDiff, Some(Form::Faulty(message) | Form::Refused(message))) => {
            Some(Err((ProblemKind::NotCompared, format!("FailedToReportDiff: {message}"))))
        }
        (_, Some(Form::Faulty(_) | Form::Refused(_))) => None,
        (WriteLimit::CreateOnly, Some(Form::There { .. })) => Some(Ok(None)),
        (WriteLimit::CreateOnly, _) => None,
        (WriteLimit::ReadOnly | WriteLimit::ReportDiff, _) => Some(Ok(None)),
    }
}

fn remove(plan: &mut SyncPlan, id: &ObjectId, live: &Live, is_approved: bool) {
    let annotation = |name: &str| live.annotations.get(name).map(String::as_str);
    let held = |why| HeldRemoval { id: id.clone(), why };
    let orphan = annotation(ORPHAN) == Some("true");
    match &live.form {
        Form::Faulty(message) | Form::Refused(message) => {
            plan.problems.push(Problem::failed(id.clone(), message.clone()));
        }
        Form::There { .. } if annotation(PRUNE) == Some("disabled") => {
            plan.held.push(held(HoldReason::Disabled));
        }
        Form::There { .. } if annotation(HELM_POLICY).is_some_and(stays) => {
            plan.held.push(held(HoldReason::Kept));
        }
        Form::There { .. } if !orphan && live.stays.is_some() => {
            plan.held.extend(live.stays.map(held));
        }
        Form::There { .. } if id.takes_more_along() && !is_approved && !orphan => {
            plan.held.push(held(HoldReason::NeedsApproval));
        }
        form => plan.prunes.push(Prune {
            id: id.clone(),
            seen: form.version(),
            first: annotation(PRUNE) == Some("first"),
            workload: annotation(WORKLOAD).unwrap_or_default().to_owned(),
            orphan,
            options: annotation(DELETE_OPTIONS).map(str::to_owned),
        }),
    }
}

/// Holds the removals that must wait for their workload, with the reason.
pub fn hold(
    prunes: Vec<Prune>,
    why: HoldReason,
    waits: impl Fn(&str) -> bool,
) -> (Vec<Prune>, Vec<HeldRemoval>) {
    let (waiting, rest): (Vec<Prune>, Vec<Prune>) =
        prunes.into_iter().partition(|prune| prune.seen.is_some() && waits(&prune.workload));
    let held = waiting.into_iter().map(|prune| HeldRemoval { id: prune.id, why });
    (rest, held.collect())
}

pub fn is_namespace(id: &ObjectId) -> bool {
    &*id.kind == "Namespace" && id.group.is_empty()
}

pub(crate) fn is_definition(id: &ObjectId) -> bool {
    &*id.kind == "CustomResourceDefinition" && &*id.group == "apiextensions.k8s.io"
}

/// Reports whether other objects need this one to exist: namespaces and definitions.
pub(crate) fn goes_first(id: &ObjectId) -> bool {
    is_namespace(id) || is_definition(id)
}

#[derive(Serialize)]
struct PlanForm<'a> {
    writes: Vec<ObjectForm<'a>>,
    prunes: Vec<ObjectForm<'a>>,
    orphans: Vec<ObjectForm<'a>>,
    held: Vec<ObjectForm<'a>>,
    problems: Vec<ObjectForm<'a>>,
    differences: Vec<ObjectForm<'a>>,
    unchanged: usize,
}

#[derive(Serialize)]
struct ObjectForm<'a> {
    group: &'a str,
    kind: &'a str,
    namespace: &'a str,
    name: &'a str,
    #[serde(flatten)]
    said: Option<Said<'a>>,
}

#[derive(Serialize)]
#[serde(rename_all = "lowercase")]
enum Said<'a> {
    Action(&'a str),
    Reason(&'a str),
    Message(&'a str),
}

impl SyncPlan {
    /// Returns the plan as JSON.
    pub fn to_json(&self) -> Json {
        let form = PlanForm {
            writes: self
                .writes
                .iter()
                .map(|it| object(&it.id, Some(Said::Action(it.action.word()))))
                .collect(),
            prunes: self.removed().map(|prune| object(&prune.id, None)).collect(),
            orphans: self.orphaned().map(|prune| object(&prune.id, None)).collect(),
            held: self.held.iter().map(|it| object(&it.id, Some(Said::Reason(it.why.words())))).collect(),
            problems: self.problems.iter().map(problem).collect(),
            differences: self.differences.iter().map(problem).collect(),
            unchanged: self.unchanged.len(),
        };
        serde_json::to_value(form).expect("texts and numbers always are JSON")
    }
}

fn object<'a>(id: &'a ObjectId, said: Option<Said<'a>>) -> ObjectForm<'a> {
    ObjectForm { group: &id.group, kind: &id.kind, namespace: &id.namespace, name: &id.name, said }
}

fn problem(problem: &Problem) -> ObjectForm<'_> {
    object(&problem.object, Some(Said::Message(&problem.message)))
}

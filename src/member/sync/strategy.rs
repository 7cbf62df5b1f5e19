//! The strategy of one object: its `berth.dev/` annotations, and their verdict on its live form.
//!
//! Pure. Messages of findings begin with words known from other systems (`FoundDrifts`, `FailedToTakeOver` ...).
//! Programs should use the finding's kind.
//!
//! The findings of strategies are added to a plan.

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::desired::{Desired, DesiredSet};
use super::field_differences::{self, Difference};
use super::plan::{Form, Live, Prune, SyncPlan};
use berth_base::model::ObjectId;
use berth_base::model::annotation::{APPLY, APPLY_WHEN, CO_OWNERS, COMPARE, TAKE_OVER, TOLERATE, WORKLOAD};
use berth_base::model::status::{Problem, ProblemKind};

/// The limit of writes to an object.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum WriteLimit {
    /// Creates the object, keeps it in its wanted form, and removes it.
    #[default]
    Write,
    /// Creates the object if it is missing, and never changes it.
    CreateOnly,
    /// Never writes or removes the object; reports its health.
    ReadOnly,
    /// Never writes the object; reports its differences.
    ReportDiff,
}

/// The strategy that an object's annotations set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Strategy {
    pub way: WriteLimit,
    /// Counts fields in addition to the manifest as differences.
    pub full: bool,
    /// Keeps changes made in the cluster until the manifest changes.
    pub if_not_drifted: bool,
    /// Refuses objects that have other owners.
    pub alone: bool,
    /// Takes an object over only if it does not differ.
    pub if_no_diff: bool,
    /// Allows changes of some fields in the cluster.
    pub tolerates: bool,
}

impl Strategy {
    pub fn of(desired: &Desired) -> Strategy {
        let is = |name: &str, value: &str| desired.annotation(name) == Some(value);
        Strategy {
            way: match desired.annotation(APPLY) {
                Some("create-only") => WriteLimit::CreateOnly,
                Some("read-only") => WriteLimit::ReadOnly,
                Some("report-diff") => WriteLimit::ReportDiff,
                _ => WriteLimit::Write,
            },
            full: is(COMPARE, "full"),
            if_not_drifted: is(APPLY_WHEN, "if-not-drifted"),
            alone: is(CO_OWNERS, "refused"),
            if_no_diff: is(TAKE_OVER, "if-no-diff"),
            tolerates: desired.annotation(TOLERATE).is_some(),
        }
    }

    /// Reports whether the strategy needs the changes that a write would make.
    pub fn compares(&self) -> bool {
        self.way == WriteLimit::ReportDiff || self.if_not_drifted || self.if_no_diff || self.tolerates
    }

    /// Reports whether the strategy judges more than the changes that a write would make.
    pub(crate) fn looks_beside(&self) -> bool {
        self.full || self.alone
    }

    /// Reports whether the strategy needs only the object's existence.
    pub(crate) fn only_looks(&self) -> bool {
        matches!(self.way, WriteLimit::CreateOnly | WriteLimit::ReadOnly)
    }
}

/// An existing object, as a strategy judges it.
#[derive(Clone, Copy, Debug)]
pub struct ObservedObject<'a> {
    pub live: &'a Json,
    pub wanted: &'a Json,
    pub owned: bool,
    /// True if the wanted form is the last applied one.
    pub applied_before: bool,
    /// The changes that a write would make.
    pub changes: &'a [Difference],
    pub is_secret: bool,
}

/// The verdict of a strategy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub effect: Effect,
    pub kind: ProblemKind,
    /// The fields that differ.
    pub paths: Vec<String>,
    pub message: String,
}

impl Finding {
    /// Makes a finding that only reports differences.
    pub fn reported(kind: ProblemKind, differences: &[Difference], message: String) -> Finding {
        let paths = field_differences::listed(differences).map(|one| one.path.clone()).collect();
        Finding { effect: Effect::Reported, kind, paths, message }
    }

    fn refused(kind: ProblemKind, differences: &[Difference], message: String) -> Finding {
        Finding { effect: Effect::Refused, ..Finding::reported(kind, differences, message) }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effect {
    /// The object must not be written, which is a problem.
    Refused,
    /// A remark in the report, not a problem.
    Reported,
}

/// Applies a strategy to an existing object.
pub fn judge(strategy: &Strategy, found: &ObservedObject<'_>) -> Option<Finding> {
    let mut all = found.changes.to_vec();
    let beside = if strategy.full { field_differences::beside(found.live, found.wanted) } else { Vec::new() };
    let only_beside = all.is_empty();
    let new = beside.into_iter().filter(|one| !found.changes.iter().any(|other| other.path == one.path));
    all.extend(new);
    let words = || field_differences::words(&all, found.is_secret);
    let differs = !all.is_empty();
    match strategy.way {
        WriteLimit::CreateOnly | WriteLimit::ReadOnly => None,
        WriteLimit::ReportDiff => differs
            .then(|| Finding::reported(ProblemKind::Different, &all, format!("FoundDiff: {}", words()))),
        WriteLimit::Write => {
            let owners = if strategy.alone { other_owners(found.live, found.wanted) } else { Vec::new() };
            if !owners.is_empty() {
                let (kind, word) = match found.owned {
                    true => (ProblemKind::Failed, "ManifestApplyFailed"),
                    false => (ProblemKind::TakeOverRefused, "FailedToTakeOver"),
                };
                let owners = owners.join(", ");
                let message =
                    format!("{word}: it has other owners, and co-ownership is not allowed: {owners}");
                Some(Finding::refused(kind, &[], message))
            } else if !found.owned && strategy.if_no_diff && differs {
                let message =
                    format!("FailedToTakeOver: it exists, was not made by berth, and differs: {}", words());
                Some(Finding::refused(ProblemKind::TakeOverRefused, &all, message))
            } else if found.owned && strategy.if_not_drifted && found.applied_before && differs {
                let message = format!(
                    "FoundDrifts: it was changed in the cluster, and stays changed until the folder \
                     changes: {}",
                    words()
                );
                Some(Finding::refused(ProblemKind::Drifted, &all, message))
            } else if found.owned && strategy.full && only_beside && differs {
                Some(Finding::reported(ProblemKind::Drifted, &all, format!("FoundDrifts: {}", words())))
            } else {
                None
            }
        }
    }
}

/// Returns an object's owners that are not in its manifest. An earlier hub's record does not count.
fn other_owners(live: &Json, wanted: &Json) -> Vec<String> {
    let owners = |object: &Json| {
        object.pointer("/metadata/ownerReferences").and_then(Json::as_array).cloned().unwrap_or_default()
    };
    let text = |owner: &Json, key: &str| owner.get(key).and_then(Json::as_str).unwrap_or_default().to_owned();
    let own = owners(wanted);
    let others = owners(live)
        .into_iter()
        .filter(|one| !is_of_a_hub(one) && !own.iter().any(|own| text(own, "uid") == text(one, "uid")));
    others.map(|one| format!("`{} {}`", text(&one, "kind"), text(&one, "name"))).collect()
}

/// Reports whether an owner is the record that KubeFleet's agent keeps of its objects.
pub(crate) fn is_of_a_hub(owner: &Json) -> bool {
    let text = |key: &str| owner.get(key).and_then(Json::as_str).unwrap_or_default();
    text("kind") == "AppliedWork" && text("apiVersion").starts_with("placement.kubernetes-fleet.io/")
}

/// Reports whether an object is never written, and so neither awaited nor counted as applied.
pub fn is_only_compared(wanted: &Desired) -> bool {
    Strategy::of(wanted).way == WriteLimit::ReportDiff
}

/// The number of differences in a report.
const MOST_DIFFERENCES: usize = 100;

/// Adds findings to a plan: refused objects are not written, and differences are reported.
pub(super) fn apply(
    plan: &mut SyncPlan,
    desired: &DesiredSet,
    live: &BTreeMap<ObjectId, Live>,
    mut findings: BTreeMap<ObjectId, Finding>,
) {
    for (id, wanted) in &desired.objects {
        let found = live.get(id);
        match Strategy::of(wanted).way {
            WriteLimit::ReportDiff => {
                plan.unchanged.retain(|other| other != id);
                let message = match found.map(|live| &live.form) {
                    None | Some(Form::Absent) => "FoundDiff: it does not exist",
                    Some(Form::There { same: false, .. }) => "FoundDiff: it differs from the folder",
                    _ => continue,
                };
                let reported = || Finding::reported(ProblemKind::Different, &[], message.to_owned());
                findings.entry(id.clone()).or_insert_with(reported);
            }
            WriteLimit::ReadOnly => {
                plan.unchanged.retain(|other| other != id);
                if let Some(Live { owned: true, form: Form::There { version, .. }, annotations, .. }) = found
                {
                    plan.prunes.push(Prune {
                        id: id.clone(),
                        seen: Some(version.clone()),
                        first: true,
                        workload: annotations.get(WORKLOAD).cloned().unwrap_or_default(),
                        orphan: true,
                        options: None,
                    });
                }
            }
            WriteLimit::Write | WriteLimit::CreateOnly => {}
        }
    }
    for (object, finding) in findings.into_iter().filter(|(id, _)| desired.objects.contains_key(id)) {
        let Finding { kind, paths, message, .. } = finding;
        let problem = Problem { object: object.clone(), kind, paths, message };
        match finding.effect {
            Effect::Reported if plan.differences.len() < MOST_DIFFERENCES => plan.differences.push(problem),
            Effect::Reported => {}
            Effect::Refused => {
                plan.writes.retain(|write| write.id != object);
                plan.unchanged.retain(|id| *id != object);
                plan.problems.retain(|other| other.object != object);
                plan.problems.push(problem);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    //! The verdict of each strategy on each state of an object.

    use serde_json::{Value as Json, json};

    use super::super::plan::{Form, Live, decide_by_limit};
    use super::*;
    use crate::sync::desired::Annotations;

    fn wanted(annotations: Json) -> Desired {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "web", "annotations": annotations}, "data": {"a": "1"}});
        Desired::new(&object, false).unwrap()
    }

    struct Case {
        live: Json,
        owned: bool,
        applied_before: bool,
    }

    impl Case {
        fn judge(&self, annotations: Json) -> Option<(Effect, String)> {
            let wanted = wanted(annotations);
            let content = wanted.object();
            let changes = field_differences::asked(&self.live, &content);
            let found = ObservedObject {
                live: &self.live,
                wanted: &content,
                owned: self.owned,
                applied_before: self.applied_before,
                changes: &changes,
                is_secret: false,
            };
            judge(&Strategy::of(&wanted), &found).map(|finding| (finding.effect, finding.message))
        }
    }

    fn live(data: Json, owners: Json) -> Json {
        let fields: serde_json::Map<String, Json> =
            data.as_object().unwrap().keys().map(|key| (format!("f:{key}"), json!({}))).collect();
        json!({"metadata": {"name": "web", "ownerReferences": owners, "managedFields": [
        {"manager": "hand", "operation": "Update", "fieldsV1": {"f:data": fields}}]}, "data": data})
    }

    #[test]
    fn without_a_strategy_nothing_is_found() {
        let drifted =
            Case { live: live(json!({"a": "2", "b": "3"}), json!([])), owned: true, applied_before: true };
        assert_eq!(drifted.judge(json!({})), None);
    }

    #[test]
    fn a_drift_is_refused_only_under_the_form_applied_last() {
        let when = json!({"berth.dev/apply-when": "if-not-drifted"});
        let mut case = Case { live: live(json!({"a": "2"}), json!([])), owned: true, applied_before: true };
        let (effect, message) = case.judge(when.clone()).unwrap();
        assert_eq!(effect, Effect::Refused);
        assert!(message.starts_with("FoundDrifts: ") && message.contains("`/data/a` is \"2\""), "{message}");
        case.applied_before = false;
        assert_eq!(case.judge(when.clone()), None);
        case.applied_before = true;
        case.live = live(json!({"a": "1"}), json!([]));
        assert_eq!(case.judge(when), None);
    }

    #[test]
    fn what_was_added_beside_the_manifest_counts_in_a_full_comparison_only() {
        let case =
            Case { live: live(json!({"a": "1", "b": "3"}), json!([])), owned: true, applied_before: true };
        assert_eq!(case.judge(json!({"berth.dev/apply-when": "if-not-drifted"})), None);
        let full = json!({"berth.dev/apply-when": "if-not-drifted", "berth.dev/compare": "full"});
        assert_eq!(case.judge(full).unwrap().0, Effect::Refused);
        let (effect, message) = case.judge(json!({"berth.dev/compare": "full"})).unwrap();
        assert_eq!(effect, Effect::Reported);
        assert_eq!(message, "FoundDrifts: `/data/b` is \"3\" in the cluster and missing in the folder");
    }

    #[test]
    fn a_take_over_if_nothing_differs_names_what_does() {
        let case =
            Case { live: live(json!({"a": "2", "b": "3"}), json!([])), owned: false, applied_before: false };
        let (effect, message) = case.judge(json!({"berth.dev/take-over": "if-no-diff"})).unwrap();
        assert_eq!(effect, Effect::Refused);
        assert!(message.starts_with("FailedToTakeOver: ") && message.contains("/data/a"), "{message}");
        assert!(!message.contains("/data/b"), "{message}");
        let full = json!({"berth.dev/take-over": "if-no-diff", "berth.dev/compare": "full"});
        assert!(case.judge(full).unwrap().1.contains("/data/b"));
    }

    #[test]
    fn other_owners_are_refused_where_they_are_not_allowed() {
        let set = json!({"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "web", "uid": "1"});
        let hub = json!({"apiVersion": "placement.kubernetes-fleet.io/v1beta1", "kind": "AppliedWork", "name": "w", "uid": "2"});
        let mut case =
            Case { live: live(json!({"a": "1"}), json!([set, hub])), owned: false, applied_before: false };
        let alone = json!({"berth.dev/co-owners": "refused", "berth.dev/take-over": "true"});
        let (effect, message) = case.judge(alone.clone()).unwrap();
        assert_eq!(effect, Effect::Refused);
        assert!(
            message.starts_with("FailedToTakeOver: ") && message.ends_with("`ReplicaSet web`"),
            "{message}"
        );
        case.owned = true;
        assert!(case.judge(alone.clone()).unwrap().1.starts_with("ManifestApplyFailed: "));
        assert_eq!(case.judge(json!({})), None);
        case.live = live(json!({"a": "1"}), json!([hub]));
        assert_eq!(case.judge(alone), None, "what an earlier hub left is no owner");
    }

    #[test]
    fn a_comparison_only_says_what_differs_and_touches_nothing() {
        let case = Case { live: live(json!({"a": "2"}), json!([])), owned: false, applied_before: false };
        let (effect, message) = case.judge(json!({"berth.dev/apply": "report-diff"})).unwrap();
        assert_eq!(effect, Effect::Reported);
        assert!(message.starts_with("FoundDiff: `/data/a`"), "{message}");
        let there = Live {
            owned: true,
            form: Form::There { version: crate::sync::plan::Version("1".to_owned()), same: false },
            annotations: Annotations::default(),
            stays: None,
        };
        for (way, live, action) in [
            ("report-diff", None, Some(None)),
            ("report-diff", Some(&there), Some(None)),
            ("read-only", None, Some(None)),
            ("create-only", None, None),
            ("create-only", Some(&there), Some(None)),
            ("anything", Some(&there), None),
        ] {
            let decided = decide_by_limit(&wanted(json!({"berth.dev/apply": way})), live);
            assert_eq!(decided.map(|action| action.unwrap()), action, "{way} {live:?}");
        }
    }
}

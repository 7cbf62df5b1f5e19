//! The strategy of one object: its `berth.dev/` annotations, and their verdict on its live form.
//!
//! Pure. Messages of findings begin with words known from other systems (`FoundDrifts`, `FailedToTakeOver` ...).
//! Programs should use the finding's kind.

use serde_json::Value as Json;

use super::desired::Desired;
use super::field_differences::{self, Difference};
use berth_base::model::annotation::{APPLY, APPLY_WHEN, CO_OWNERS, COMPARE, TAKE_OVER, TOLERATE};
use berth_base::model::status::ProblemKind;

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

#[cfg(test)]
mod tests;

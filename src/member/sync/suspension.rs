//! Suspensions ordered by people: the plan leaves suspended objects unchanged, and reports them.
//!
//! Annotations of berth's own record suspend the whole backend; annotations in Git suspend one workload. A suspension
//! with an unreadable end has no end. `now` is an argument.

use std::collections::BTreeMap;

use super::desired::DesiredSet;
use super::plan::{self, HeldRemoval, HoldReason, SyncPlan};
use berth_base::model::annotation::{SUSPEND, SUSPEND_UNTIL};
use berth_base::model::status::{Problem, Suspension};
use berth_base::model::{ObjectId, Timestamp};

/// The longest reason shown, in characters.
const LONGEST: usize = 300;

/// Reads a suspension from two annotations. `None` if it has ended.
pub fn read(reason: Option<&str>, until: Option<&str>, now: Timestamp) -> Option<Suspension> {
    if reason.is_none() && until.is_none() {
        return None;
    }
    let words = reason.unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
    let mut reason: String = words.chars().take(LONGEST).collect();
    let end: Option<Timestamp> = until.and_then(|until| until.trim().parse().ok());
    if end.is_some_and(|end| end <= now) {
        return None;
    }
    if until.is_some() && end.is_none() {
        let unreadable = format!("`{SUSPEND_UNTIL}` is not a time such as 2026-01-31T12:00:00Z");
        reason = if reason.is_empty() { unreadable } else { format!("{reason} ({unreadable})") };
    }
    Some(Suspension { reason, until: end })
}

/// Removes the changes of suspended workloads from a plan. Returns the first end of a suspension.
pub fn hold(plan: &mut SyncPlan, desired: &DesiredSet, now: Timestamp) -> Option<Timestamp> {
    let mut suspended: BTreeMap<&str, Suspension> = BTreeMap::new();
    for object in desired.objects.values() {
        if let Some(found) = read(object.annotation(SUSPEND), object.annotation(SUSPEND_UNTIL), now) {
            suspended.entry(object.workload()).or_insert(found);
        }
    }
    if suspended.is_empty() {
        return None;
    }
    let of = |id: &ObjectId| suspended.get(desired.objects.get(id)?.workload());
    let (kept, left): (Vec<_>, Vec<_>) =
        std::mem::take(&mut plan.writes).into_iter().partition(|write| of(&write.id).is_some());
    plan.writes = left;
    plan.problems.extend(kept.iter().filter_map(|write| Some(differs(&write.id, of(&write.id)?))));
    let prunes = std::mem::take(&mut plan.prunes);
    let (prunes, held) =
        plan::hold(prunes, HoldReason::Suspended, |workload| suspended.contains_key(workload));
    plan.prunes = prunes;
    plan.held.extend(held);
    plan.problems.sort();
    suspended.values().filter_map(|suspension| suspension.until).min()
}

/// Removes all changes from a plan, and reports the objects that differ from their wanted form.
pub(crate) fn hold_all(plan: &mut SyncPlan, suspension: &Suspension) {
    let writes = std::mem::take(&mut plan.writes);
    plan.problems.extend(writes.iter().map(|write| differs(&write.id, suspension)));
    let prunes = std::mem::take(&mut plan.prunes);
    plan.held
        .extend(prunes.into_iter().map(|prune| HeldRemoval { id: prune.id, why: HoldReason::Suspended }));
    plan.problems.sort();
}

fn differs(id: &ObjectId, suspension: &Suspension) -> Problem {
    Problem::failed(id.clone(), format!("it differs from the folder and is left unchanged: {suspension}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> Timestamp {
        text.parse().expect("a time")
    }

    #[test]
    fn a_suspension_ends_by_itself_and_an_unreadable_end_is_none() {
        let now = at("2026-05-01T12:00:00Z");
        let said = |reason, until| read(reason, until, now).map(|found| found.to_string());
        assert_eq!(said(None, None), None);
        assert_eq!(said(Some("disk\n full"), None).as_deref(), Some("suspended: disk full"));
        assert_eq!(said(Some("x"), Some("2026-05-01T12:00:00Z")), None, "over");
        let later = said(Some("x"), Some("2026-05-01T14:00:01+02:00"));
        assert_eq!(later.as_deref(), Some("suspended until 2026-05-01T12:00:01Z: x"));
        let unreadable = said(Some("x"), Some("tomorrow")).expect("it is in force");
        assert!(
            unreadable.starts_with("suspended: x (`berth.dev/suspend-until` is not a time"),
            "{unreadable}"
        );
        assert!(said(None, Some("")).is_some());
        assert!(said(Some(""), None).is_some());
        assert!(said(Some(&"x".repeat(5_000)), None).expect("it is in force").len() < 400);
    }
}

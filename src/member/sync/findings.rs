//! Adds the findings of strategies to a plan.

use std::collections::BTreeMap;

use super::desired::DesiredSet;
use super::plan::{Form, Live, Prune, SyncPlan};
use super::strategy::{Effect, Finding, Strategy, WriteLimit};
use berth_base::model::ObjectId;
use berth_base::model::annotation::WORKLOAD;
use berth_base::model::status::{Problem, ProblemKind};

/// The number of differences in a report.
const MOST_DIFFERENCES: usize = 100;

/// Adds findings to a plan: refused objects are not written, and differences are reported.
pub fn apply(
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

//! The traces of single placements: their decisions made once more, with everything said.

use super::case::Case;
use super::followed_placements::Following;
use super::own_policy;
use super::trace::{self, ClusterTrace, Stage, Step, Steps, Trace};
use berth_base::model::Decision;
use berth_base::model::placement::{Placement, Retention};

pub(super) fn of_own_policy(
    case: &Case<'_>,
    placement: &Placement,
    decision: &Decision,
    sticky: bool,
) -> Trace {
    let mut steps = Steps::default();
    own_policy::decide(case, &mut steps);
    // A retained pick passes no filters: its trace shows the steps that it would take now.
    let mut anew = Steps::default();
    if matches!(case.policy.retention, Retention::SamePolicy(_)) && steps.keeps_any() {
        own_policy::decide(&Case { previous: None, current_rows: &[], is_current: &[], ..*case }, &mut anew);
    }
    let candidate = trace::candidate_steps(case.table, &case.policy.candidates, case.is_current);
    let trace = trace::finish(decision, placement.origin.clone(), sticky, case.table, |row| {
        if steps.keeps(row) {
            anew.kept_cluster(row, candidate(row), case.policy)
        } else {
            steps.cluster(row, candidate(row), Some(case.policy))
        }
    });
    Trace { division: steps.division(), ..trace }
}

pub(super) fn of_followed(following: &Following<'_>, placement: &Placement, decision: &Decision) -> Trace {
    let Following { table, follow, union, .. } = following;
    let mut steps = Steps::default();
    following.picks(&mut steps);
    let followed: Vec<_> = follow.placements.iter().map(|one| one.describe()).collect();
    let followed = followed.join(" or ");
    trace::finish(decision, placement.origin.clone(), false, table, |row| -> ClusterTrace {
        let passed = union.rows.binary_search_by_key(&row, |(row, _)| *row).is_ok();
        let why = if passed { String::new() } else { format!("not picked by {followed}") };
        let rule = format!("picked by {followed}");
        steps.cluster(row, vec![Step { stage: Stage::Follow, rule, by: None, passed, why }], None)
    })
}

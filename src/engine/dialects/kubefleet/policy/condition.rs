//! The condition `Scheduled` in KubeFleet's words.

use berth_base::model::Condition;
use berth_base::model::decision::Outcome;
use berth_base::model::named::Named;
use berth_base::model::placement::Wording;

const FULFILLED: &str = "SchedulingPolicyFulfilled";
const UNFULFILLED: &str = "SchedulingPolicyUnfulfilled";

pub const PICK_ALL: Wording = Named { name: "KubeFleet's PickAll", function: pick_all };
pub const PICK_N: Wording = Named { name: "KubeFleet's PickN", function: pick_n };
pub const PICK_FIXED: Wording = Named { name: "KubeFleet's PickFixed", function: pick_fixed };

/// Returns the condition of `PickAll`, which has no target number and is always fulfilled.
fn pick_all(outcome: &Outcome) -> Option<Condition> {
    scheduled(true, FULFILLED, picked_all(outcome))
}

/// Returns the message of a policy without a target number.
pub(in crate::dialects::kubefleet) fn picked_all(outcome: &Outcome) -> String {
    match outcome.picked {
        0 => "no cluster matches the policy".to_owned(),
        picked => format!("picked every matching cluster: {picked}"),
    }
}

fn pick_n(outcome: &Outcome) -> Option<Condition> {
    let wanted = outcome.wanted.unwrap_or(0);
    let enough = outcome.picked >= wanted;
    let message = format!("found {} of the {wanted} requested clusters", outcome.picked);
    scheduled(enough, if enough { FULFILLED } else { UNFULFILLED }, message)
}

fn pick_fixed(outcome: &Outcome) -> Option<Condition> {
    if outcome.unmet.is_empty() {
        return scheduled(true, FULFILLED, "all clusters named are in the fleet and eligible".to_owned());
    }
    let message = format!("not in the fleet or not eligible: {}", outcome.unmet.join(", "));
    scheduled(false, UNFULFILLED, message)
}

/// Returns the condition of selectors for forbidden objects; nothing moves until they are corrected.
pub fn invalid_selectors(message: String) -> Condition {
    condition(false, "InvalidResourceSelectors", message)
}

fn scheduled(status: bool, reason: &str, message: String) -> Option<Condition> {
    Some(condition(status, reason, message))
}

fn condition(status: bool, reason: &str, message: String) -> Condition {
    Condition { kind: "Scheduled".to_owned(), status, reason: reason.to_owned(), message }
}

/// Returns the condition of `PickFixed` without a name.
pub(crate) fn no_names() -> Condition {
    condition(false, "SchedulePending", "no cluster is named".to_owned())
}

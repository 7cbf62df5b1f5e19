//! The condition PlacementSatisfied, with OCM's own reasons.

use berth_base::model::Condition;
use berth_base::model::decision::Outcome;
use berth_base::model::named::Named;
use berth_base::model::placement::{ClusterSet, Wording};

pub const SATISFIED: Wording = Named { name: "PlacementSatisfied", function: of };

fn of(outcome: &Outcome) -> Option<Condition> {
    let picked = outcome.picked;
    Some(match outcome.wanted {
        _ if outcome.candidates == 0 => satisfied(
            false,
            "AllManagedClusterSetsEmpty",
            "the bound cluster sets hold no cluster".to_owned(),
        ),
        _ if picked == 0 => {
            let message = format!("none of the {} clusters of the bound sets is picked", outcome.candidates);
            satisfied(false, "NoManagedClusterMatched", message)
        }
        Some(wanted) if picked < wanted => {
            let message = format!("{wanted} clusters are wanted and only {picked} can be picked");
            satisfied(false, "NotAllDecisionsScheduled", message)
        }
        _ => satisfied(true, "AllDecisionsScheduled", "all cluster decisions scheduled".to_owned()),
    })
}

pub(super) fn no_bindings(namespace: &str) -> Condition {
    let message =
        format!("no cluster set is bound to the namespace {namespace} by a ManagedClusterSetBinding");
    satisfied(false, "NoManagedClusterSetBindings", message)
}

pub(super) fn no_intersection(named: &[&str], bound: &[&ClusterSet]) -> Condition {
    let bound: Vec<&str> = bound.iter().map(|set| set.name.as_str()).collect();
    let message = format!(
        "none of the cluster sets named ({}) is among those bound to the namespace ({})",
        named.join(", "),
        bound.join(", ")
    );
    satisfied(false, "NoIntersection", message)
}

pub(super) fn disabled() -> Condition {
    let message = "an annotation disables scheduling; the clusters stay unchanged".to_owned();
    satisfied(false, "SchedulingDisabled", message)
}

fn satisfied(status: bool, reason: &str, message: String) -> Condition {
    Condition { kind: "PlacementSatisfied".to_owned(), status, reason: reason.to_owned(), message }
}

//! One placement as its own system would describe it: metadata and a status, in that system's words.
//!
//! The inputs are the current decision, the fleet behind it if at hand, and members' reports. Facts that
//! only a hub with a watch on members' objects could know are never claimed.

mod kubefleet;
mod ocm;

use std::collections::BTreeMap;

use serde_json::{Value as Json, json};

use super::member::{Member, Published, members, placed};
use super::propagation;
use super::propagation::Detail;
use berth_base::model::{ClusterStatus, Condition, Decision, Fleet, Timestamp};

/// The inputs of a description.
#[derive(Clone, Copy, Debug)]
pub struct ReportInputs<'s> {
    /// The fleet behind the current decisions, if it can still be read.
    pub fleet: Option<&'s Fleet>,
    pub statuses: &'s BTreeMap<String, ClusterStatus>,
    pub published: &'s BTreeMap<String, Published>,
    pub now: Timestamp,
}

/// The object with its status.
pub fn describe<'s>(decision: &'s Decision, known: ReportInputs<'s>) -> Json {
    let members = members(known.statuses, known.published, known.now);
    let placed: Vec<_> = placed(decision, &members).collect();
    let key = &decision.key;
    let status = match &*key.group {
        "placement.kubernetes-fleet.io" => kubefleet::status(decision, &placed, known),
        "cluster.open-cluster-management.io" => ocm::placement(decision),
        "work.open-cluster-management.io" => ocm::work(decision, &placed),
        _ if propagation::is_federated(key) => {
            json!(propagation::status(decision, &placed, &members, Detail::Full))
        }
        _ => json!({"clusters": decision.picks.iter().map(|pick| &pick.cluster).collect::<Vec<_>>()}),
    };
    let mut metadata = json!({"name": &*key.name});
    if !key.namespace.is_empty() {
        metadata["namespace"] = json!(&*key.namespace);
    }
    json!({
        "kind": &*key.kind,
        "group": &*key.group,
        "metadata": metadata,
        "source": decision.source,
        "status": status,
    })
}

/// A cluster of a decision, with its member if known.
type Placed<'a, 's> = (&'s str, Option<&'a Member<'s>>);

fn condition_json(condition: &Condition, prefix: &str) -> Json {
    json!({
        "type": format!("{prefix}{}", condition.kind),
        "status": if condition.status { "True" } else { "False" },
        "reason": condition.reason,
        "message": condition.message,
    })
}

#[cfg(test)]
mod tests;

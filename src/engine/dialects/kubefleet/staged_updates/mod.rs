//! Staged updates: strategies, runs and approval requests, cluster-scoped and namespaced.
//!
//! A namespaced kind refers to objects of its namespace; its name lacks the prefix `Cluster`.

mod approval;
mod references;
mod run;
mod status;
mod strategy;

#[cfg(test)]
mod tests;

use berth_base::meta::{self, Metadata};
use berth_base::model::Key;
use berth_base::model::staged::{Run, StageApproval, StageStrategy};
use berth_base::yaml::fields::Scope;
use berth_base::yaml::node::Node;

use super::kinds::PLACEMENT_GROUP;

pub(crate) use references::check;
pub(crate) use status::status;
pub(crate) use strategy::stages;

const LONGEST_NAME: usize = 63;
const LONGEST_PLACEMENT: usize = 255;

/// One of the three kinds of staged updates.
#[derive(Clone, Debug)]
pub(crate) enum StagedUpdate {
    Strategy(StageStrategy),
    Run(Run),
    Approval(StageApproval),
}

/// Returns the key of an object that another object names: in the same namespace, or in none.
fn beside(key: &Key, of_cluster: &str, of_namespace: &str, name: &str) -> Key {
    let kind = if key.namespace.is_empty() { of_cluster } else { of_namespace };
    Key::new(PLACEMENT_GROUP, kind, &key.namespace, name)
}

/// Returns the key that documents of a kind are known by: without a namespace for cluster-scoped kinds.
fn key_of(key: &Key) -> Key {
    let namespace = if key.kind.starts_with("Cluster") { "" } else { &*key.namespace };
    Key::new(PLACEMENT_GROUP, &key.kind, namespace, &key.name)
}

/// Reads a strategy, run or approval request. Faults go to the scope; if there are any, the result must not
/// be used.
pub(crate) fn read(scope: &Scope, root: &Node, key: &Key) -> Option<StagedUpdate> {
    let key = &key_of(key);
    let (mut fields, metadata) = meta::open(scope, root)?;
    if !key.kind.starts_with("Cluster") && metadata.namespace.is_empty() {
        scope.error(metadata.at, "metadata.namespace is required");
    }
    let mut spec = fields.required_fields("spec")?;
    let origin = scope.pos(root.at);
    let read = match &*key.kind {
        "ClusterStagedUpdateStrategy" | "StagedUpdateStrategy" => {
            let stages = stages(&mut spec);
            Some(StagedUpdate::Strategy(StageStrategy { key: key.clone(), origin, stages }))
        }
        "ClusterStagedUpdateRun" | "StagedUpdateRun" => {
            check_length(scope, &metadata);
            run::read(&mut spec, key, origin).map(StagedUpdate::Run)
        }
        _ => {
            let status = root.get("status");
            approval::read(&mut spec, status, &metadata, (key, origin)).map(StagedUpdate::Approval)
        }
    };
    spec.finish();
    fields.finish();
    read
}

fn check_length(scope: &Scope, metadata: &Metadata) {
    if metadata.name.len() > LONGEST_NAME {
        let message = format!("metadata.name must not be longer than {LONGEST_NAME} characters");
        scope.error(metadata.name_at, message);
    }
}

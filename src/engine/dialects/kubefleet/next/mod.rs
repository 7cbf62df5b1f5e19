//! `PlacementPolicy` and `ClusterPlacementPolicy` of `placement.kubefleet.dev`, the next API: successive
//! choices of clusters, each by terms and a number.

mod choices;
mod describe;
mod resources;
mod sync_strategy;

#[cfg(test)]
mod tests;

pub use describe::describe;

use berth_base::model::Key;
use berth_base::model::rollout::Strategy;
use berth_base::yaml::fields::Scope;
use berth_base::yaml::node::Node;

use super::identity;
use super::placement::{self, PlacementSpec};
use super::strategy;

/// The label by which policies select clusters by name. A cluster without the label gets its own name as the
/// value.
pub const ALIAS: &str = "kubefleet.dev/cluster-alias";

/// Reads a policy. Faults go to the scope; if there are any, the result must not be used.
pub fn read(scope: &Scope, root: &Node, key: &Key) -> Option<PlacementSpec> {
    let cluster_scoped = &*key.kind == "ClusterPlacementPolicy";
    let (mut fields, metadata) = placement::open(scope, root, cluster_scoped)?;
    let replaces = identity::read(scope, root, key);
    let mut spec = fields.required_fields("spec")?;
    let own = (!cluster_scoped).then_some(metadata.namespace.as_str());
    let selectors = resources::read(&mut spec, own);
    let (applying, needs_namespace) = sync_strategy::read(&mut spec);
    let policy = choices::policy(&mut spec, own.filter(|_| needs_namespace));
    spec.int_in("resourceRevisionHistoryLimit", 1..=20);
    // These fields have no effect, because berth creates no clusters.
    spec.str("clusterProviderClassName");
    spec.int_in("maxConcurrentClusterClaims", 1..=10);
    spec.finish();
    fields.finish();
    let mut rolling = strategy::DEFAULT;
    rolling.wanted = policy.selection.wanted();
    Some(PlacementSpec {
        key: key.clone(),
        origin: scope.pos(root.at),
        selectors: Some(selectors?),
        policy,
        named: Vec::new(),
        sync_annotations: applying.annotations(),
        strategy: Strategy::Rolling(rolling),
        replaces,
    })
}

//! `ClusterResourcePlacement` and `ResourcePlacement` → a policy, and the selectors of its objects.

use std::collections::BTreeMap;

use berth_base::diag::Pos;
use berth_base::meta::{self, Metadata};
use berth_base::model::placement::NamedCluster;
use berth_base::model::rollout::Strategy;
use berth_base::model::{Key, Policy};
use berth_base::yaml::fields::{Fields, Scope};
use berth_base::yaml::node::Node;

use super::kinds::FIELDS;
use super::select::{self, Selectors};
use super::{annotations, policy, strategy};

/// Longer names do not fit into the labels that KubeFleet makes of them.
const LONGEST_NAME: usize = 63;

/// A placement as written, before its objects are looked up.
#[derive(Clone, Debug)]
pub(crate) struct PlacementSpec {
    pub key: Key,
    pub origin: Pos,
    /// `None` for a policy that other objects use by name.
    pub selectors: Option<Selectors>,
    pub policy: Policy,
    /// The clusters that the policy names.
    pub named: Vec<NamedCluster>,
    pub sync_annotations: BTreeMap<String, String>,
    pub strategy: Strategy,
    /// The placement that the policy replaces, and the place of the annotation.
    pub replaces: Option<(Key, Pos)>,
}

impl PlacementSpec {
    /// Returns a ResourcePlacement's namespace.
    pub fn namespace(&self) -> Option<&str> {
        (!self.key.namespace.is_empty()).then_some(&*self.key.namespace)
    }
}

/// Reads a placement. Faults go to the scope; if there are any, the result must not be used.
pub fn read(scope: &Scope, root: &Node, key: &Key) -> Option<PlacementSpec> {
    let cluster_scoped = &*key.kind == "ClusterResourcePlacement";
    let (mut fields, metadata) = open(scope, root, cluster_scoped)?;
    let mut spec = fields.required_fields("spec")?;
    let selectors = select::read(&mut spec, cluster_scoped);
    let namespace = (!cluster_scoped).then_some(metadata.namespace.as_str());
    let mut policy = policy::read(&mut spec, namespace);
    annotations::read_replace_after(scope, root, &mut policy);
    let (sync_annotations, mut strategy) = strategy::read(&mut spec);
    if let Strategy::Rolling(rolling) = &mut strategy {
        rolling.wanted = policy.selection.wanted();
    }
    spec.int_in("revisionHistoryLimit", 1..=1000);
    status_scope(&mut spec, selectors.as_ref(), cluster_scoped);
    if let Some(blocked) = &policy.blocked {
        scope.warning(root.at, format!("{key}: {}", blocked.condition.message));
    }
    spec.finish();
    fields.finish();
    let origin = scope.pos(root.at);
    Some(PlacementSpec {
        key: key.clone(),
        origin,
        selectors,
        named: FIELDS.named(scope, root),
        policy,
        sync_annotations,
        strategy,
        replaces: None,
    })
}

/// Opens a placement of either API, and checks its name and namespace.
pub fn open<'a>(scope: &'a Scope, root: &'a Node, cluster_scoped: bool) -> Option<(Fields<'a>, Metadata)> {
    let (fields, metadata) = meta::open(scope, root)?;
    if metadata.name.len() > LONGEST_NAME {
        let message = format!("metadata.name must not be longer than {LONGEST_NAME} characters");
        scope.error(metadata.name_at, message);
    }
    if !cluster_scoped && metadata.namespace.is_empty() {
        scope.error(metadata.at, "metadata.namespace is required");
    }
    Some((fields, metadata))
}

/// Checks the scope of the status: a status for a namespace's readers needs a single namespace. A
/// ResourcePlacement has one.
fn status_scope(spec: &mut Fields<'_>, selectors: Option<&Selectors>, cluster_scoped: bool) {
    let scope = spec.choice("statusReportingScope", &["ClusterScopeOnly", "NamespaceAccessible"]);
    let list = selectors.map(|selectors| selectors.list.as_slice()).unwrap_or_default();
    let namespaces = list.iter().filter(|selector| selector.is_namespace()).count();
    if scope == Some("NamespaceAccessible") && cluster_scoped && namespaces != 1 {
        let message = format!(
            "{} NamespaceAccessible needs exactly one Namespace selector, not {namespaces}",
            spec.path_of("statusReportingScope")
        );
        spec.error_at("statusReportingScope", message);
    }
}
